#include "run/log_pump.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include "os/clock.hpp"
#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LogPumpTest : public ::testing::Test {
protected:
    void SetUp() override {
        ::signal(SIGPIPE, SIG_IGN);
        ::setenv("TMPDIR", temporary_.path().c_str(), 1);
        plan_.workers = 4;
        plan_.node_name = "n1.cluster";
        plan_.role = "trainer";
        plan_.logs.directory = logs_.path();
        plan_.logs.redirects.resize(4);
        plan_.logs.tees.resize(4);
        plan_.logs.on_console.assign(4, true);
    }
    void TearDown() override {
        ::unsetenv("TMPDIR");
    }
    void redirect(int rank, plan::Streams streams) {
        plan_.logs.redirects[static_cast<std::size_t>(rank)] = streams;
    }
    void tee(int rank, plan::Streams streams) {
        redirect(rank, streams);
        plan_.logs.tees[static_cast<std::size_t>(rank)] = streams;
    }
    LogPump pump() {
        return LogPump(loop_, plan_, [this](const std::string& text) { warnings_.push_back(text); },
                       {out_.output(), err_.output()});
    }
    static plan::RankPlace place(int local_rank, std::uint64_t generation = 1) {
        plan::RankPlace result;
        result.job_id = "job";
        result.generation = generation;
        result.local_rank = local_rank;
        result.rank = 10 + local_rank;
        return result;
    }
    std::string log(const std::string& name) const {
        return testing::content_of(logs_ / ("job/generation_1/0-n1.cluster/" + name));
    }
    static void write(const os::Fd& fd, const std::string& text) {
        ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }

    testing::ScratchDirectory logs_;
    testing::ScratchDirectory temporary_;
    testing::CapturedConsole out_;
    testing::CapturedConsole err_;
    net::Loop loop_;
    plan::LaunchPlan plan_;
    std::vector<std::string> warnings_;
};

TEST_F(LogPumpTest, ByDefaultStdoutIsInheritedAndStderrPassesUnchanged) {
    LogPump logs = pump();
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    EXPECT_FALSE(streams->out);
    ASSERT_TRUE(streams->err);
    write(streams->err, "Traceback:\n  File x\nValueError\n");
    logs.drain(0);
    EXPECT_EQ(err_.take(), "Traceback:\n  File x\nValueError\n");
    EXPECT_THAT(logs.stderr_tail(0), ElementsAre("Traceback:", "  File x", "ValueError"));
    EXPECT_THAT(logs.stderr_tail(3), IsEmpty());
    EXPECT_TRUE(logs_.empty()) << "nothing is made unless asked for";
}

TEST_F(LogPumpTest, LastWordsOfAKilledWorkerArrive) {
    LogPump logs = pump();
    {
        auto streams = logs.open(place(0));
        ASSERT_TRUE(streams);
        write(streams->err, "cannot go on");
    }
    logs.drain(0);
    EXPECT_EQ(err_.take(), "cannot go on");
    EXPECT_THAT(logs.stderr_tail(0), ElementsAre("cannot go on"));
}

TEST_F(LogPumpTest, ABurstOfAMegabyteArrivesComplete) {
    tee(0, {true, true});
    LogPump logs = pump();
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    std::string burst;
    while (burst.size() < (1U << 20U)) {
        burst += "line " + std::to_string(burst.size()) + "\n";
    }
    const pid_t worker = ::fork();
    if (worker == 0) {
        for (std::size_t at = 0; at < burst.size();) {
            const ssize_t count = ::write(streams->out.get(), burst.data() + at, burst.size() - at);
            at += count > 0 ? static_cast<std::size_t>(count) : burst.size();
        }
        ::_exit(0);
    }
    streams = WorkerStreams{};
    while (::waitpid(worker, nullptr, WNOHANG) == 0) {
        logs.drain(0);
    }
    logs.drain(0);
    EXPECT_EQ(log("0/stdout.log"), burst);
    const std::string shown = out_.take();
    EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), std::count(burst.begin(), burst.end(), '\n'));
}

TEST_F(LogPumpTest, TheLoopForwardsLinesAsTheyCome) {
    LogPump logs = pump();
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    int asked_for_alarm = 0;
    logs.when_deadline_is_earlier([&] {
        ++asked_for_alarm;
        loop_.stop();
    });
    write(streams->err, "one\nunfinished");
    loop_.run();
    EXPECT_EQ(err_.take(), "one\n");
    EXPECT_EQ(asked_for_alarm, 1);
    ASSERT_TRUE(logs.next_deadline());
    EXPECT_LE(*logs.next_deadline(), os::now() + 100ms);
    logs.tick(*logs.next_deadline() - 1ms);
    EXPECT_EQ(err_.take(), "");
    logs.tick(*logs.next_deadline());
    EXPECT_EQ(err_.take(), "unfinished");
    EXPECT_FALSE(logs.next_deadline());
    logs.end_line();
    EXPECT_EQ(err_.take(), "\n");
}

