// A console that nobody reads: nothing blocks, nothing of the workers is lost, order holds, the descriptor is left
// alone.
#include "run/console_output.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <csignal>

#include "os/clock.hpp"
#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

std::string lines(const std::string& word, std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) {
        text += word + " " + std::to_string(text.size()) + "\n";
    }
    return text;
}

class ConsoleOutputTest : public ::testing::Test {
protected:
    void SetUp() override {
        ::signal(SIGPIPE, SIG_IGN);
    }
    std::string read_all() {
        std::string all;
        for (std::string piece = pipe_.take(); !piece.empty(); piece = pipe_.take()) {
            all += piece;
            output_.flush();
        }
        return all;
    }

    testing::NarrowPipe pipe_;
    ConsoleOutput output_{pipe_.write.get()};
};

TEST_F(ConsoleOutputTest, WhatTheReaderDoesNotTakeWaitsAndComesInOrder) {
    const std::string workers = lines("worker", 3 * ConsoleOutput::kFullBytes);
    EXPECT_TRUE(output_.write(workers));
    output_.say("ddlaunch: own line\n");
    EXPECT_TRUE(output_.write("after it\n"));
    EXPECT_TRUE(output_.full());
    EXPECT_TRUE(read_all() == workers + "ddlaunch: own line\nafter it\n");
    EXPECT_EQ(output_.waiting_bytes(), 0U);
    EXPECT_FALSE(output_.full());
}

