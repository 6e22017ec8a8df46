// Real worker processes: how they start, what their end tells, whom a signal reaches, and what is left of them.
#include "run/workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "os/host.hpp"
#include "unit/net/support.hpp"
#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

using net::test::run_until;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::StartsWith;

template <class T>
std::vector<T> all_of(const std::vector<core::AgentEvent>& events) {
    std::vector<T> found;
    for (const core::AgentEvent& event : events) {
        if (const T* one = std::get_if<T>(&event)) {
            found.push_back(*one);
        }
    }
    return found;
}

bool ends_within(const os::Fd& pidfd, int milliseconds) {
    pollfd ended{pidfd.get(), POLLIN, 0};
    return ::poll(&ended, 1, milliseconds) == 1;
}

os::Fd pidfd_of(pid_t pid) {
    return os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
}

class WorkersTest : public ::testing::Test {
protected:
    void SetUp() override {
        ::signal(SIGPIPE, SIG_IGN);
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        ::setenv("TMPDIR", scratch_.path().c_str(), 1);
        auto guard = os::Guard::start({kNonce, "", ""});
        ASSERT_TRUE(guard) << guard.error().message;
        guard_.emplace(std::move(*guard));
        auto events = EventLog::open(scratch_ / "events", "n1");
        ASSERT_TRUE(events) << events.error().message;
        event_log_ = std::move(*events);
        plan_.node_name = "n1";
        script("exit 0", 1);
    }
    void TearDown() override {
        if (workers_) {
            std::vector<int> all(static_cast<std::size_t>(plan_.workers));
            for (std::size_t rank = 0; rank < all.size(); ++rank) {
                all[rank] = static_cast<int>(rank);
            }
            workers_->signal(all, SIGKILL);
            const bool swept = run_until(loop_, [this] {
                workers_->sweep(SIGKILL);
                return all_of<core::Swept>(events_).back().certain;
            });
            EXPECT_TRUE(swept);
        }
        workers_.reset();
        pump_.reset();
        guard_->dismiss();
        ::prctl(PR_SET_CHILD_SUBREAPER, 0);
        ::unsetenv("TMPDIR");
    }

    void script(const std::string& text, int count) {
        program({"/bin/sh", "-c", text}, count);
    }
    void program(std::vector<std::string> argv, int count) {
        plan_.program.argv = std::move(argv);
        plan_.workers = count;
        plan_.logs.redirects.assign(static_cast<std::size_t>(count), {});
        plan_.logs.tees.assign(static_cast<std::size_t>(count), {});
        plan_.logs.on_console.assign(static_cast<std::size_t>(count), true);
    }
    void start(std::uint32_t counter = 1) {
        if (!workers_) {
            pump_ = std::make_unique<LogPump>(
                loop_, plan_, [](const std::string&) {}, ConsoleOutputs{console_.output(), console_.output()});
            workers_ = std::make_unique<Workers>(loop_, plan_, kNonce, *guard_, no_cgroup_, *pump_, event_log_,
                                                 [this](core::AgentEvent event) { events_.push_back(event); });
        }
        wire::Assignment round;
        round.generation = {0, counter};
        round.base_rank = 10;
        round.world_size = 20;
        round.group_rank = 3;
        round.group_world_size = 7;
        round.base_role_rank = 5;
        round.role_world_size = 9;
        round.restart_count = 2;
        round.master_addr = "10.0.0.1";
        round.master_port = 2345;
        workers_->start(round, "job-7");
    }
    // The ends of `count` workers, in the order in which they were noticed.
    std::vector<core::WorkerEnded> ends(std::size_t count) {
        run_until(loop_, [&] { return all_of<core::WorkerEnded>(events_).size() >= count; });
        return all_of<core::WorkerEnded>(events_);
    }
    std::vector<core::WorkerStarted> started() const {
        return all_of<core::WorkerStarted>(events_);
    }
    // A line that a worker writes when it is ready, and with which it tells a pid.
    pid_t pid_in(const std::string& file) {
        pid_t pid = 0;
        run_until(loop_, [&] { return static_cast<bool>(std::ifstream(scratch_ / file) >> pid) && pid > 0; });
        return pid;
    }

