#include "core/placement.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace ddl::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kNoLimit = 1000;

// A candidate in short: fluent setters keep the tables below readable.
struct Who : Candidate {
    explicit Who(const std::string& name, int workers = 1) {
        static std::uint32_t next_peer = 100;
        peer = static_cast<PeerId>(next_peer++);
        facts.name = name;
        facts.workers = workers;
    }
    Who owner() const {
        Who copy = *this;
        copy.owns_endpoint = true;
        return copy;
    }
    Who asks(int rank) const {
        Who copy = *this;
        copy.facts.requested_rank = rank;
        return copy;
    }
    Who order(int value) const {
        Who copy = *this;
        copy.facts.scheduler_order = value;
        return copy;
    }
    Who was(int rank) const {
        Who copy = *this;
        copy.survivor_of = rank;
        return copy;
    }
    Who unreachable() const {
        Who copy = *this;
        copy.reachable = false;
        return copy;
    }
    Who role(const std::string& name) const {
        Who copy = *this;
        copy.facts.role = name;
        return copy;
    }
};

std::vector<std::string> names(const std::vector<Candidate>& order) {
    std::vector<std::string> result;
    for (const Candidate& candidate : order) {
        result.push_back(candidate.facts.name);
    }
    return result;
}

// The same whatever the order in which candidates are given: each permutation is tried.
std::vector<std::string> placed(std::vector<Candidate> candidates, const std::vector<FormerPlace>& former = {},
                                std::size_t limit = kNoLimit) {
    const auto by_peer = [](const Candidate& a, const Candidate& b) {
        return a.peer < b.peer;
    };
    std::sort(candidates.begin(), candidates.end(), by_peer);
    const std::vector<std::string> first = names(place(candidates, former, limit));
    while (std::next_permutation(candidates.begin(), candidates.end(), by_peer)) {
        EXPECT_EQ(names(place(candidates, former, limit)), first);
    }
    return first;
}

const std::vector<FormerPlace> kThree = {{"n0", 1}, {"n1", 1}, {"n2", 1}};

// ---- a job's first round ----------------------------------------------------------------------------------------

TEST(FirstPlacement, OfNobodyIsEmpty) {
    EXPECT_THAT(placed({}), IsEmpty());
}

TEST(FirstPlacement, SortsNamesAsPeopleDo) {
    EXPECT_THAT(placed({Who("n10"), Who("n2"), Who("n1"), Who("m30")}), ElementsAre("m30", "n1", "n2", "n10"));
}

TEST(FirstPlacement, PutsTheEndpointsOwnerFirst) {
    EXPECT_THAT(placed({Who("n1"), Who("n2"), Who("z").owner()}), ElementsAre("z", "n1", "n2"));
}

TEST(FirstPlacement, FollowsTheSchedulersOrderRatherThanNames) {
    EXPECT_THAT(placed({Who("a").order(2), Who("b").order(1), Who("c").order(0)}), ElementsAre("c", "b", "a"));
}

TEST(FirstPlacement, PutsWhomTheSchedulerDoesNotKnowLast) {
    EXPECT_THAT(placed({Who("a"), Who("b").order(7)}), ElementsAre("b", "a"));
}

TEST(FirstPlacement, PutsTheOwnerBeforeTheSchedulersFirst) {
    EXPECT_THAT(placed({Who("a").order(0), Who("b").order(1).owner()}), ElementsAre("b", "a"));
}

TEST(FirstPlacement, GivesAskedRanks) {
    EXPECT_THAT(placed({Who("a").asks(2), Who("b").asks(0), Who("c").asks(1)}), ElementsAre("b", "c", "a"));
}

TEST(FirstPlacement, FillsTheOthersAroundAskedRanks) {
    EXPECT_THAT(placed({Who("a"), Who("b").asks(0), Who("c"), Who("d").asks(2)}), ElementsAre("b", "a", "d", "c"));
}

