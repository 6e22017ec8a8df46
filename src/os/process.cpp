#include "os/process.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace ddl::os {
namespace {

// The child borrows the parent's memory until it execs (as vfork and posix_spawn do): no page table is copied, which
// is most of a fork's cost. It runs on a stack of its own, with all signals blocked, and touches nothing but Launch.
// Sanitizers keep per-thread books in that memory, so with them the child gets a copy.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMemory = 0;
#else
constexpr int kMemory = CLONE_VM;
#endif
constexpr std::size_t kStackBytes = 64 * 1024;

enum class Stage : int {
    kUnborn,
    kNone,
    kParentGone,
    kSession,
    kAffinity,
    kStandardIn,
    kStandardOut,
    kStandardErr,
    kExec
};

// Lives in memory that parent and child share in either case.
struct Outcome {
    Stage stage;
    int error;
};

// All that the child needs, made before the clone: it must not allocate.
struct Launch {
    const char* path = nullptr;
    char* const* arguments = nullptr;
    char* const* environment = nullptr;
    std::array<int, 3> streams{};  // -1: as inherited
    bool own_session = true;
    int cgroup = -1;
    const rlim_t* descriptor_limit = nullptr;
    const cpu_set_t* cpus = nullptr;
    std::size_t cpu_bytes = 0;
    pid_t parent = -1;
    Outcome* outcome = nullptr;
};

// The shared page with the outcome, and below it the child's stack.
class ChildArea {
public:
    ChildArea() : base_(::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    }
    ChildArea(const ChildArea&) = delete;
    ChildArea& operator=(const ChildArea&) = delete;
    ~ChildArea() {
        if (base_ != MAP_FAILED) {
            ::munmap(base_, kStackBytes);
        }
    }

    [[nodiscard]] bool ok() const {
        return base_ != MAP_FAILED;
    }
    [[nodiscard]] Outcome* outcome() const {
        return static_cast<Outcome*>(stack_top());
    }
    [[nodiscard]] void* stack_top() const {
        return static_cast<char*>(base_) + kStackBytes - 64;  // 64: room for the outcome, and the alignment of a stack
    }

private:
    void* base_;
};

[[noreturn]] void give_up(const Launch& launch, Stage stage) {
    *launch.outcome = Outcome{stage, errno};
    ::_exit(127);
}

void reset_signals() {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    for (int number = 1; number < SIGRTMIN; ++number) {  // nobody ignores those from there on
        struct sigaction present {};
        if (::sigaction(number, nullptr, &present) == 0 && present.sa_handler != SIG_DFL) {
            ::sigaction(number, &standard, nullptr);
        }
    }
}

void close_other_descriptors() {
    if (::syscall(SYS_close_range, 3U, ~0U, 0U) == 0) {
        return;
    }
    rlimit limit{};  // a kernel or a sandbox without close_range
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const auto end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 65536));
    for (int fd = 3; fd < end; ++fd) {
        ::close(fd);
    }
}

void place_streams(const Launch& launch) {
    std::array<int, 3> sources = launch.streams;
    constexpr std::array<Stage, 3> kStages{Stage::kStandardIn, Stage::kStandardOut, Stage::kStandardErr};
    for (std::size_t i = 0; i < 3; ++i) {  // a source among 0..2 could be overwritten before its turn
        if (sources[i] >= 0 && sources[i] < 3) {
            sources[i] = ::fcntl(sources[i], F_DUPFD_CLOEXEC, 3);
            if (sources[i] < 0) {
                give_up(launch, kStages[i]);
            }
        }
    }
    for (std::size_t i = 0; i < 3; ++i) {
        if (sources[i] >= 0 && ::dup2(sources[i], static_cast<int>(i)) < 0) {
            give_up(launch, kStages[i]);
        }
    }
}

// Runs in the child, on the stack of ChildArea.
int child_main(void* argument) {
    const Launch& launch = *static_cast<const Launch*>(argument);
    launch.outcome->stage = Stage::kNone;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launch.parent) {  // it died before the line above took effect
        give_up(launch, Stage::kParentGone);
    }
    if (launch.own_session && ::setsid() < 0) {
        give_up(launch, Stage::kSession);
    }
    if (launch.cpus != nullptr && ::sched_setaffinity(0, launch.cpu_bytes, launch.cpus) != 0) {
        give_up(launch, Stage::kAffinity);
    }
    place_streams(launch);
    close_other_descriptors();
    if (launch.descriptor_limit != nullptr) {  // not before: those that the agent has open may be more
        rlimit limit{};
        ::getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = *launch.descriptor_limit;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    reset_signals();
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(launch.path, launch.arguments, launch.environment);
    give_up(launch, Stage::kExec);
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (const std::string& text : texts) {
        pointers.push_back(const_cast<char*>(text.c_str()));  // execve's signature predates const
    }
    pointers.push_back(nullptr);
    return pointers;
}

std::string_view value_of(const std::vector<std::string>& environment, std::string_view name) {
    for (const std::string& entry : environment) {
        const std::string_view text = entry;
        if (text.size() > name.size() && text[name.size()] == '=' && text.substr(0, name.size()) == name) {
            return text.substr(name.size() + 1);
        }
    }
    return {};
}

