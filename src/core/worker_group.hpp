// The workers of this node in one round: which live, which ended how, and what that means for the node.
//
// A plain value owned by core::Agent, which feeds it starts and ends and asks it questions. It decides nothing about
// the job. A worker that ended after the launcher had signalled it is "stopped": never a failure, never a success.
//
//               | started     | ended with 0 | ended otherwise | ended, stopped
//  -------------+-------------+--------------+-----------------+----------------
//  not started  | running     | -            | failed (start)  | -
//  running      | -           | succeeded    | failed          | stopped
//  ended        | -           | -            | -               | -
#pragma once

#include <vector>

namespace ddl::core {

class WorkerGroup {
public:
    enum class State : unsigned char { kNotStarted, kRunning, kSucceeded, kFailed, kStopped };

    WorkerGroup() = default;
    explicit WorkerGroup(int workers) : workers_(static_cast<std::size_t>(workers)) {
    }

    void started(int local_rank, int pid);
    // Returns the state it has then. `success` is an exit with code 0; `stopped` means that the launcher had signalled
    // it.
    State ended(int local_rank, bool success, bool stopped);
    State start_failed(int local_rank);

    [[nodiscard]] State state(int local_rank) const;  // kNotStarted for a rank that is not of this node
    [[nodiscard]] int pid(int local_rank) const;      // 0 when it never started
    [[nodiscard]] std::vector<int> running() const;   // local ranks
    [[nodiscard]] bool any_running() const;
    [[nodiscard]] bool all_succeeded() const;
    [[nodiscard]] int succeeded() const;

private:
    struct Worker {
        State state = State::kNotStarted;
        int pid = 0;
    };
    [[nodiscard]] Worker* find(int local_rank);
    [[nodiscard]] const Worker* find(int local_rank) const;
    std::vector<Worker> workers_;
};

}  // namespace ddl::core