    static constexpr char kNonce[] = "5eed5eed5eed5eed";
    testing::ScratchDirectory scratch_;
    testing::CapturedConsole console_;
    net::Loop loop_;
    plan::LaunchPlan plan_;
    EventLog event_log_;
    std::optional<os::Guard> guard_;
    std::optional<os::WorkerCgroup> no_cgroup_;
    std::unique_ptr<LogPump> pump_;
    std::vector<core::AgentEvent> events_;
    std::unique_ptr<Workers> workers_;
};

// ---- start --------------------------------------------------------------------------------------------------------

TEST_F(WorkersTest, StartAllAndTellEachEnd) {
    script("exit $((40 + LOCAL_RANK))", 3);
    start();
    ASSERT_THAT(started(), SizeIs(3));
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(started()[static_cast<std::size_t>(rank)].local_rank, rank);
        EXPECT_GT(started()[static_cast<std::size_t>(rank)].pid, 0);
    }
    std::vector<core::WorkerEnded> ended = ends(3);
    ASSERT_THAT(ended, SizeIs(3));
    std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.local_rank < b.local_rank; });
    for (int rank = 0; rank < 3; ++rank) {
        const core::WorkerEnded& end = ended[static_cast<std::size_t>(rank)];
        EXPECT_FALSE(end.signalled);
        EXPECT_EQ(end.status, 40 + rank);
        EXPECT_FALSE(end.stopped);
    }
}

TEST_F(WorkersTest, HaveTheRoundsEnvironment) {
    ::setenv("DDLAUNCH_TOKEN", "s3cret", 1);
    ::setenv("RANK", "77", 1);
    script("env > " + (scratch_ / "env") + "$LOCAL_RANK", 2);
    start(4);
    ::unsetenv("DDLAUNCH_TOKEN");
    ::unsetenv("RANK");
    ends(2);
    const std::string environment = "\n" + testing::content_of(scratch_ / "env1");
    for (const char* line : {"RANK=11", "LOCAL_RANK=1", "WORLD_SIZE=20", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=3",
                             "GROUP_WORLD_SIZE=7", "ROLE_RANK=6", "ROLE_WORLD_SIZE=9", "MASTER_ADDR=10.0.0.1",
                             "MASTER_PORT=2345", "TORCHELASTIC_RESTART_COUNT=2", "TORCHELASTIC_RUN_ID=job-7",
                             "DDLAUNCH_GENERATION=4", "DDLAUNCH_SPAWN_ID=5eed5eed5eed5eed.2"}) {
        EXPECT_THAT(environment, HasSubstr("\n" + std::string(line) + "\n"));
    }
    EXPECT_THAT(environment, ::testing::Not(HasSubstr("s3cret")));
    EXPECT_THAT(environment, ::testing::Not(HasSubstr("\nRANK=77")));
}

TEST_F(WorkersTest, SerialsGoOnOverRounds) {
    script("echo $DDLAUNCH_SPAWN_ID >> " + (scratch_ / "ids"), 1);
    start(1);
    ends(1);
    start(2);
    ends(2);
    EXPECT_EQ(testing::content_of(scratch_ / "ids"), "5eed5eed5eed5eed.1\n5eed5eed5eed5eed.2\n");
}

TEST_F(WorkersTest, AProgramThatIsNotThereIsToldOnceWithItsReason) {
    program({"./no-such-program"}, 3);
    start();
    const auto failed = all_of<core::StartFailed>(events_);
    ASSERT_THAT(failed, SizeIs(1)) << "the others would fail alike";
    EXPECT_EQ(failed[0].local_rank, 0);
    EXPECT_EQ(failed[0].what, "exec ./no-such-program: No such file or directory");
    EXPECT_EQ(failed[0].error, ENOENT);
    EXPECT_THAT(started(), IsEmpty());
}