TEST(FirstPlacement, PrefersAnAskedRankZeroToTheOwner) {
    EXPECT_THAT(placed({Who("h").owner(), Who("n").asks(0)}), ElementsAre("n", "h"));
}

TEST(FirstPlacement, TreatsARankBeyondTheNodesAsNotAsked) {
    EXPECT_THAT(placed({Who("a").asks(9), Who("b"), Who("c").asks(-4)}), ElementsAre("a", "b", "c"));
}

TEST(FirstPlacement, GivesARankThatTwoAskForToTheEarlierOfThem) {
    EXPECT_THAT(placed({Who("a").asks(1), Who("b").asks(1), Who("c")}), ElementsAre("b", "a", "c"));
}

TEST(FirstPlacement, TellsNodesOfOneNameApartByTheirConnection) {
    const Who first("same");
    const Who second("same");
    const auto order = place({second, first}, {}, kNoLimit);
    EXPECT_EQ(order[0].peer, first.peer);
    EXPECT_EQ(order[1].peer, second.peer);
}

TEST(FirstPlacement, TakesNoMoreThanTheLimit) {
    EXPECT_THAT(placed({Who("c"), Who("b"), Who("a")}, {}, 2), ElementsAre("a", "b"));
}

// ---- reachability -----------------------------------------------------------------------------------------------

TEST(Placement, NeverPutsAnUnreachableNodeFirst) {
    EXPECT_THAT(placed({Who("a").unreachable(), Who("b").unreachable(), Who("c")}), ElementsAre("c", "a", "b"));
    EXPECT_THAT(placed({Who("a").asks(0).unreachable(), Who("b").asks(1)}), ElementsAre("b", "a"));
    EXPECT_THAT(placed({Who("n1").was(1).unreachable(), Who("n2").was(2)}, kThree), ElementsAre("n2", "n1"));
}

TEST(Placement, LeavesTheOrderWhenNobodyIsReachable) {
    EXPECT_THAT(placed({Who("a").unreachable(), Who("b").unreachable()}), ElementsAre("a", "b"));
}

// ---- later rounds -----------------------------------------------------------------------------------------------

TEST(NextPlacement, KeepsTheOrderOfSurvivorsAgainstNamesOwnersAndAskedRanks) {
    EXPECT_THAT(
        placed({Who("z").was(0), Who("a").was(1).asks(0), Who("h").was(2).owner()}, {{"z", 1}, {"a", 1}, {"h", 1}}),
        ElementsAre("z", "a", "h"));
}

TEST(NextPlacement, ClosesHolesThatNobodyFills) {
    EXPECT_THAT(placed({Who("n2").was(2), Who("n0").was(0)}, kThree), ElementsAre("n0", "n2"));
}

TEST(NextPlacement, MovesRankZeroToTheNextSurvivor) {
    EXPECT_THAT(placed({Who("n2").was(2), Who("n1").was(1)}, kThree), ElementsAre("n1", "n2"));
}

TEST(NextPlacement, PutsASpareIntoTheHole) {
    EXPECT_THAT(placed({Who("n0").was(0), Who("n2").was(2), Who("x9")}, kThree), ElementsAre("n0", "x9", "n2"));
}

TEST(NextPlacement, PutsASpareIntoTheHoleAtRankZero) {
    EXPECT_THAT(placed({Who("x9"), Who("n1").was(1), Who("n2").was(2)}, kThree), ElementsAre("x9", "n1", "n2"));
}

TEST(NextPlacement, AppendsNewcomersWithoutAHole) {
    EXPECT_THAT(placed({Who("n0").was(0), Who("n1").was(1), Who("n2").was(2), Who("a10"), Who("a9")}, kThree),
                ElementsAre("n0", "n1", "n2", "a9", "a10"));
}

TEST(NextPlacement, GivesAReturningNodeItsOldPlaceByName) {
    EXPECT_THAT(placed({Who("n0").was(0), Who("n2"), Who("n1")}, kThree), ElementsAre("n0", "n1", "n2"));
}

