// The runner itself: a transcript that is wrong in any way must fail, with the line that is wrong.

#include "scenario/transcript.hpp"

#include <gmock/gmock.h>

namespace ddl::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

std::optional<std::string> run(const std::string& text) {
    return Transcript().run(text);
}

constexpr const char* kOneNode = "nodes 1\nstart n0 host workers=1\n";
constexpr const char* kStarted = "expect n0: start ranks 0 of 1 generation 1 restarts 0 master h0:40001\n";

TEST(Transcript, AcceptsWhatHappens) {
    EXPECT_EQ(run(std::string(kOneNode) + kStarted + "exit n0 rank=0\nexpect n0: finish 0\nexpect ended\n"),
              std::nullopt);
}

TEST(Transcript, SkipsCommentsAndEmptyLines) {
    EXPECT_EQ(run("# nothing\n\nnodes 1  # one\n"), std::nullopt);
}

TEST(Transcript, FailsOnAnEffectThatWasNotExpectedBeforeTheNextAction) {
    EXPECT_THAT(run(std::string(kOneNode) + "exit n0 rank=0\n"), Optional(HasSubstr("3: exit n0 rank=0")));
}

TEST(Transcript, FailsOnAnEffectThatWasNotExpectedUntilTheEnd) {
    EXPECT_THAT(run(kOneNode), Optional(HasSubstr("end of file: \n    not expected: n0: start ranks 0 of 1")));
}

TEST(Transcript, FailsOnAnotherEffectThanExpected) {
    EXPECT_THAT(run(std::string(kOneNode) + "expect n0: finish 0\n"),
                Optional(HasSubstr("3: expect n0: finish 0\n    instead: n0: start ranks 0 of 1")));
}

TEST(Transcript, FailsWhenNothingCame) {
    EXPECT_THAT(run(std::string(kOneNode) + kStarted + "expect n0: finish 0\n"),
                Optional(HasSubstr("nothing came from n0")));
}

TEST(Transcript, FailsOnExpectNothingWhenSomethingCame) {
    EXPECT_THAT(run(std::string(kOneNode) + "expect nothing\n"), Optional(HasSubstr("not expected: n0")));
}

TEST(Transcript, FailsOnAWordThatWasNotSaid) {
    EXPECT_THAT(run(std::string(kOneNode) + kStarted + "expect says n0 \"hello\"\n"), Optional(HasSubstr("not said")));
}

TEST(Transcript, FailsOnAWordThatShouldNotHaveBeenSaid) {
    EXPECT_THAT(run(std::string(kOneNode) + kStarted + "die n0 rank=0 code=3\nexpect n0: finish 3\n" +
                    "expect silence n0 \"exited with code 3\"\n"),
                Optional(HasSubstr("but it was said")));
}

TEST(Transcript, FailsOnWordsItDoesNotKnow) {
    EXPECT_THAT(run("frobnicate n0\n"), Optional(HasSubstr("not understood")));
    EXPECT_THAT(run("set speed 3\n"), Optional(HasSubstr("no such setting")));
    EXPECT_THAT(run("start n0 host colour=red\n"), Optional(HasSubstr("no such option of a node: colour")));
    EXPECT_THAT(run("expect nothing\n"), Optional(HasSubstr("nothing has been started")));
    EXPECT_THAT(run(std::string(kOneNode) + kStarted + "kill n7\n"), Optional(HasSubstr("n7 was never started")));
    EXPECT_THAT(run(std::string(kOneNode) + kStarted + "nodes 2\n"),
                Optional(HasSubstr("settings come before the first start")));
}

TEST(Transcript, FailsWhenAWorkerThatDoesNotRunIsEnded) {
    EXPECT_THAT(run(std::string(kOneNode) + kStarted + "die n0 rank=5 sig=9\n"),
                Optional(HasSubstr("rank 5 does not run on n0")));
}

TEST(Transcript, FailsWhenCoordinationHasNotEnded) {
    EXPECT_THAT(run(std::string(kOneNode) + kStarted + "expect ended\n"),
                Optional(HasSubstr("coordination has not ended")));
}

}  // namespace
}  // namespace ddl::scenario
