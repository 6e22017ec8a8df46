// Starting and reaping worker processes.
//
// A worker is forked from the main thread only (parent-death signals are bound to the thread), gets its own session, a
// clean signal mask and default dispositions, PR_SET_PDEATHSIG(SIGKILL) with a check that the agent still lives, and
// no descriptor but 0, 1, 2. Whatever fails between fork and exec comes back as a stage and an errno.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/fd.hpp"

namespace ddl::os {

struct SpawnRequest {
    std::vector<std::string> arguments;    // [0] is looked up in the environment's PATH when it has no slash
    std::vector<std::string> environment;  // NAME=VALUE, complete
    int standard_in = -1;                  // -1: /dev/null; else duplicated
    int standard_out = -1;                 // -1: inherited
    int standard_err = -1;
    bool keep_terminal = false;                   // no new session: a single rank that owns the terminal (debuggers)
    std::vector<int> cpus;                        // affinity; empty: inherited
    int cgroup = -1;                              // directory of a cgroup to be born in; -1: the agent's
    std::optional<std::size_t> descriptor_limit;  // soft RLIMIT_NOFILE; nullopt: inherited
};

struct Child {
    pid_t pid = -1;
    Fd pidfd;  // readable when the process has ended
};

struct SpawnFailure {
    std::string stage;  // "exec ./train", "setsid", …
    int error = 0;      // errno

    [[nodiscard]] std::string text() const;  // "exec ./train: No such file or directory"
};

// Blocks until the child has exec'd or failed to (no time limit is needed: only kernel calls lie in between).
[[nodiscard]] tl::expected<Child, SpawnFailure> spawn(const SpawnRequest& request);

struct ExitStatus {
    bool signalled = false;
    int number = 0;  // exit code or signal
    bool core_dumped = false;
};

// Reaps `pid` if it has ended; never blocks.
[[nodiscard]] std::optional<ExitStatus> reap(pid_t pid);

// True if `pid` has ended but was not reaped yet.
[[nodiscard]] bool has_ended(pid_t pid);

// True if it has ended or is on its way out: tells a death of its own from one that we are about to cause. A process
// closes its sockets before it has ended, so its peers may know of its death sooner than we.
[[nodiscard]] bool is_ending(pid_t pid);

// A child that has ended and was not reaped yet, if there is one; never blocks. The guard is not seen.
[[nodiscard]] std::optional<pid_t> ended_child();

// Reaps every ended child of this process except `spared`; returns how many children are left alive besides `spared`.
// With the agent as subreaper, 0 proves that no descendant exists.
[[nodiscard]] int reap_strangers(const std::vector<pid_t>& spared);

// Lets this process have as many descriptors as it may: a store has one for each of its clients. Returns the limit that
// it had before, which workers should get back.
[[nodiscard]] std::optional<std::size_t> raise_descriptor_limit();

// Makes this process the one that orphans of its descendants are given to.
[[nodiscard]] Result<void> become_subreaper();

}  // namespace ddl::os
