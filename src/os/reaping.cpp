// The second half of process.hpp: what has become of children, and reaping them.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/process.hpp"
#include "os/procfs.hpp"

namespace ddl::os {

std::optional<ExitStatus> reap(pid_t pid) {
    int status = 0;
    pid_t result = 0;
    do {
        result = ::waitpid(pid, &status, WNOHANG);
    } while (result < 0 && errno == EINTR);
    if (result != pid) {
        return std::nullopt;
    }
    if (WIFSIGNALED(status)) {
        return ExitStatus{true, WTERMSIG(status), WCOREDUMP(status)};
    }
    return ExitStatus{false, WEXITSTATUS(status), false};
}

bool has_ended(pid_t pid) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

bool is_ending(pid_t pid) {
    const auto facts = read_process(pid);
    return facts && (facts->ended || (facts->exiting && all_threads_are_exiting(pid)));
}

std::optional<pid_t> ended_child() {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
        return std::nullopt;
    }
    return info.si_pid;
}

int reap_strangers(const std::vector<pid_t>& spared) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD) {
        return 0;  // the common case needs no look at /proc: the guard is no child in waitid's eyes
    }
    int alive = 0;
    for (const pid_t child : children_of(::getpid())) {
        if (std::find(spared.begin(), spared.end(), child) == spared.end() && ::waitpid(child, nullptr, WNOHANG) == 0) {
            ++alive;
        }
    }
    return alive;
}

Result<void> become_subreaper() {
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return fail(std::string("cannot become the reaper of orphaned workers: ") + std::strerror(errno));
    }
    return {};
}

}  // namespace ddl::os
