// The guard: a small process per node that outlives an agent that was killed, empties its workers' families, and ends.
//
// Forked first, before any thread, socket or worker, into its own session. It holds one end of a pipe (a socket pair,
// so that writing to a guard that somebody killed raises no SIGPIPE) whose only other end is the agent's
// (close-on-exec). End of file means the agent is gone: the workers' cgroup is killed, where there is one, then
// SIGKILL sweeps (os/family.hpp) follow until two in a row are empty. A clean end of the agent says so first, and the
// guard leaves at once. Owned by run::Driver. It never touches a process that is not of this job, and holds none of the
// agent's descriptors open.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "os/fd.hpp"

namespace ddl::os {

class Guard {
public:
    // Forks the guard. Must be called from the main thread while it is the only one.
    // `cgroup` is the directory of the workers' cgroup; empty: there is none.
    [[nodiscard]] static Result<Guard> start(const std::string& nonce, const std::string& cgroup = {});

    Guard(Guard&&) = default;
    Guard& operator=(Guard&&) = default;

    [[nodiscard]] pid_t pid() const {
        return pid_;
    }
    // Tells it of a worker's session, so that members that wiped their environment are found too.
    void note_session(pid_t session);
    // Clean end: nothing is left to guard. Reaps it (bounded, 1 s).
    void dismiss();

private:
    Guard(pid_t pid, Fd pipe) : pid_(pid), pipe_(std::move(pipe)) {
    }
    pid_t pid_ = -1;
    Fd pipe_;
};

}  // namespace ddl::os