TEST(NextPlacement, PrefersWhoReturnsToAStrangerThatSortsEarlier) {
    EXPECT_THAT(placed({Who("n0").was(0), Who("a"), Who("n2"), Who("n1").was(1)}, kThree, 3),
                ElementsAre("n0", "n1", "n2"));
}

TEST(NextPlacement, PrefersTheSameWorkerCount) {
    const std::vector<FormerPlace> former = {{"n0", 4}, {"n1", 2}, {"n2", 8}};
    EXPECT_THAT(placed({Who("n0", 4).was(0), Who("x", 8), Who("y", 2)}, former), ElementsAre("n0", "y", "x"));
}

TEST(NextPlacement, PrefersTheNameToTheWorkerCount) {
    const std::vector<FormerPlace> former = {{"n0", 4}, {"n1", 2}, {"n2", 8}};
    EXPECT_THAT(placed({Who("n0", 4).was(0), Who("n1", 8), Who("y", 2)}, former), ElementsAre("n0", "n1", "y"));
}

TEST(NextPlacement, TakesAnySpareRatherThanNone) {
    EXPECT_THAT(placed({Who("n0").was(0), Who("n2").was(2), Who("big", 8)}, kThree), ElementsAre("n0", "big", "n2"));
}

TEST(NextPlacement, LetsSurvivorsGoBeforeNewcomersWhenThereAreTooMany) {
    EXPECT_THAT(placed({Who("a"), Who("b"), Who("n0").was(0), Who("n2").was(2)}, kThree, 3),
                ElementsAre("n0", "a", "n2"));
}

TEST(NextPlacement, IgnoresPlacesThatCannotBe) {
    EXPECT_THAT(placed({Who("n0").was(0), Who("odd").was(17)}, kThree), ElementsAre("n0", "odd"));
}

TEST(NextPlacement, GivesOnePlaceToOneNode) {
    const auto order = place({Who("n1").was(1), Who("copy").was(1), Who("n0").was(0)}, kThree, kNoLimit);
    EXPECT_THAT(names(order), ElementsAre("n0", "n1", "copy"));
}

TEST(NextPlacement, OfOneNameEverywhereStillFillsEveryHole) {
    EXPECT_THAT(placed({Who("host").was(1), Who("host"), Who("host")}, {{"host", 1}, {"host", 1}, {"host", 1}}),
                ElementsAre("host", "host", "host"));
}

// ---- ranks ------------------------------------------------------------------------------------------------------

TEST(Ranks, OfNobodyAreNone) {
    EXPECT_THAT(assign_ranks({}), IsEmpty());
}

TEST(Ranks, AreContiguousPerNodeWhateverTheCounts) {
    const auto ranks = assign_ranks({Who("a", 3), Who("b", 1), Who("c", 4)});
    const int kBases[] = {0, 3, 4};
    for (int i = 0; i < 3; ++i) {
        const wire::Assignment& node = ranks[static_cast<std::size_t>(i)];
        EXPECT_EQ(node.group_rank, i);
        EXPECT_EQ(node.group_world_size, 3);
        EXPECT_EQ(node.base_rank, kBases[i]);
        EXPECT_EQ(node.world_size, 8);
        EXPECT_EQ(node.base_role_rank, kBases[i]);
        EXPECT_EQ(node.role_world_size, 8);
    }
}

TEST(Ranks, OfRolesAreCountedWithinTheRole) {
    const auto ranks = assign_ranks({Who("a", 2).role("t"), Who("b", 1).role("r"), Who("c", 3).role("t")});
    EXPECT_EQ(ranks[0].base_role_rank, 0);
    EXPECT_EQ(ranks[0].role_world_size, 5);
    EXPECT_EQ(ranks[1].base_role_rank, 0);
    EXPECT_EQ(ranks[1].role_world_size, 1);
    EXPECT_EQ(ranks[2].base_role_rank, 2);
    EXPECT_EQ(ranks[2].role_world_size, 5);
    EXPECT_EQ(ranks[2].base_rank, 3);
}

}  // namespace
}  // namespace ddl::core
