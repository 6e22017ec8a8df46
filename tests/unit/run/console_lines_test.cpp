#include "run/console_lines.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "run/console.hpp"
#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

class ConsoleLinesTest : public ::testing::Test {
protected:
    testing::CapturedConsole console_;
    ConsoleLines lines_{console_.output()};
};

TEST_F(ConsoleLinesTest, OneStreamWithoutPrefixPassesByteByByte) {
    for (const char* piece : {"a\n", "50%\r", "100%\r", "\n", "no end", " still", "\n\n", "last"}) {
        EXPECT_TRUE(lines_.write(0, "", piece));
    }
    EXPECT_EQ(console_.take(), "a\n50%\r100%\r\nno end still\n\nlast");
}

TEST_F(ConsoleLinesTest, FragmentsOfTwoStreamsAreNeverGlued) {
    lines_.write(0, "", "zero");
    lines_.write(1, "", "one\n");
    lines_.write(0, "", " goes on\n");
    lines_.write(0, "", "10%\r");
    lines_.write(1, "", "two\n");
    EXPECT_EQ(console_.take(), "zero\none\n goes on\n10%\r\ntwo\n");
}

TEST_F(ConsoleLinesTest, EachLineGetsThePrefixOnce) {
    lines_.write(0, "[0]:", "a\nb\n\nc");
    lines_.write(0, "[0]:", "c\nd");
    lines_.write(1, "[1]:", "e");
    lines_.write(0, "[0]:", "d\n");
    EXPECT_EQ(console_.take(), "[0]:a\n[0]:b\n[0]:\n[0]:cc\n[0]:d\n[1]:e\n[0]:d\n");
}

TEST_F(ConsoleLinesTest, AProgressBarGetsThePrefixAgain) {
    lines_.write(0, "[0]:", "10%\r20%\r");
    lines_.write(0, "[0]:", "30%\r\nend\r\n");
    EXPECT_EQ(console_.take(), "[0]:10%\r[0]:20%\r[0]:30%\r\n[0]:end\r\n");
}

TEST_F(ConsoleLinesTest, EndsAnOpenLineForTheLauncher) {
    lines_.write(0, "", "prompt> ");
    EXPECT_TRUE(lines_.end_line());
    EXPECT_TRUE(lines_.end_line());
    lines_.write(0, "", "x\n");
    EXPECT_TRUE(lines_.end_line());
    EXPECT_EQ(console_.take(), "prompt> \nx\n");
}

TEST(ConsoleLinesOnAClosedPipe, SaysThatItIsGone) {
    ::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const os::Fd write_end(ends[1]);
    ::close(ends[0]);
    ConsoleOutput output(write_end.get());
    ConsoleLines lines(output);
    EXPECT_FALSE(lines.write(0, "", "x\n"));
    EXPECT_FALSE(lines.write(0, "", ""));
    EXPECT_FALSE(lines.end_line());
}

TEST(Console, MarksItsLines) {
    testing::CapturedConsole captured;
    const Console console("n1", false, captured.output());
    console.note("2 of 4 nodes");
    console.warn("disk full");
    console.error("no such program");
    console.print("as it is\nwith lines");
    EXPECT_EQ(captured.take(),
              "ddlaunch[n1]: 2 of 4 nodes\nddlaunch[n1]: warning: disk full\nddlaunch[n1]: error: no such program\n"
              "as it is\nwith lines\n");
}

TEST(Console, QuietLeavesOutNotesOnly) {
    testing::CapturedConsole captured;
    const Console console("n1", true, captured.output());
    console.note("2 of 4 nodes");
    console.warn("disk full");
    EXPECT_EQ(captured.take(), "ddlaunch[n1]: warning: disk full\n");
}

}  // namespace
}  // namespace ddl::run
