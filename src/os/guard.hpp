// The guard: a small process per node that outlives an agent that was killed, empties its workers' families, and ends.
//
// Forked first, before any thread, socket or worker, into its own session (and again when somebody killed it). It holds
// one end of a pipe (a socket pair, so that writing to a guard that somebody killed raises no SIGPIPE) whose only other
// end is the agent's (close-on-exec). End of file means the agent is gone: the workers' cgroup is killed, where there
// is one, then SIGKILL sweeps (os/family.hpp) follow until two in a row are empty, and the agent's private directory of
// files is removed. A clean end of the agent says so first, and the guard leaves at once. Owned by run::Driver. It
// never touches a process that is not of this job, and holds none of the agent's descriptors open.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "os/fd.hpp"

namespace ddl::os {

// What an agent that was killed leaves behind.
struct Estate {
    std::string nonce;
    std::string cgroup;     // directory of the workers' cgroup; empty: there is none
    std::string directory;  // absolute path of the agent's private directory, made or not; empty: there is none
};

class Guard {
public:
    // Forks the guard. Must be called from the main thread; others may run.
    [[nodiscard]] static Result<Guard> start(const Estate& estate);

    Guard(Guard&&) = default;
    Guard& operator=(Guard&&) = default;

    [[nodiscard]] pid_t pid() const {
        return pid_;
    }
    // Readable once the guard has ended, dismissed or not.
    [[nodiscard]] int pidfd() const {
        return pidfd_.get();
    }
    // Tells it of a worker's session, so that members that wiped their environment are found too.
    void note_session(pid_t session);
    // Clean end: nothing is left to guard. It leaves by itself while the agent goes on with its own end.
    void let_go();
    // The same, if that was not said yet; reaps it (bounded, 1 s).
    void dismiss();

private:
    Guard(pid_t pid, Fd pidfd, Fd pipe) : pid_(pid), pidfd_(std::move(pidfd)), pipe_(std::move(pipe)) {
    }
    pid_t pid_ = -1;
    Fd pidfd_;
    Fd pipe_;
};

}  // namespace ddl::os
