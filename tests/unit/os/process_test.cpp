#include "os/process.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "os/procfs.hpp"
#include "process_tools.hpp"

namespace ddl::os {
namespace {

using testing::ends_within;
using testing::Pipe;
using testing::shell;
using testing::wait_for;

std::string output_of(SpawnRequest request) {
    Pipe pipe;
    request.standard_out = pipe.write_end.get();
    const auto child = spawn(request);
    if (!child) {
        return child.error().text();
    }
    std::string text = pipe.read_until();
    wait_for(*child);
    return text;
}

class ScratchFile {
public:
    ScratchFile(const std::string& name, const std::string& text, unsigned mode) : path_(folder() + "/" + name) {
        std::ofstream(path_) << text;
        ::chmod(path_.c_str(), mode);
    }
    ~ScratchFile() {
        std::filesystem::remove(path_);
    }
    [[nodiscard]] const std::string& path() const {
        return path_;
    }

private:
    static std::string folder() {
        return std::filesystem::temp_directory_path().string();
    }
    std::string path_;
};

TEST(Spawn, GivesExitCodesAndSignalsBack) {
    const auto seven = spawn(shell("exit 7"));
    ASSERT_TRUE(seven);
    const ExitStatus exited = wait_for(*seven);
    EXPECT_FALSE(exited.signalled);
    EXPECT_EQ(exited.number, 7);

    const auto killed = spawn(shell("kill -USR1 $$"));
    ASSERT_TRUE(killed);
    const ExitStatus signalled = wait_for(*killed);
    EXPECT_TRUE(signalled.signalled);
    EXPECT_EQ(signalled.number, SIGUSR1);
}

TEST(Spawn, TellsThePresentFromThePast) {
    (void)reap_strangers({});  // what other tests have left
    Pipe gate;
    SpawnRequest request = shell("read line");
    request.standard_in = gate.read_end.get();
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    EXPECT_FALSE(has_ended(child->pid));
    EXPECT_FALSE(is_ending(child->pid));
    EXPECT_FALSE(ended_child().has_value());
    EXPECT_FALSE(reap(child->pid).has_value());
    gate.write_end.reset();
    ASSERT_TRUE(ends_within(child->pidfd, 5000));
    EXPECT_TRUE(has_ended(child->pid));
    EXPECT_TRUE(is_ending(child->pid));
    EXPECT_EQ(ended_child(), child->pid);
    EXPECT_TRUE(has_ended(child->pid)) << "looking must not reap";
    EXPECT_TRUE(reap(child->pid).has_value());
    EXPECT_FALSE(has_ended(child->pid));
}

TEST(Spawn, NamesTheStageThatFailed) {
    (void)reap_strangers({});  // what other tests have left
    SpawnRequest request;
    request.arguments = {"./no-such-program"};
    auto child = spawn(request);
    ASSERT_FALSE(child);
    EXPECT_EQ(child.error().text(), "exec ./no-such-program: No such file or directory");
    EXPECT_EQ(child.error().error, ENOENT);

    request.arguments = {"no-such-program"};
    request.environment = {"PATH=/usr/bin:/bin"};
    EXPECT_EQ(spawn(request).error().text(), "find no-such-program in PATH: No such file or directory");

    request.arguments = {"/bin/true"};
    request.cpus = {4000};
    EXPECT_EQ(spawn(request).error().text(), "bind to the given cpus: Invalid argument");

    request.cpus.clear();
    request.standard_err = 9999;
    EXPECT_EQ(spawn(request).error().text(), "set up standard error: Bad file descriptor");

    EXPECT_FALSE(spawn(SpawnRequest{}));
    EXPECT_TRUE(children_of(::getpid()).empty()) << "a failed start leaves no zombie";
}

TEST(Spawn, SaysWhyAFileCannotBeExecuted) {
    const ScratchFile no_bit("ddl_spawn_no_bit", "#!/bin/sh\n", 0644);
    SpawnRequest request;
    request.arguments = {no_bit.path()};
    EXPECT_EQ(spawn(request).error().error, EACCES);

    const ScratchFile no_interpreter("ddl_spawn_no_interpreter", "#!/no/such/interpreter\n", 0755);
    request.arguments = {no_interpreter.path()};
    EXPECT_NE(spawn(request).error().text().find("the interpreter that it names"), std::string::npos);

    const ScratchFile no_header("ddl_spawn_no_header", "echo hello\n", 0755);
    request.arguments = {no_header.path()};
    EXPECT_NE(spawn(request).error().text().find("#! line"), std::string::npos);
}

TEST(Spawn, LooksUpTheProgramInTheWorkersPath) {
    const ScratchFile program("ddl_spawn_in_path", "#!/bin/sh\necho found\n", 0755);
    SpawnRequest request;
    request.arguments = {"ddl_spawn_in_path"};
    const std::string folder = std::filesystem::path(program.path()).parent_path();
    request.environment = {"PATH=/nowhere::" + folder};
    EXPECT_EQ(output_of(request), "found\n");
}

TEST(Spawn, HandsOverArgumentsAndExactlyTheGivenEnvironment) {
    SpawnRequest request;
    request.arguments = {"/usr/bin/env"};
    request.environment = {"A=1", "B=two words"};
    EXPECT_EQ(output_of(request), "A=1\nB=two words\n");
    request.arguments = {"/bin/sh", "-c", "printf '%s|' \"$@\"", "sh", "a b", "", "c"};
    EXPECT_EQ(output_of(request), "a b||c|");
}

TEST(Spawn, LeavesNoDescriptorOpenBeyondTheStandardOnes) {
    const int leaky = ::open("/dev/null", O_RDONLY);  // no close-on-exec: as a library might do
    ASSERT_GE(leaky, 3);
    EXPECT_EQ(output_of(shell("ls /proc/$$/fd; true")), "0\n1\n2\n");
    ::close(leaky);
}

TEST(Spawn, StdinIsDevNullUnlessGiven) {
    EXPECT_EQ(output_of(shell("readlink /proc/$$/fd/0")), "/dev/null\n");
}

TEST(Spawn, CanSwapStandardDescriptors) {
    Pipe pipe;
    SpawnRequest request = shell("echo to-err >&2");
    request.standard_err = pipe.write_end.get();
    request.standard_out = 2;  // would be overwritten by the line above if done carelessly
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    EXPECT_EQ(pipe.read_until(), "to-err\n");
    EXPECT_EQ(wait_for(*child).number, 0);
}

TEST(Spawn, StartsASessionAndCleanSignals) {
    sigset_t blocked;
    sigset_t before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
    const auto old_handler = ::signal(SIGPIPE, SIG_IGN);
    const std::string status = output_of(shell("grep -E 'SigBlk|SigIgn' /proc/self/status"));
    ::signal(SIGPIPE, old_handler);
    EXPECT_EQ(status, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    sigset_t after;
    ::pthread_sigmask(SIG_SETMASK, &before, &after);
    EXPECT_EQ(::sigismember(&after, SIGTERM), 1) << "the parent's own mask is as it was";
    EXPECT_EQ(::sigismember(&after, SIGINT), 0);

    EXPECT_EQ(output_of(shell("test $(cut -d' ' -f6 /proc/$$/stat) = $$ && echo own")), "own\n");
    SpawnRequest with_terminal = shell("cut -d' ' -f6 /proc/$$/stat");
    with_terminal.keep_terminal = true;
    EXPECT_EQ(output_of(with_terminal), std::to_string(::getsid(0)) + "\n");
}

TEST(Spawn, BindsToTheGivenCpus) {
    SpawnRequest request = shell("grep Cpus_allowed_list /proc/self/status");
    request.cpus = {0};
    EXPECT_EQ(output_of(request), "Cpus_allowed_list:\t0\n");
}

TEST(Spawn, GivesTheWorkerItsOwnDescriptorLimit) {
    Pipe output;
    SpawnRequest request = shell("ulimit -Sn");
    request.standard_out = output.write_end.get();
    request.descriptor_limit = 77;
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    EXPECT_EQ(output.read_until(), "77\n");
    (void)wait_for(*child);
}

TEST(Spawn, DescriptorLimitOfTheWorkerDoesNotCountTheLaunchers) {
    const auto before = raise_descriptor_limit();
    std::vector<Fd> many;  // as a coordinator has for its agents
    for (int i = 0; i < 100; ++i) {
        many.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    SpawnRequest request = shell("ulimit -Sn");
    request.standard_in = STDIN_FILENO;  // has to be moved away and back
    request.descriptor_limit = 64;
    EXPECT_EQ(output_of(request), "64\n");
    (void)before;
}

// A Python that ends its main thread, or a runtime that never returns to it, goes on as a zombie with living threads.
TEST(Spawn, AWorkerIsNotEndingWhileOneOfItsThreadsGoesOn) {
    Pipe gate;
    const pid_t worker = ::fork();
    ASSERT_GE(worker, 0);
    if (worker == 0) {
        const int gate_fd = gate.read_end.get();
        gate.write_end.reset();
        std::thread([gate_fd] {
            char byte = 0;
            ::_exit(::read(gate_fd, &byte, 1) == 0 ? 0 : 1);
        }).detach();
        ::syscall(SYS_exit, 0);  // of this thread alone
    }
    const auto main_thread_is_over = [worker] {
        const auto facts = read_process(worker);
        return facts && facts->state == 'Z';
    };
    while (!main_thread_is_over()) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(has_ended(worker));
    EXPECT_FALSE(is_ending(worker)) << "it would never be stopped";
    const Fd pidfd = testing::pidfd_of(worker);
    gate.write_end.reset();
    ASSERT_TRUE(ends_within(pidfd, 5000));
    EXPECT_TRUE(is_ending(worker));
    EXPECT_TRUE(reap(worker).has_value());
}

TEST(Spawn, WorkerDiesWithItsParent) {
    Pipe pipe;
    const pid_t agent = ::fork();
    ASSERT_GE(agent, 0);
    if (agent == 0) {
        SpawnRequest request = shell("echo $$; exec sleep 60");
        request.standard_out = pipe.write_end.get();
        ::_exit(spawn(request) ? (::pause(), 0) : 1);
    }
    const std::string line = pipe.read_until("\n");
    ASSERT_FALSE(line.empty());
    const Fd worker = testing::pidfd_of(std::stoi(line));
    ::kill(agent, SIGKILL);
    EXPECT_TRUE(ends_within(worker, 5000));
    ::waitpid(agent, nullptr, 0);
}

TEST(ReapStrangers, ReapsAdoptedOnesAndCountsTheLiving) {
    ASSERT_TRUE(become_subreaper());
    Pipe pipe;
    SpawnRequest request = shell("sleep 60 & echo $!; true");
    request.standard_out = pipe.write_end.get();
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    const pid_t orphan = std::stoi(pipe.read_until("\n"));
    ASSERT_TRUE(ends_within(child->pidfd, 5000));
    EXPECT_EQ(reap_strangers({child->pid}), 1);
    EXPECT_TRUE(has_ended(child->pid)) << "a spared one is left to reap()";
    const Fd orphan_fd = testing::pidfd_of(orphan);
    ::kill(orphan, SIGKILL);
    ASSERT_TRUE(ends_within(orphan_fd, 5000));
    EXPECT_EQ(reap_strangers({child->pid}), 0);
    EXPECT_TRUE(reap(child->pid).has_value());
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace ddl::os