TEST_F(WorkersTest, OneThatCannotBeStartedLeavesTheEarlierOnesToBeEnded) {
    std::ofstream(scratch_ / "w0") << "#!/bin/sh\nexec sleep 60\n";
    ::chmod((scratch_ / "w0").c_str(), 0755);
    program({scratch_ / "w${local_rank}"}, 3);
    start();
    ASSERT_THAT(started(), SizeIs(1));
    ASSERT_THAT(all_of<core::StartFailed>(events_), SizeIs(1));
    EXPECT_EQ(all_of<core::StartFailed>(events_)[0].local_rank, 1);
    workers_->signal({0, 1, 2}, SIGKILL);
    const auto ended = ends(1);
    ASSERT_THAT(ended, SizeIs(1));
    EXPECT_TRUE(ended[0].stopped);
}

TEST_F(WorkersTest, OnlyTheOneThatWasMeantReadsOurInput) {
    std::array<int, 2> ends_of_pipe{};
    ASSERT_EQ(::pipe(ends_of_pipe.data()), 0);
    const os::Fd saved(::dup(STDIN_FILENO));
    ::dup2(ends_of_pipe[0], STDIN_FILENO);
    ::close(ends_of_pipe[0]);
    ASSERT_EQ(::write(ends_of_pipe[1], "typed\n", 6), 6);
    ::close(ends_of_pipe[1]);
    plan_.stdin_mode = plan::StdinMode::kRank;
    plan_.stdin_rank = 1;
    script("read line; echo \"got $line\" > " + (scratch_ / "in") + "$LOCAL_RANK", 2);
    start();
    ::dup2(saved.get(), STDIN_FILENO);
    ends(2);
    EXPECT_EQ(testing::content_of(scratch_ / "in0"), "got \n");
    EXPECT_EQ(testing::content_of(scratch_ / "in1"), "got typed\n");
}

// ---- death --------------------------------------------------------------------------------------------------------

TEST_F(WorkersTest, AFailureComesWithItsLastWords) {
    script("echo '{\"message\": \"no weights\"}' > $TORCHELASTIC_ERROR_FILE; echo one >&2; echo two >&2; exit 3", 1);
    start();
    const auto ended = ends(1);
    ASSERT_THAT(ended, SizeIs(1));
    EXPECT_EQ(ended[0].message, "no weights");
    EXPECT_THAT(ended[0].stderr_tail, ElementsAre("one", "two"));
    EXPECT_EQ(ended[0].error_file, "") << "it goes away with the agent, so that its name helps nobody";
}

TEST_F(WorkersTest, AnErrorFileThatStaysIsNamed) {
    plan_.logs.directory = scratch_ / "logs";
    script("echo '{\"message\": \"no weights\"}' > $TORCHELASTIC_ERROR_FILE; exit 3", 1);
    plan_.logs.redirects = {{true, true}};
    start();
    const auto ended = ends(1);
    ASSERT_THAT(ended, SizeIs(1));
    EXPECT_THAT(ended[0].error_file, StartsWith(scratch_ / "logs"));
    EXPECT_THAT(testing::content_of(ended[0].error_file), HasSubstr("no weights"));
}

TEST_F(WorkersTest, SuccessHasNoLastWords) {
    script("echo warning >&2; exit 0", 1);
    start();
    const auto ended = ends(1);
    ASSERT_THAT(ended, SizeIs(1));
    EXPECT_EQ(ended[0].status, 0);
    EXPECT_THAT(ended[0].stderr_tail, IsEmpty());
    EXPECT_EQ(ended[0].message, "");
}

TEST_F(WorkersTest, ASignalThatWeDidNotSendIsADeathOfItsOwn) {
    script("kill -SEGV $$", 1);
    start();
    const auto ended = ends(1);
    ASSERT_THAT(ended, SizeIs(1));
    EXPECT_TRUE(ended[0].signalled);
    EXPECT_EQ(ended[0].status, SIGSEGV);
    EXPECT_FALSE(ended[0].stopped);
}