TEST_F(ConsoleOutputTest, TheSharedDescriptorStaysAsItIs) {
    EXPECT_TRUE(output_.write(lines("x", 100'000)));
    net::Loop loop;
    output_.attach(loop, [] {});
    EXPECT_EQ(::fcntl(pipe_.write.get(), F_GETFL) & O_NONBLOCK, 0);
    output_.detach();
    EXPECT_EQ(::fcntl(pipe_.write.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(ConsoleOutputTest, PiecesEndWithALineSoThatOthersMayWriteBetweenThem) {
    EXPECT_TRUE(output_.write(lines("a line", 50'000)));
    EXPECT_EQ(pipe_.take().back(), '\n');
    output_.flush();
    EXPECT_EQ(pipe_.take().back(), '\n');
}

TEST_F(ConsoleOutputTest, OwnLinesAreBoundedAndTheirLossIsSaid) {
    const std::string line = std::string(1023, 'o') + "\n";
    for (int count = 0; count < 100; ++count) {
        output_.say(line);
    }
    EXPECT_LE(output_.waiting_bytes(), ConsoleOutput::kOwnBytes + line.size());
    const std::string seen = read_all();
    const std::size_t kept = static_cast<std::size_t>(std::count(seen.begin(), seen.end(), '\n')) - 1;
    EXPECT_EQ(seen.substr(kept * line.size()), "ddlaunch: " + std::to_string(100 - kept) +
                                                   " lines of the launcher are left out here: nobody read this "
                                                   "console\n");
    EXPECT_GE(kept, ConsoleOutput::kOwnBytes / line.size());
    output_.say("again\n");
    EXPECT_EQ(read_all(), "again\n");
}

TEST_F(ConsoleOutputTest, TheNoticeOfALossStartsALine) {
    EXPECT_TRUE(output_.write("prompt> "));
    output_.say(std::string(ConsoleOutput::kOwnBytes + 5000, 'o'));
    output_.say("dropped\n");
    const std::string seen = read_all();
    EXPECT_NE(seen.find("o\nddlaunch: 1 lines"), std::string::npos);
}

TEST_F(ConsoleOutputTest, TheLoopGoesOnWhenTheReaderComesAndTellsOfRoom) {
    net::Loop loop;
    int rooms = 0;
    output_.attach(loop, [&] { ++rooms; });
    const std::string text = lines("worker", 2 * ConsoleOutput::kFullBytes);
    EXPECT_TRUE(output_.write(text));
    std::string seen;
    const auto reader = loop.watch_readable(pipe_.read.get(), [&] {
        EXPECT_EQ(rooms > 0, output_.waiting_bytes() <= ConsoleOutput::kFullBytes / 4);
        seen += pipe_.take();
        if (seen.size() >= text.size()) {
            loop.stop();
        }
    });
    loop.run();
    EXPECT_TRUE(seen == text);
    EXPECT_EQ(rooms, 1);
    output_.detach();
}

TEST_F(ConsoleOutputTest, AReaderThatGoesAwayDropsWhatWaitsAndMakesRoom) {
    net::Loop loop;
    output_.attach(loop, [&] { loop.stop(); });
    EXPECT_TRUE(output_.write(lines("worker", 2 * ConsoleOutput::kFullBytes)));
    pipe_.read.reset();
    loop.run();
    EXPECT_EQ(output_.waiting_bytes(), 0U);
    EXPECT_FALSE(output_.write("x\n"));
    output_.say("to nobody\n");
    EXPECT_EQ(output_.waiting_bytes(), 0U);
    output_.detach();
}

TEST_F(ConsoleOutputTest, DrainEndsWithASignalOrWithoutProgress) {
    EXPECT_TRUE(output_.write(lines("worker", 100'000)));
    const Instant start = os::now();
    const testing::NarrowPipe signals;
    ASSERT_EQ(::write(signals.write.get(), "x", 1), 1);
    drain({output_, output_}, signals.read.get(), [] { return true; });
    EXPECT_LT(os::now() - start, std::chrono::milliseconds(900));
    drain({output_, output_});
    EXPECT_GE(os::now() - start, std::chrono::seconds(1));
    EXPECT_LT(os::now() - start, std::chrono::seconds(9));
    EXPECT_GT(output_.waiting_bytes(), 0U);
}

TEST(ConsoleOutput, ASocketThatNobodyReadsDoesNotBlockEither) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const os::Fd reader(ends[0]);
    const os::Fd writer(ends[1]);
    ConsoleOutput output(writer.get());
    const std::string text = lines("worker", 1U << 20U);
    EXPECT_TRUE(output.write(text));
    EXPECT_GT(output.waiting_bytes(), 0U);
    std::string seen;
    std::array<char, 65536> bytes{};
    while (seen.size() < text.size()) {
        const ssize_t got = ::read(reader.get(), bytes.data(), bytes.size());
        ASSERT_GT(got, 0);
        seen.append(bytes.data(), static_cast<std::size_t>(got));
        output.flush();
    }
    EXPECT_TRUE(seen == text);
}

TEST(ConsoleOutput, ARegularFileTakesEverythingAtOnce) {
    testing::CapturedConsole captured;
    const std::string text = lines("worker", 1U << 20U);
    EXPECT_TRUE(captured.output().write(text));
    EXPECT_EQ(captured.output().waiting_bytes(), 0U);
    EXPECT_TRUE(captured.take() == text);
}

// A terminal that Ctrl-S has stopped.
TEST(ConsoleOutput, AStoppedTerminalDoesNotBlock) {
    const os::Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) {
        GTEST_SKIP() << "no pseudo-terminals here";
    }
    const os::Fd terminal(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(terminal);
    ConsoleOutput output(terminal.get());
    ASSERT_EQ(::write(master.get(), "\x13", 1), 1);
    pollfd stopped{terminal.get(), POLLOUT, 0};
    while (::poll(&stopped, 1, 0) != 0) {  // the kernel hands the key over in a thread of its own
        ::sched_yield();
    }
    EXPECT_TRUE(output.write("held back\n"));
    EXPECT_EQ(output.waiting_bytes(), 10U);
    ASSERT_EQ(::write(master.get(), "\x11", 1), 1);
    drain({output, output});
    EXPECT_EQ(output.waiting_bytes(), 0U);
}

}  // namespace
}  // namespace ddl::run