bool is_program(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

tl::expected<std::string, SpawnFailure> find_program(const SpawnRequest& request) {
    if (request.arguments.empty() || request.arguments[0].empty()) {
        return tl::unexpected(SpawnFailure{"exec: no program given", EINVAL});
    }
    const std::string& name = request.arguments[0];
    if (name.find('/') != std::string::npos) {
        return name;
    }
    std::string_view path = value_of(request.environment, "PATH");
    if (path.empty()) {
        path = "/usr/local/bin:/usr/bin:/bin";
    }
    int error = ENOENT;
    for (const std::string_view directory : split(path, ':')) {
        std::string candidate = directory.empty() ? "./" + name : std::string(directory) + "/" + name;
        if (is_program(candidate)) {
            return candidate;
        }
        if (::access(candidate.c_str(), F_OK) == 0) {
            error = EACCES;
        }
    }
    return tl::unexpected(SpawnFailure{"find " + name + " in PATH", error});
}

std::vector<unsigned long> cpu_mask(const std::vector<int>& cpus) {
    constexpr int kBits = 8 * static_cast<int>(sizeof(unsigned long));
    std::vector<unsigned long> words;
    for (const int cpu : cpus) {
        const auto word = static_cast<std::size_t>(cpu / kBits);
        words.resize(std::max(words.size(), word + 1));
        words[word] |= 1UL << (cpu % kBits);
    }
    return words;
}

std::string stage_text(Stage stage, const std::string& name, const std::string& path, int error) {
    switch (stage) {
        case Stage::kSession:
            return "setsid";
        case Stage::kAffinity:
            return "bind to the given cpus";
        case Stage::kStandardIn:
            return "set up standard input";
        case Stage::kStandardOut:
            return "set up standard output";
        case Stage::kStandardErr:
            return "set up standard error";
        default:
            break;
    }
    if (error == ENOENT && ::access(path.c_str(), F_OK) == 0) {
        return "exec " + name + " (the interpreter that it names)";
    }
    return "exec " + name;
}

// Only clone3 knows cgroups. It returns in the child, so the child needs a copy of the memory; that copy is small.
// Fails where a sandbox forbids it or the group is gone; the worker is then born beside its agent.
pid_t clone_into_cgroup(Launch& launch, int& pidfd) {
    clone_args arguments{};
    arguments.flags = CLONE_VFORK | CLONE_PIDFD | CLONE_INTO_CGROUP;
    arguments.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
    arguments.exit_signal = SIGCHLD;
    arguments.cgroup = static_cast<std::uint64_t>(launch.cgroup);
    const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
    if (pid == 0) {
        ::_exit(child_main(&launch));
    }
    if (pid > 0 && launch.outcome->stage == Stage::kUnborn) {
        ::waitpid(pid, nullptr, 0);
        ::close(pidfd);
        return -1;
    }
    return pid;
}

// Starts the child and waits until it has left this process's memory, by exec or by exit.
pid_t clone_and_wait(Launch& launch, const ChildArea& area, int& pidfd) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of ours may run in the child
    pid_t pid = launch.cgroup < 0 ? -1 : clone_into_cgroup(launch, pidfd);
    if (pid < 0) {
        const int flags = kMemory | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
        pid = ::clone(child_main, area.stack_top(), flags, &launch, &pidfd);
    }
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    return pid;
}

tl::unexpected<SpawnFailure> failure(std::string stage, int error) {
    return tl::unexpected(SpawnFailure{std::move(stage), error});
}

}  // namespace

std::string SpawnFailure::text() const {
    std::string line = stage + ": " + std::strerror(error);
    if (error == ENOEXEC) {
        line += " (a script needs a #! line; a binary must be built for this machine)";
    }
    return line;
}

tl::expected<Child, SpawnFailure> spawn(const SpawnRequest& request) {
    auto path = find_program(request);
    if (!path) {
        return tl::unexpected(path.error());
    }
    Fd null_input;
    if (request.standard_in < 0) {
        null_input.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        if (!null_input) {
            return failure("open /dev/null", errno);
        }
    }
    const ChildArea area;
    if (!area.ok()) {
        return failure("map a stack", errno);
    }
    const std::vector<char*> arguments = pointers_to(request.arguments);
    const std::vector<char*> environment = pointers_to(request.environment);
    const std::vector<unsigned long> mask = cpu_mask(request.cpus);
    const rlim_t descriptor_limit = request.descriptor_limit.value_or(0);

    Launch launch;
    launch.path = path->c_str();
    launch.arguments = arguments.data();
    launch.environment = environment.data();
    launch.streams = {null_input ? null_input.get() : request.standard_in, request.standard_out, request.standard_err};
    launch.cgroup = request.cgroup;
    launch.own_session = !request.keep_terminal;
    launch.descriptor_limit = request.descriptor_limit ? &descriptor_limit : nullptr;
    launch.cpus = mask.empty() ? nullptr : reinterpret_cast<const cpu_set_t*>(mask.data());
    launch.cpu_bytes = mask.size() * sizeof(unsigned long);
    launch.parent = ::getpid();
    launch.outcome = area.outcome();

    int pidfd = -1;
    const pid_t pid = clone_and_wait(launch, area, pidfd);
    if (pid < 0) {
        return failure("clone", errno);
    }
    Child child{pid, Fd(pidfd)};
    const Outcome outcome = *area.outcome();
    if (outcome.stage != Stage::kNone && outcome.stage != Stage::kUnborn) {
        ::waitpid(pid, nullptr, 0);
        return failure(stage_text(outcome.stage, request.arguments[0], *path, outcome.error), outcome.error);
    }
    return child;
}

std::optional<std::size_t> raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) {
        return std::nullopt;
    }
    const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::optional<std::size_t>(before) : std::nullopt;
}

}  // namespace ddl::os