TEST_F(WorkersTest, AStoppedOneIsToldFromOneThatDiedBefore) {
    script("if [ $LOCAL_RANK = 0 ]; then echo cause >&2; exit 5; fi; exec sleep 60", 2);
    start();
    ASSERT_THAT(started(), SizeIs(2));
    const os::Fd first = pidfd_of(started()[0].pid);
    ASSERT_TRUE(ends_within(first, 5000));  // the loop has not run: nobody has noticed yet
    workers_->signal({0, 1}, SIGTERM);
    auto ended = ends(2);
    ASSERT_THAT(ended, SizeIs(2));
    std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.local_rank < b.local_rank; });
    EXPECT_FALSE(ended[0].stopped) << "it had failed by itself";
    EXPECT_EQ(ended[0].status, 5);
    EXPECT_THAT(ended[0].stderr_tail, ElementsAre("cause"));
    EXPECT_TRUE(ended[1].stopped);
    EXPECT_TRUE(ended[1].signalled);
    EXPECT_EQ(ended[1].status, SIGTERM);
    EXPECT_THAT(ended[1].stderr_tail, IsEmpty());
}

TEST_F(WorkersTest, OneThatExitsInItsGraceIsStoppedWhateverItsCode) {
    script("trap 'echo stopping >&2; exit 9' TERM; echo 1 > " + (scratch_ / "up") + "; while :; do sleep 0.01; done",
           1);
    start();
    ASSERT_EQ(pid_in("up"), 1);
    workers_->signal({0}, SIGTERM);
    const auto ended = ends(1);
    ASSERT_THAT(ended, SizeIs(1));
    EXPECT_TRUE(ended[0].stopped);
    EXPECT_EQ(ended[0].status, 9);
    EXPECT_THAT(ended[0].stderr_tail, IsEmpty()) << "of a stopped one nobody asks why";
}

TEST_F(WorkersTest, OnlyThoseMeantAreSignalled) {
    script("exec sleep 60", 3);
    start();
    workers_->signal({1, 7}, SIGTERM);
    const auto ended = ends(1);
    ASSERT_THAT(ended, SizeIs(1));
    EXPECT_EQ(ended[0].local_rank, 1);
    workers_->signal({1}, SIGKILL);  // was reaped: its pid may be somebody else's by now
    workers_->signal({0, 2}, SIGKILL);
    EXPECT_THAT(ends(3), SizeIs(3));
}

TEST_F(WorkersTest, ATermReachesTheProcessGroupUnlessRanksAloneAreMeant) {
    for (const bool ranks_only : {false, true}) {
        plan_.supervision.signal_ranks_only = ranks_only;
        script("sleep 60 & echo $! > " + (scratch_ / (ranks_only ? "alone" : "group")) + "; wait", 1);
        start();
        const os::Fd helper = pidfd_of(pid_in(ranks_only ? "alone" : "group"));
        ASSERT_TRUE(helper);
        workers_->signal({0}, SIGTERM);
        ends(ranks_only ? 2 : 1);
        EXPECT_EQ(ends_within(helper, ranks_only ? 50 : 5000), !ranks_only);
    }
}

// ---- what is left -------------------------------------------------------------------------------------------------

TEST_F(WorkersTest, NothingLeftIsCertain) {
    start();
    ends(1);
    workers_->sweep(0);
    const auto swept = all_of<core::Swept>(events_);
    ASSERT_THAT(swept, SizeIs(1));
    EXPECT_EQ(swept[0].remaining, 0);
    EXPECT_TRUE(swept[0].certain);
}