TEST_F(LogPumpTest, RedirectedStreamsGoStraightIntoFiles) {
    redirect(0, {true, true});
    LogPump logs = pump();
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    write(streams->out, "to stdout\n");
    write(streams->err, "a\nb\n");
    EXPECT_EQ(log("0/stdout.log"), "to stdout\n");
    EXPECT_EQ(log("0/stderr.log"), "a\nb\n");
    EXPECT_EQ(streams->error_file, logs_ / "job/generation_1/0-n1.cluster/0/error.json");
    EXPECT_THAT(logs.stderr_tail(0), ElementsAre("a", "b"));
    EXPECT_EQ(out_.take() + err_.take(), "");
    EXPECT_FALSE(std::filesystem::exists(logs_ / "job/generation_1/0-n1.cluster/1"));
}

TEST_F(LogPumpTest, TheTailOfAFileStartsWithThisRun) {
    redirect(0, {false, true});
    LogPump logs = pump();
    write(logs.open(place(0))->err, "of the first run\n");
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    EXPECT_THAT(logs.stderr_tail(0), IsEmpty());
    write(streams->err, "of the second\n");
    EXPECT_THAT(logs.stderr_tail(0), ElementsAre("of the second"));
}

TEST_F(LogPumpTest, TeeWritesFileAndPrefixedConsole) {
    tee(2, {true, true});
    LogPump logs = pump();
    auto streams = logs.open(place(2));
    ASSERT_TRUE(streams);
    write(streams->out, "a\nb\n");
    write(streams->err, "c\n");
    logs.drain(2);
    EXPECT_EQ(out_.take(), "[trainer2]:a\n[trainer2]:b\n");
    EXPECT_EQ(err_.take(), "[trainer2]:c\n");
    EXPECT_EQ(log("2/stdout.log"), "a\nb\n");
    EXPECT_EQ(log("2/stderr.log"), "c\n");
}

TEST_F(LogPumpTest, PrefixMacrosAreReplacedAndUnknownOnesStay) {
    plan_.logs.prefix_template = "${hostname}/${rank}/${local_rank}/${role_name}/${rank}/${what}> ";
    tee(1, {true, false});
    LogPump logs = pump();
    auto streams = logs.open(place(1));
    ASSERT_TRUE(streams);
    write(streams->out, "x\n");
    logs.drain(1);
    EXPECT_EQ(out_.take(), "n1/11/1/trainer/11/${what}> x\n");
}

TEST_F(LogPumpTest, RanksThatAreFilteredOutKeepFilesAndTail) {
    plan_.logs.on_console = {false, true, true, true};
    tee(0, {true, false});
    LogPump logs = pump();
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    write(streams->out, "a\n");
    write(streams->err, "last words\n");
    logs.drain(0);
    EXPECT_EQ(out_.take() + err_.take(), "");
    EXPECT_EQ(log("0/stdout.log"), "a\n");
    EXPECT_THAT(logs.stderr_tail(0), ElementsAre("last words"));

    plan_.logs.on_console[1] = false;
    auto plain = logs.open(place(1));
    ASSERT_TRUE(plain);
    EXPECT_TRUE(plain->out) << "stdout must not be the console";
    std::array<char, 64> target{};
    const std::string link = "/proc/self/fd/" + std::to_string(plain->out.get());
    ASSERT_GT(::readlink(link.c_str(), target.data(), target.size() - 1), 0);
    EXPECT_STREQ(target.data(), "/dev/null");
}

TEST_F(LogPumpTest, DuplicateFiltersCollectLinesOfAllTeedRanks) {
    plan_.logs.stdout_filters = {"loss"};
    plan_.logs.on_console[3] = false;
    tee(0, {true, false});
    tee(1, {true, false});
    tee(3, {true, false});
    LogPump logs = pump();
    for (const int rank : {0, 1, 3}) {
        auto streams = logs.open(place(rank));
        ASSERT_TRUE(streams);
        write(streams->out, "loss " + std::to_string(rank) + "\nother\n");
        logs.drain(rank);
    }
    EXPECT_EQ(log("filtered_stdout.log"), "[trainer0]:loss 0\n[trainer1]:loss 1\n");
    EXPECT_FALSE(std::filesystem::exists(logs_ / "job/generation_1/0-n1.cluster/filtered_stderr.log"));
}

