#include "run/stderr_tail.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/agent_message.hpp"

namespace ddl::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> last(std::string_view text, std::size_t limit = 20, std::size_t bytes = 100) {
    return last_lines(text, limit, bytes);
}

TEST(LastLines, KeepsTheOrderAndTheLimit) {
    EXPECT_THAT(last("a\nb\nc\n", 2), ElementsAre("b", "c"));
    EXPECT_THAT(last("a\nb\nc", 2), ElementsAre("b", "c"));
    EXPECT_THAT(last("a\nb", 5), ElementsAre("a", "b"));
    EXPECT_THAT(last("", 5), IsEmpty());
    EXPECT_THAT(last("a", 0), IsEmpty());
}

TEST(LastLines, LeavesOutBlankLines) {
    EXPECT_THAT(last("\n\na\n \t\n\nb\n\n", 2), ElementsAre("a", "b"));
}

TEST(LastLines, OfAProgressBarTheLastStateCounts) {
    EXPECT_THAT(last("10%\r20%\r30%\nok\r\n5%\r"), ElementsAre("30%", "ok", "5%"));
}

TEST(LastLines, CutsAndCleansLines) {
    EXPECT_THAT(last("abcdef\n", 5, 3), ElementsAre("abc"));
    EXPECT_THAT(last(std::string_view("a\0b\tc\x7f\n", 7)), ElementsAre("a?b\tc?"));
    EXPECT_THAT(last("\x1b[31mred\x1b[0m"), ElementsAre("\x1b[31mred\x1b[0m"));
}

TEST(StderrTail, KeepsTheLastLinesOfALongStream) {
    StderrTail tail;
    for (int i = 0; i < 100'000; ++i) {
        tail.feed("line " + std::to_string(i) + "\n");
    }
    const auto lines = tail.lines();
    ASSERT_EQ(lines.size(), wire::kMaxStderrTailLines);
    EXPECT_EQ(lines.front(), "line 99980");
    EXPECT_EQ(lines.back(), "line 99999");
}

TEST(StderrTail, JoinsPiecesAndSurvivesHugeOnes) {
    StderrTail tail;
    tail.feed("Value");
    tail.feed("Error: x");
    EXPECT_THAT(tail.lines(), ElementsAre("ValueError: x"));
    tail.feed("\n" + std::string(5'000'000, 'y') + "\nend\n");
    const auto lines = tail.lines();
    EXPECT_EQ(lines.back(), "end");
    EXPECT_EQ(lines[lines.size() - 2].size(), wire::kMaxLineBytes);
}

}  // namespace
}  // namespace ddl::run