TEST_F(WorkersTest, ASweepFindsWhatLeftTheSessionAndEndsIt) {
    script("setsid sleep 60 > /dev/null 2>&1 & echo $! > " + (scratch_ / "runaway"), 1);
    start();
    ends(1);
    const pid_t pid = pid_in("runaway");
    const os::Fd runaway = pidfd_of(pid);
    ASSERT_TRUE(runaway);
    workers_->sweep(0);
    auto swept = all_of<core::Swept>(events_);
    ASSERT_THAT(swept, SizeIs(1));
    EXPECT_EQ(swept[0].remaining, 1);
    EXPECT_FALSE(swept[0].certain);
    EXPECT_THAT(swept[0].example, MatchesRegex("(sleep|setsid|sh) \\(pid " + std::to_string(pid) + "\\).*"));
    EXPECT_FALSE(ends_within(runaway, 0)) << "0 only looks";
    workers_->sweep(SIGKILL);
    EXPECT_TRUE(ends_within(runaway, 5000));
    workers_->sweep(SIGKILL);
    swept = all_of<core::Swept>(events_);
    EXPECT_EQ(swept.back().remaining, 0);
    EXPECT_TRUE(swept.back().certain) << "with the guard alive: it does not count";
}

TEST_F(WorkersTest, ASweepSparesLivingWorkers) {
    script("[ $LOCAL_RANK = 0 ] && exit 1; exec sleep 60", 2);
    start();
    ends(1);
    workers_->sweep(SIGKILL);
    EXPECT_TRUE(all_of<core::Swept>(events_).back().certain);
    EXPECT_FALSE(ends_within(pidfd_of(started()[1].pid), 0));
}

TEST_F(WorkersTest, OrphansThatEndAreReapedWorkersAreTold) {
    script("[ $LOCAL_RANK = 0 ] && { (sleep 0.01 & echo $! > " + (scratch_ / "orphan") + "); exec sleep 60; }; exit 6",
           2);
    start();
    const pid_t orphan = pid_in("orphan");
    ASSERT_GT(orphan, 0);
    const os::Fd orphan_fd = pidfd_of(orphan);
    if (orphan_fd) {
        ASSERT_TRUE(ends_within(orphan_fd, 5000));
    }
    run_until(loop_, [&] {
        workers_->reap_orphans();
        return ::kill(orphan, 0) != 0;
    });
    EXPECT_EQ(::kill(orphan, 0), -1) << "no zombie stays";
    const auto ended = ends(1);
    ASSERT_THAT(ended, SizeIs(1)) << "a worker's end is told once, whoever notices it";
    EXPECT_EQ(ended[0].local_rank, 1);
    EXPECT_EQ(ended[0].status, 6);
}

TEST_F(WorkersTest, AKillThatIsNotOursIsADeathOfItsOwnEvenInTheGrace) {
    script("trap '' TERM; echo 1 > " + (scratch_ / "up") + "; while :; do sleep 0.01; done", 1);
    start();
    ASSERT_EQ(pid_in("up"), 1);
    workers_->signal({0}, SIGTERM);
    ::kill(started()[0].pid, SIGKILL);  // the kernel, short of memory
    const auto ended = ends(1);
    ASSERT_THAT(ended, SizeIs(1));
    EXPECT_TRUE(ended[0].signalled);
    EXPECT_EQ(ended[0].status, SIGKILL);
    EXPECT_FALSE(ended[0].stopped);
}

TEST_F(WorkersTest, TheEventLogHasEveryStartAndEnd) {
    script("exit $LOCAL_RANK", 2);
    start(6);
    ends(2);
    const std::string log = testing::content_of(scratch_ / "events");
    std::size_t starts = 0;
    std::size_t finishes = 0;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_THAT(line, HasSubstr("\"generation\":6"));
        starts += line.find("\"worker_exec\"") != std::string::npos ? 1 : 0;
        finishes += line.find("\"worker_reaped\"") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(starts, 2U);
    EXPECT_EQ(finishes, 2U);
    EXPECT_THAT(log, HasSubstr("\"pid\":" + std::to_string(started()[0].pid)));
}

}  // namespace
}  // namespace ddl::run
