#include "os/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "os/cgroup.hpp"
#include "os/family.hpp"
#include "os/procfs.hpp"

namespace ddl::os {
namespace {

using namespace std::chrono_literals;

// What goes through the pipe: a session to remember, or this.
constexpr pid_t kDismissed = 0;

constexpr auto kFirstPause = 1ms;
constexpr auto kLongestPause = 500ms;
constexpr auto kPatience = 600s;  // with members that even SIGKILL does not end; nothing is left to try then

// With the leader's start, so that a later process that got the same number is not taken for it.
struct Session {
    pid_t leader = -1;
    std::uint64_t start_ticks = 0;
};

void become_background_process() {
    ::setsid();
    ::prctl(PR_SET_NAME, "ddl-guard");
    if (::chdir("/") != 0) {
        // Only a courtesy to whoever wants to unmount the directory we were started in.
    }
}

// Leaves the pipe as the only descriptor besides 0, 1, 2, which lead nowhere: a reader of the agent's output must see
// its end when the agent dies. The pipe goes to its place first: it may be any descriptor, one of 0, 1, 2 included.
Fd keep_only(Fd pipe) {
    constexpr int kPlace = 3;
    ::dup2(pipe.release(), kPlace);
    ::syscall(SYS_close_range, static_cast<unsigned>(kPlace + 1), ~0U, 0U);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < kPlace; ++fd) {
        if (::dup2(nowhere, fd) < 0) {
            ::close(fd);
        }
    }
    if (nowhere > kPlace) {
        ::close(nowhere);
    }
    return Fd(kPlace);
}

// True when the agent said that nothing is left to guard; false when it is gone. A read that fails is no sign of that
// as long as the agent is there.
bool listen(const Fd& pipe, pid_t agent, std::vector<Session>& sessions) {
    while (true) {
        pid_t record = 0;
        const ssize_t count = ::read(pipe.get(), &record, sizeof record);
        if (count == 0 || (count < 0 && ::getppid() != agent)) {
            return false;
        }
        if (count < 0) {
            std::this_thread::sleep_for(kFirstPause);
        }
        if (count != static_cast<ssize_t>(sizeof record)) {
            continue;
        }
        if (record == kDismissed) {
            return true;
        }
        const auto leader = read_process(record);
        sessions.push_back(Session{record, leader ? leader->start_ticks : 0});
    }
}

std::vector<pid_t> still_the_same(const std::vector<Session>& sessions) {
    std::vector<pid_t> leaders;
    for (const Session& session : sessions) {
        const auto leader = read_process(session.leader);
        if (!leader || leader->start_ticks == session.start_ticks) {
            leaders.push_back(session.leader);
        }
    }
    return leaders;
}

void empty_families(const std::string& nonce, const std::vector<Session>& sessions) {
    FamilyQuery query;
    query.nonce = nonce;
    query.adopted_strangers = false;
    const auto give_up_at = std::chrono::steady_clock::now() + kPatience;
    std::chrono::milliseconds pause = kFirstPause;
    for (int empty_sweeps = 0; empty_sweeps < 2 && std::chrono::steady_clock::now() < give_up_at;) {
        query.sessions = still_the_same(sessions);
        empty_sweeps = sweep(query, SIGKILL).empty() ? empty_sweeps + 1 : 0;
        if (empty_sweeps < 2) {
            std::this_thread::sleep_for(pause);
            pause = std::min<std::chrono::milliseconds>(2 * pause, kLongestPause);
        }
    }
}

// Only what is a directory of our own; links in it are removed, not followed.
void remove_directory(const std::string& path) {
    struct stat info {};
    if (!path.empty() && ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid()) {
        std::error_code nobody_to_tell;
        std::filesystem::remove_all(path, nobody_to_tell);
    }
}

[[noreturn]] void guard_main(Fd pipe, pid_t agent, const Estate& estate) {
    become_background_process();
    const Fd only = keep_only(std::move(pipe));
    std::vector<Session> sessions;
    if (!listen(only, agent, sessions)) {
        kill_cgroup(estate.cgroup);
        empty_families(estate.nonce, sessions);
        remove_cgroup(estate.cgroup);
        remove_directory(estate.directory);
    }
    ::_exit(0);
}

// Never blocks: a guard that somebody stopped must not stop the agent.
void send_record(const Fd& pipe, pid_t record) {
    while (::send(pipe.get(), &record, sizeof record, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
    }
}

bool has_threads() {
    constexpr nlink_t kLinksOfOneThread = 3;  // of the directory itself, its parent's, and the thread's directory
    struct stat info {};
    return ::stat("/proc/self/task", &info) != 0 || info.st_nlink > kLinksOfOneThread;
}

// A child without an exit signal: waitid() and friends don't count it unless they ask for it (__WALL), so "no child
// left" means that no worker and no orphan of one is left. The sanitizers must see a fork, and so must the C library
// when another thread may hold one of its locks: such a child is seen, and whoever counts children has to leave it out.
pid_t fork_unseen() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr bool kSanitized = true;
#else
    constexpr bool kSanitized = false;
#endif
    if (kSanitized || has_threads()) {
        return ::fork();
    }
    return static_cast<pid_t>(::syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, nullptr));
}

}  // namespace

Result<Guard> Guard::start(const Estate& estate) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return fail(std::string("cannot make the guard's pipe: ") + std::strerror(errno));
    }
    Fd read_end(ends[0]);
    Fd write_end(ends[1]);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // from its first moment on, the guard is deaf to polite signals
    const pid_t agent = ::getpid();
    const pid_t pid = fork_unseen();
    const int error = errno;
    if (pid == 0) {
        write_end.reset();
        guard_main(std::move(read_end), agent, estate);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) {
        return fail(std::string("cannot start the guard process: ") + std::strerror(error));
    }
    return Guard(pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U))), std::move(write_end));
}

void Guard::note_session(pid_t session) {
    if (session != ::getsid(0)) {  // the agent's own session holds more than workers
        send_record(pipe_, session);
    }
}

void Guard::let_go() {
    if (pipe_) {
        send_record(pipe_, kDismissed);
        pipe_.reset();
    }
}

void Guard::dismiss() {
    if (!pidfd_) {
        return;
    }
    let_go();
    pollfd ended{pidfd_.get(), POLLIN, 0};
    constexpr int kLimitMilliseconds = 1000;
    if (::poll(&ended, 1, kLimitMilliseconds) <= 0) {
        ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0U);
    }
    ::waitpid(pid_, nullptr, __WALL);
    pidfd_.reset();
}

}  // namespace ddl::os