TEST_F(LogPumpTest, AnUnusableLogDirectoryIsOneWarningAndTheConsole) {
    std::ofstream(logs_ / "file") << "x";
    plan_.logs.directory = logs_ / "file";
    tee(0, {true, true});
    redirect(1, {true, true});
    LogPump logs = pump();
    auto teed = logs.open(place(0));
    auto redirected = logs.open(place(1));
    ASSERT_TRUE(teed && redirected);
    write(teed->out, "a\n");
    write(redirected->err, "b\n");
    logs.drain(0);
    logs.drain(1);
    EXPECT_EQ(out_.take(), "[trainer0]:a\n");
    EXPECT_EQ(err_.take(), "b\n");
    ASSERT_EQ(warnings_.size(), 1U);
    EXPECT_NE(warnings_[0].find("the job goes on"), std::string::npos);
    EXPECT_EQ(teed->error_file.rfind(temporary_.path(), 0), 0U);
}

TEST_F(LogPumpTest, WithoutADirectoryNothingIsWritten) {
    plan_.logs.directory.clear();
    plan_.logs.stdout_filters = {"a"};
    tee(0, {true, true});
    LogPump logs = pump();
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    write(streams->out, "a\n");
    logs.drain(0);
    EXPECT_EQ(out_.take(), "[trainer0]:a\n");
    EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(LogPumpTest, ErrorFilesLieInAPrivateDirectoryThatIsRemoved) {
    {
        LogPump logs = pump();
        auto streams = logs.open(place(0));
        ASSERT_TRUE(streams);
        std::ofstream(streams->error_file) << "{}";
        EXPECT_FALSE(temporary_.empty());
    }
    EXPECT_TRUE(temporary_.empty());
}

TEST_F(LogPumpTest, AClosedConsoleIsOneWarning) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const os::Fd closed_console(ends[1]);
    ::close(ends[0]);
    ConsoleOutput output(closed_console.get());
    LogPump logs(loop_, plan_, [this](const std::string& text) { warnings_.push_back(text); }, {output, output});
    for (const int rank : {0, 1}) {
        auto streams = logs.open(place(rank));
        ASSERT_TRUE(streams);
        write(streams->err, "still kept\n");
        logs.drain(rank);
        EXPECT_THAT(logs.stderr_tail(rank), ElementsAre("still kept"));
    }
    EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(LogPumpTest, AConsoleThatNobodyReadsMakesTheWorkerWaitAndLosesNothing) {
    testing::NarrowPipe console;
    ConsoleOutput output(console.write.get());
    LogPump logs(loop_, plan_, [this](const std::string& text) { warnings_.push_back(text); }, {out_.output(), output});
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    ::fcntl(streams->err.get(), F_SETFL, O_NONBLOCK);
    std::string written;
    std::string seen;
    constexpr std::size_t kMuch = 4 * ConsoleOutput::kFullBytes;
    const auto turn = [&] {  // of the loop: the posted call comes behind what is ready
        loop_.post([this] { loop_.post([this] { loop_.stop(); }); });
        loop_.run();
    };
    const auto write_on = [&] {
        for (int refused = 0; refused < 10;) {
            const std::string line = "line " + std::to_string(written.size()) + "\n";
            const bool taken = ::write(streams->err.get(), line.data(), line.size()) > 0;
            written += taken ? line : "";
            refused = taken ? 0 : refused + 1;
            if (!taken) {
                turn();
            }
        }
    };
    write_on();
    EXPECT_GT(written.size(), ConsoleOutput::kFullBytes);
    EXPECT_LT(written.size(), kMuch) << "the worker waits";
    for (int turns = 0; turns < 100'000 && written.size() < kMuch; ++turns) {
        seen += console.take();
        write_on();
    }
    EXPECT_GE(written.size(), kMuch) << "the worker goes on";
    logs.close_round();
    for (int turns = 0; turns < 100'000 && seen.size() < written.size(); ++turns) {
        seen += console.take();
        turn();
    }
    EXPECT_TRUE(seen == written) << seen.size() << " of " << written.size();
    EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(LogPumpTest, DrainIsBoundedWhileAGrandchildKeepsThePipe) {
    LogPump logs = pump();
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    write(streams->err, "of the worker\n");
    logs.drain(0);  // returns, although the pipe is open
    write(streams->err, "of its grandchild\n");
    logs.drain(0);
    EXPECT_EQ(err_.take(), "of the worker\nof its grandchild\n");
}

TEST_F(LogPumpTest, ClosingARoundFlushesAndClosesAll) {
    LogPump logs = pump();
    auto streams = logs.open(place(0));
    ASSERT_TRUE(streams);
    write(streams->err, "partial");
    logs.close_round();
    EXPECT_EQ(err_.take(), "partial");
    EXPECT_EQ(::write(streams->err.get(), "x", 1), -1) << "nobody reads any more";
    EXPECT_EQ(errno, EPIPE);
    EXPECT_FALSE(logs.next_deadline());
    EXPECT_THAT(logs.stderr_tail(0), IsEmpty());
    EXPECT_TRUE(logs.open(place(0, 2)));
}

}  // namespace
}  // namespace ddl::run
