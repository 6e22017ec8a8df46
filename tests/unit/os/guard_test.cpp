#include "os/guard.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "os/family.hpp"
#include "os/procfs.hpp"
#include "process_tools.hpp"

namespace ddl::os {
namespace {

using testing::ends_within;
using testing::pidfd_of;
using testing::Pipe;
using testing::shell;

struct GuardedJob {
    pid_t agent = -1;
    Fd guard;
    Fd worker;
    Fd runaway;
};

// An agent with its guard and one worker. `start` is the worker's way to start a child that tries to survive.
// `free` are descriptors that the agent closes first, so that the guard's pipe may get their numbers.
GuardedJob start_job(const std::string& start, const std::vector<int>& free = {}, const std::string& directory = "") {
    Pipe pipe;
    GuardedJob job;
    job.agent = ::fork();
    if (job.agent == 0) {
        constexpr int kOutOfTheWay = 20;
        pipe.write_end = Fd(::fcntl(pipe.write_end.get(), F_DUPFD_CLOEXEC, kOutOfTheWay));
        for (const int fd : free) {
            ::close(fd);
        }
        auto guard = Guard::start({"0badcafe", "", directory});
        SpawnRequest request =
            shell(start + " & echo $! $$; exec sleep 60", {std::string(kSpawnIdVariable) + "=0badcafe.1"});
        request.standard_out = pipe.write_end.get();
        auto worker = spawn(request);
        if (!guard || !worker) {
            ::_exit(1);
        }
        guard->note_session(worker->pid);
        ::dprintf(pipe.write_end.get(), "guard %d\n", guard->pid());
        ::pause();
        ::_exit(0);
    }
    const std::string guard_mark = "guard ";
    std::string text;
    while (text.find(guard_mark) == std::string::npos || text.find('\n') == text.rfind('\n')) {
        const std::string more = pipe.read_until("\n");
        if (more.empty()) {
            return job;
        }
        text += more;
    }
    const auto guard_at = text.find(guard_mark);
    job.guard = pidfd_of(std::stoi(text.substr(guard_at + guard_mark.size())));
    text.erase(guard_at, text.find('\n', guard_at) - guard_at + 1);
    job.runaway = pidfd_of(std::stoi(text));
    job.worker = pidfd_of(std::stoi(text.substr(text.find(' '))));
    return job;
}

void expect_nothing_left(GuardedJob& job) {
    ASSERT_TRUE(job.guard);
    ASSERT_TRUE(job.worker);
    ASSERT_TRUE(job.runaway);
    ::kill(job.agent, SIGKILL);
    EXPECT_TRUE(ends_within(job.worker, 5000));
    EXPECT_TRUE(ends_within(job.runaway, 5000));
    EXPECT_TRUE(ends_within(job.guard, 5000)) << "the guard itself ends, too";
    ::waitpid(job.agent, nullptr, 0);
}

TEST(Guard, EmptiesTheFamilyOfAKilledAgent) {
    GuardedJob job = start_job("setsid sleep 60");  // left the session: found by its environment
    expect_nothing_left(job);
}

TEST(Guard, FindsAWipedEnvironmentByTheSession) {
    GuardedJob job = start_job("env -i sleep 60");
    expect_nothing_left(job);
}

TEST(Guard, WorksWithAnyDescriptors) {
    const std::vector<std::vector<int>> cases{{3, 4}, {0}, {1, 2}, {0, 1}, {0, 1, 2, 3}, {2, 3}};
    for (const std::vector<int>& free : cases) {
        SCOPED_TRACE("first free descriptor: " + std::to_string(free.front()));
        GuardedJob job = start_job("setsid sleep 60", free);
        ASSERT_TRUE(job.guard);
        EXPECT_FALSE(ends_within(job.guard, 50)) << "a guard that takes its agent for dead kills the workers";
        EXPECT_FALSE(ends_within(job.runaway, 0));
        expect_nothing_left(job);
    }
}

TEST(Guard, RemovesThePrivateDirectoryAndFollowsNoLink) {
    std::string base = ::testing::TempDir() + "/guard-XXXXXX";
    ASSERT_NE(::mkdtemp(base.data()), nullptr);
    const std::string mine = base + "/mine";
    const std::string others = base + "/others";
    std::filesystem::create_directories(mine + "/deep/er");
    std::filesystem::create_directories(others);
    std::ofstream(others + "/kept") << "text";
    std::ofstream(mine + "/deep/er/file") << "text";
    std::filesystem::create_symlink(others, mine + "/deep/link");
    std::filesystem::create_symlink(others, base + "/linked");
    for (const std::string& directory : {mine, base + "/linked", base + "/missing"}) {
        GuardedJob job = start_job("setsid sleep 60", {}, directory);
        expect_nothing_left(job);
    }
    EXPECT_FALSE(std::filesystem::exists(mine));
    EXPECT_TRUE(std::filesystem::exists(others + "/kept"));
    EXPECT_TRUE(std::filesystem::is_symlink(base + "/linked")) << "not a directory: not ours";
    std::filesystem::remove_all(base);
}

TEST(Guard, MayBeStartedWhileThreadsRun) {
    std::promise<void> enough;
    std::thread other([&enough] { enough.get_future().wait(); });
    auto guard = Guard::start({"1234", "", ""});
    ASSERT_TRUE(guard);
    EXPECT_FALSE(ends_within(Fd(::dup(guard->pidfd())), 0));
    guard->dismiss();
    EXPECT_EQ(::waitpid(guard->pid(), nullptr, WNOHANG), -1) << "reaped";
    enough.set_value();
    other.join();
}

TEST(Guard, TellsItsEnd) {
    auto guard = Guard::start({"1234", "", ""});
    ASSERT_TRUE(guard);
    ::kill(guard->pid(), SIGKILL);
    EXPECT_TRUE(ends_within(Fd(::dup(guard->pidfd())), 5000));
    guard->dismiss();  // reaps it
    EXPECT_EQ(::waitpid(guard->pid(), nullptr, WNOHANG), -1);
}

TEST(Guard, SurvivesPoliteSignals) {
    GuardedJob job = start_job("setsid sleep 60");
    ASSERT_TRUE(job.guard);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        ::syscall(SYS_pidfd_send_signal, job.guard.get(), signal, nullptr, 0U);
    }
    expect_nothing_left(job);
}

TEST(Guard, LeavesAtOnceWhenDismissed) {
    auto guard = Guard::start({"1234", "", ""});
    ASSERT_TRUE(guard);
    const Fd pidfd = pidfd_of(guard->pid());
    EXPECT_FALSE(ends_within(pidfd, 0));
    guard->dismiss();
    EXPECT_TRUE(ends_within(pidfd, 0));
    EXPECT_EQ(::waitpid(guard->pid(), nullptr, WNOHANG), -1) << "reaped";
    guard->dismiss();  // harmless
}

TEST(Guard, HasItsOwnSessionAndNameAndNoneOfOurDescriptors) {
    Pipe output;
    auto guard = Guard::start({"1234", "", ""});
    ASSERT_TRUE(guard);
    // Once the guard has let go of the write end, which it inherited by fork, the pipe ends.
    EXPECT_EQ(output.read_until(), "");
    const auto facts = read_process(guard->pid());
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->command, "ddl-guard");
    EXPECT_EQ(facts->session, guard->pid());
    guard->dismiss();
}

TEST(Guard, IsNotHeldUpByOneThatIsStopped) {
    auto guard = Guard::start({"1234", "", ""});
    ASSERT_TRUE(guard);
    ::kill(guard->pid(), SIGSTOP);
    constexpr int kMoreThanAPipeHolds = 20000;
    for (int i = 0; i < kMoreThanAPipeHolds; ++i) {
        guard->note_session(1);
    }
    ::kill(guard->pid(), SIGKILL);
    guard->dismiss();
}

}  // namespace
}  // namespace ddl::os
