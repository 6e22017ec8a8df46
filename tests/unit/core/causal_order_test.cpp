// Which of several deaths was the first cause.
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "core/restart_policy.hpp"
#include "restart_policy_harness.hpp"

namespace ddl::core {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::DeathKind;

DatedDeath worker(int rank, const std::string& node, milliseconds at) {
    DatedDeath dated{death(DeathKind::kExited, 1), Instant(at)};
    dated.death.rank = rank;
    dated.death.node = node;
    return dated;
}

DatedDeath loss(const std::string& node, milliseconds at) {
    DatedDeath dated{death(DeathKind::kNodeLost, 0), Instant(at)};
    dated.death.node = node;
    return dated;
}

std::vector<std::string> order(std::vector<DatedDeath> deaths) {
    std::vector<std::string> names;
    for (const wire::Death& one : in_causal_order(std::move(deaths))) {
        names.push_back(one.kind == DeathKind::kNodeLost ? one.node : std::to_string(one.rank));
    }
    return names;
}

TEST(CausalOrder, OfNothingIsNothing) {
    EXPECT_THAT(order({}), IsEmpty());
}

TEST(CausalOrder, IsByTime) {
    EXPECT_THAT(
        order({worker(1, "a", milliseconds(30)), worker(2, "b", milliseconds(10)), worker(3, "c", milliseconds(20))}),
        ElementsAre("2", "3", "1"));
}

TEST(CausalOrder, KeepsTheOrderOfArrivalAtTheSameTime) {
    EXPECT_THAT(order({worker(2, "a", milliseconds(5)), worker(1, "b", milliseconds(5))}), ElementsAre("2", "1"));
}

TEST(CausalOrder, PutsALossBeforeWhatItDidToOthers) {
    EXPECT_THAT(order({worker(1, "a", milliseconds(5000)), loss("b", milliseconds(5900))}), ElementsAre("b", "1"));
}

TEST(CausalOrder, LeavesALossThatCameMuchLaterBehind) {
    EXPECT_THAT(order({worker(1, "a", milliseconds(5000)), loss("b", milliseconds(6100))}), ElementsAre("1", "b"));
}

TEST(CausalOrder, KeepsWhatTheLostNodeItselfHadReportedFirst) {
    EXPECT_THAT(order({worker(1, "b", milliseconds(5000)), loss("b", milliseconds(5100))}), ElementsAre("1", "b"));
}

TEST(CausalOrder, PutsTheLostNodesReportsAndTheLossBeforeTheConsequences) {
    EXPECT_THAT(
        order({worker(7, "b", milliseconds(5000)), worker(1, "a", milliseconds(5050)), loss("b", milliseconds(5100))}),
        ElementsAre("7", "b", "1"));
}

TEST(CausalOrder, PutsAKilledRankBeforeThePeerThatSawItsSocketsClose) {
    for (const int signal : {SIGKILL, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
        DatedDeath killed = worker(1, "a", milliseconds(5049));
        killed.death.kind = DeathKind::kSignalled;
        killed.death.status = signal;
        EXPECT_THAT(order({worker(0, "a", milliseconds(5000)), killed}), ElementsAre("1", "0"));
        killed.at += milliseconds(2);
        EXPECT_THAT(order({worker(0, "a", milliseconds(5000)), killed}), ElementsAre("0", "1"));
    }
}

TEST(CausalOrder, AnAbortMayBeAnAnswerToAPeersDeath) {
    DatedDeath aborted = worker(1, "a", milliseconds(5001));
    aborted.death.kind = DeathKind::kSignalled;
    aborted.death.status = SIGABRT;
    EXPECT_THAT(order({worker(0, "a", milliseconds(5000)), aborted}), ElementsAre("0", "1"));
}

TEST(CausalOrder, OfTwoLossesIsByTime) {
    EXPECT_THAT(order({loss("b", milliseconds(200)), loss("a", milliseconds(100))}), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace ddl::core
