// Who must agree, and until when a coordinator may act.
#include "core/quorum.hpp"

#include <gmock/gmock.h>

namespace ddl::core {
namespace {

using std::chrono::seconds;

wire::RoundConfig round_of(std::uint32_t counter, const std::vector<std::string>& voters) {
    wire::RoundConfig round;
    round.generation = {0, counter};
    round.nodes = static_cast<int>(voters.size());
    for (const std::string& voter : voters) {
        round.voters.push_back({voter, voter, "", 1});
    }
    return round;
}

Instant at(int second) {
    return Instant{} + seconds(second);
}

TEST(Quorum, NobodyIsAskedBeforeTheFirstRound) {
    const Quorum quorum(seconds(5), "a");
    EXPECT_TRUE(quorum.enough({}));
    EXPECT_EQ(quorum.until(), std::nullopt);
    EXPECT_TRUE(quorum.holds(at(1000)));
}

TEST(Quorum, TheSittingCoordinatorNeedsHalfItselfIncluded) {
    Quorum quorum(seconds(5), "a");
    quorum.agreed(round_of(1, {"a", "b"}), at(0));
    EXPECT_TRUE(quorum.enough({})) << "of two, one that coordinates is enough";
    quorum.agreed(round_of(2, {"a", "b", "c", "d"}), at(0));
    EXPECT_FALSE(quorum.enough({}));
    EXPECT_TRUE(quorum.enough({"d"}));
    quorum.agreed(round_of(3, {"a", "b", "c", "d", "e"}), at(0));
    EXPECT_FALSE(quorum.enough({"d"}));
    EXPECT_TRUE(quorum.enough({"d", "e"}));
}

TEST(Quorum, AChallengerNeedsMoreThanHalf) {
    Quorum quorum(seconds(5), "b");
    quorum.challenge({round_of(1, {"a", "b"})});
    EXPECT_FALSE(quorum.enough({}));
    quorum.challenge({round_of(1, {"a", "b", "c", "d"})});
    EXPECT_FALSE(quorum.enough({"c"}));
    EXPECT_TRUE(quorum.enough({"c", "d"}));
    EXPECT_FALSE(quorum.enough({"c", "stranger"}));
}

TEST(Quorum, ARoundThatMayBeAgreedOnCountsToo) {
    Quorum quorum(seconds(5), "b");
    quorum.challenge({round_of(1, {"a", "b", "c"}), round_of(2, {"a", "d", "e"})});
    EXPECT_FALSE(quorum.enough({"c"})) << "round 2 may have begun without this one's knowledge";
    EXPECT_FALSE(quorum.enough({"d", "e"}));
    EXPECT_TRUE(quorum.enough({"c", "d", "e"}));
    EXPECT_EQ(quorum.latest(), (Generation{0, 2}));
}

TEST(Quorum, StandsForVotersThatAreKnownToBeDead) {
    Quorum quorum(seconds(5), "a2");
    quorum.challenge({round_of(1, {"a", "b"})}, {"a"});
    EXPECT_FALSE(quorum.enough({}));
    EXPECT_TRUE(quorum.enough({"b"}));
    quorum.inherit({"b"});
    EXPECT_TRUE(quorum.enough({}));
}

TEST(Quorum, LastsAsLongAsTheLatestPromisesThatAreEnough) {
    Quorum quorum(seconds(5), "a");
    quorum.agreed(round_of(1, {"a", "b", "c", "d", "e"}), at(10));
    EXPECT_EQ(quorum.until(), at(15));
    quorum.heard("b", at(20));
    EXPECT_EQ(quorum.until(), at(15)) << "two others are needed";
    quorum.heard("c", at(18));
    EXPECT_EQ(quorum.until(), at(23));
    quorum.heard("c", at(12));
    EXPECT_EQ(quorum.until(), at(23)) << "an older word takes nothing back";
    EXPECT_TRUE(quorum.holds(at(22)));
    EXPECT_FALSE(quorum.holds(at(23)));
}

TEST(Quorum, EndsAtOnceWithTheConnections) {
    Quorum quorum(seconds(5), "a");
    quorum.agreed(round_of(1, {"a", "b", "c"}), at(10));
    quorum.lost("b");
    EXPECT_TRUE(quorum.holds(at(11)));
    quorum.lost("c");
    EXPECT_FALSE(quorum.holds(at(11)));
    EXPECT_EQ(quorum.text(at(11)), "1 of the 3 voters of round 1 are here, 2 are needed");
    quorum.heard("stranger", at(11));
    EXPECT_FALSE(quorum.holds(at(11)));
}

TEST(Quorum, TellsWhoVotes) {
    Quorum quorum(seconds(5), "a");
    quorum.challenge({round_of(1, {"a", "b"}), round_of(2, {"c"}), wire::RoundConfig{}});
    EXPECT_TRUE(quorum.is_voter("c"));
    EXPECT_FALSE(quorum.is_voter("d"));
    EXPECT_EQ(quorum.voters().size(), 3U);
}

}  // namespace
}  // namespace ddl::core
