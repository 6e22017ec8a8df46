// A control group of this node's workers, so that the kernel itself can end all of them, whatever they did to hide.
//
// Made by the agent before the guard starts, where the version 2 hierarchy lets it (a child of the agent's own group,
// with cgroup.kill: Linux 5.14); elsewhere there is none and sweeps have to do. Workers are born in it (clone3), never
// moved, which would cost milliseconds. It limits nothing. Not made inside a Slurm job: Slurm removes its own groups at
// the end and would stumble over a child of them.
//
// Each round has a group of its own inside: Linux (seen on 6.18) ends whatever is born by clone3 into a group that was
// killed once before. (os::spawn() notices a worker that did not survive its birth, and starts it outside.)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "os/fd.hpp"

namespace ddl::os {

class WorkerCgroup {
public:
    // nullopt where no such group can be made.
    [[nodiscard]] static std::optional<WorkerCgroup> create(const std::string& nonce);

    WorkerCgroup(WorkerCgroup&& other) noexcept;
    WorkerCgroup& operator=(WorkerCgroup&& other) = delete;
    ~WorkerCgroup();  // removes what is empty

    // A fresh group for the next round's workers; the last one's is removed. Returns its directory's descriptor, which
    // stays ours, or -1.
    [[nodiscard]] int open_round();
    [[nodiscard]] const std::string& path() const {
        return path_;
    }
    void kill_round() const;  // SIGKILL to everything in the round's group, forks in progress included

private:
    explicit WorkerCgroup(std::string path) : path_(std::move(path)) {
    }
    std::string path_;   // empty when moved from
    std::string round_;  // directory of the current round's group
    Fd directory_;       // the same, open
    int rounds_ = 0;
};

// For whoever has only the path: the guard. Both do nothing when the group is gone or the path is empty.
void kill_cgroup(const std::string& path);
void remove_cgroup(const std::string& path);  // with its rounds; for a moment: a killed process leaves a little later

// The directory of this process's own group in the version 2 hierarchy, from the texts of /proc/self/mountinfo and
// /proc/self/cgroup. The hierarchy may be mounted anywhere, and beside version 1.
[[nodiscard]] std::optional<std::string> own_group_directory(std::string_view mountinfo, std::string_view cgroup);

}  // namespace ddl::os
