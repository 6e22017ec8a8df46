#include "run/worker_stream.hpp"

#include <gtest/gtest.h>

#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};

class WorkerStreamTest : public ::testing::Test {
protected:
    WorkerStream stream(StreamTargets targets = {}) {
        targets.console = &lines_;
        return WorkerStream(std::move(targets), [this](StreamTrouble trouble, int error) {
            trouble_ = trouble;
            error_ = error;
        });
    }
    os::Fd file(const std::string& name) {
        return os::Fd(::open((directory_ / name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }

    testing::ScratchDirectory directory_;
    testing::CapturedConsole console_;
    ConsoleLines lines_{console_.output()};
    StreamTrouble trouble_ = StreamTrouble::kNone;
    int error_ = 0;
};

TEST_F(WorkerStreamTest, PutsWholeLinesOutAtOnceAndHoldsTheRest) {
    WorkerStream worker = stream();
    worker.feed("one\ntw", kStart);
    EXPECT_EQ(console_.take(), "one\n");
    EXPECT_EQ(worker.flush_at(), kStart + 100ms);
    worker.feed("o\n", kStart + 50ms);
    EXPECT_EQ(console_.take(), "two\n");
    EXPECT_EQ(worker.flush_at(), std::nullopt);
}

TEST_F(WorkerStreamTest, FlushPutsOutThePromptOnce) {
    WorkerStream worker = stream();
    worker.feed("continue? ", kStart);
    EXPECT_EQ(console_.take(), "");
    worker.flush();
    worker.flush();
    EXPECT_EQ(console_.take(), "continue? ");
    EXPECT_EQ(worker.flush_at(), std::nullopt);
}

TEST_F(WorkerStreamTest, ACarriageReturnReleasesAProgressBar) {
    WorkerStream worker = stream();
    worker.feed("10%\r20", kStart);
    EXPECT_EQ(console_.take(), "10%\r");
    worker.feed("%\r", kStart);
    EXPECT_EQ(console_.take(), "") << "it may be half of a CR LF";
    worker.feed("\n", kStart);
    EXPECT_EQ(console_.take(), "20%\r\n");
}

TEST_F(WorkerStreamTest, TwoRanksLinesInPiecesStayWhole) {
    StreamTargets first;
    first.number = 0;
    first.prefix = "[0]:";
    StreamTargets second;
    second.number = 1;
    second.prefix = "[1]:";
    WorkerStream zero = stream(std::move(first));
    WorkerStream one = stream(std::move(second));
    for (int i = 0; i < 3; ++i) {
        zero.feed("ab", kStart);
        one.feed("12", kStart);
        zero.feed("cd\n", kStart);
        one.feed("34\n", kStart);
    }
    EXPECT_EQ(console_.take(), "[0]:abcd\n[1]:1234\n[0]:abcd\n[1]:1234\n[0]:abcd\n[1]:1234\n");
}

TEST_F(WorkerStreamTest, HoldsNoMoreThanItsLimit) {
    WorkerStream worker = stream();
    const std::string endless(100'000, 'x');
    worker.feed(endless, kStart);
    EXPECT_EQ(console_.take(), endless);
}

TEST_F(WorkerStreamTest, TheLogFileGetsEveryByteAtOnce) {
    StreamTargets targets;
    targets.prefix = "[0]:";
    targets.file = file("log");
    WorkerStream worker = stream(std::move(targets));
    worker.feed("half a li", kStart);
    EXPECT_EQ(testing::content_of(directory_ / "log"), "half a li");
    worker.feed("ne\r\n", kStart);
    EXPECT_EQ(testing::content_of(directory_ / "log"), "half a line\r\n");
    EXPECT_EQ(console_.take(), "[0]:half a line\r\n");
}

TEST_F(WorkerStreamTest, AFullDiskEndsTheFileAndNothingElse) {
    StreamTargets targets;
    targets.file = os::Fd(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    WorkerStream worker = stream(std::move(targets));
    worker.feed("one\n", kStart);
    EXPECT_EQ(trouble_, StreamTrouble::kFileFailed);
    EXPECT_EQ(error_, ENOSPC);
    trouble_ = StreamTrouble::kNone;
    worker.feed("two\n", kStart);
    EXPECT_EQ(trouble_, StreamTrouble::kNone);
    EXPECT_EQ(console_.take(), "one\ntwo\n");
}

TEST_F(WorkerStreamTest, FilterCopiesMatchingLinesOfAllRanksWithPrefix) {
    auto filter = std::make_shared<LineFilter>(LineFilter{file("filtered"), {"loss", "acc"}});
    StreamTargets first;
    first.prefix = "[0]:";
    first.filter = filter;
    StreamTargets second;
    second.number = 1;
    second.prefix = "[1]:";
    second.filter = filter;
    WorkerStream zero = stream(std::move(first));
    WorkerStream one = stream(std::move(second));
    zero.feed("lo", kStart);
    one.feed("acc=1\nother\n", kStart);
    zero.flush();  // the console's pieces are not the filter's
    zero.feed("ss=2\nxx\nacc loss\nloss without end", kStart);
    EXPECT_EQ(testing::content_of(directory_ / "filtered"), "[1]:acc=1\n[0]:loss=2\n[0]:acc loss\n");
}

TEST_F(WorkerStreamTest, KeepsATailOnlyWhenAsked) {
    StreamTargets targets;
    targets.keep_tail = true;
    WorkerStream with = stream(std::move(targets));
    WorkerStream without = stream();
    with.feed("a\nb", kStart);
    without.feed("a\nb", kStart);
    EXPECT_EQ(with.tail(), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(without.tail().empty());
}

}  // namespace
}  // namespace ddl::run
