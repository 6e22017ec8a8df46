#include "core/restart_policy.hpp"

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace ddl::core {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::DeathKind;
using wire::ExitOrigin;

wire::Death death(DeathKind kind, int status, const std::string& message = "") {
    wire::Death result;
    result.kind = kind;
    result.rank = kind == DeathKind::kNodeLost ? -1 : 3;
    result.node = "n1";
    result.pid = 411;
    result.status = status;
    result.message = message;
    return result;
}

// ---- one row per kind of death ----------------------------------------------------------------------------------

struct Row {
    wire::Death death;
    int exit_code;
    ExitOrigin origin;
    const char* text;
};

const std::vector<Row>& rows() {
    static const std::vector<Row> kRows = {
        {death(DeathKind::kExited, 1), 1, ExitOrigin::kWorker, "rank 3 on n1 (pid 411) exited with code 1"},
        {death(DeathKind::kExited, 2), 2, ExitOrigin::kWorker, "rank 3 on n1 (pid 411) exited with code 2"},
        {death(DeathKind::kExited, 255), 255, ExitOrigin::kWorker, "rank 3 on n1 (pid 411) exited with code 255"},
        {death(DeathKind::kSignalled, SIGKILL), 137, ExitOrigin::kWorker,
         "rank 3 on n1 (pid 411) was killed by SIGKILL"},
        {death(DeathKind::kSignalled, SIGSEGV), 139, ExitOrigin::kWorker,
         "rank 3 on n1 (pid 411) was killed by SIGSEGV"},
        {death(DeathKind::kSignalled, 40), 168, ExitOrigin::kWorker, "rank 3 on n1 (pid 411) was killed by signal 40"},
        {death(DeathKind::kStartFailed, ENOENT, "exec ./train: No such file or directory"), 127, ExitOrigin::kWorker,
         "rank 3 on n1 could not be started: exec ./train: No such file or directory"},
        {death(DeathKind::kStartFailed, EACCES, "exec ./train: Permission denied"), 126, ExitOrigin::kWorker,
         "rank 3 on n1 could not be started: exec ./train: Permission denied"},
        {death(DeathKind::kStartFailed, ENOEXEC, "exec ./train: Exec format error"), 126, ExitOrigin::kWorker,
         "rank 3 on n1 could not be started: exec ./train: Exec format error"},
        {death(DeathKind::kNodeLost, 0), 65, ExitOrigin::kLauncher, "node n1 was lost"},
        {death(DeathKind::kNodeLost, 0, "connection reset"), 65, ExitOrigin::kLauncher,
         "node n1 was lost (connection reset)"},
    };
    return kRows;
}

TEST(Verdict, IsAnotherRoundWhileTheBudgetLasts) {
    for (const Row& row : rows()) {
        EXPECT_FALSE(verdict(row.death, 0, 1)) << row.text;
        EXPECT_FALSE(verdict(row.death, 2, 3)) << row.text;
    }
}

TEST(Verdict, WithoutABudgetIsTheCulpritsCode) {
    for (const Row& row : rows()) {
        const auto over = verdict(row.death, 0, 0);
        ASSERT_TRUE(over) << row.text;
        EXPECT_EQ(over->exit_code, row.exit_code) << row.text;
        EXPECT_EQ(over->origin, row.origin) << row.text;
        EXPECT_EQ(over->why, std::string(row.text) + "; no restarts are allowed (--max-restarts 0)");
        EXPECT_EQ(over->restart_count, 0);
    }
}

TEST(Verdict, WithTheBudgetUsedUpSaysSo) {
    for (const Row& row : rows()) {
        const auto over = verdict(row.death, 3, 3);
        ASSERT_TRUE(over) << row.text;
        EXPECT_EQ(over->exit_code, row.exit_code) << row.text;
        EXPECT_EQ(over->origin, row.origin) << row.text;
        EXPECT_EQ(over->why, std::string(row.text) + "; all 3 restarts are used up (3 of 3)");
        EXPECT_EQ(over->restart_count, 3);
    }
}

TEST(Verdict, HoldsWhenMoreWasUsedThanAllowed) {
    EXPECT_TRUE(verdict(death(DeathKind::kExited, 1), 5, 3));
}

TEST(Describe, IsTheTextOfTheVerdict) {
    for (const Row& row : rows()) {
        EXPECT_EQ(describe(row.death), row.text);
    }
}

// ---- which death was first --------------------------------------------------------------------------------------

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
