#include "core/restart_policy.hpp"

#include <cerrno>
#include <csignal>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>

#include "restart_policy_harness.hpp"

namespace ddl::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::DeathKind;
using wire::ExitOrigin;

// ---- one row per kind of death ----------------------------------------------------------------------------------

struct Row {
    wire::Death death;
    int exit_code;
    ExitOrigin origin;
    const char* text;
    bool loops;  // twice soon after the start is a crash loop
};

const std::vector<Row>& rows() {
    static const std::vector<Row> kRows = {
        {death(DeathKind::kExited, 1), 1, ExitOrigin::kWorker, "rank 3 on n1 (pid 411) exited with code 1", true},
        {death(DeathKind::kExited, 2), 2, ExitOrigin::kWorker, "rank 3 on n1 (pid 411) exited with code 2", true},
        {death(DeathKind::kExited, 255), 255, ExitOrigin::kWorker, "rank 3 on n1 (pid 411) exited with code 255", true},
        {death(DeathKind::kSignalled, SIGKILL), 137, ExitOrigin::kWorker,
         "rank 3 on n1 (pid 411) was killed by SIGKILL", false},
        {death(DeathKind::kSignalled, SIGTERM), 143, ExitOrigin::kWorker,
         "rank 3 on n1 (pid 411) was killed by SIGTERM", false},
        {death(DeathKind::kSignalled, SIGINT), 130, ExitOrigin::kWorker, "rank 3 on n1 (pid 411) was killed by SIGINT",
         false},
        {death(DeathKind::kSignalled, SIGSEGV), 139, ExitOrigin::kWorker,
         "rank 3 on n1 (pid 411) was killed by SIGSEGV", true},
        {death(DeathKind::kSignalled, 40), 168, ExitOrigin::kWorker, "rank 3 on n1 (pid 411) was killed by signal 40",
         true},
        {death(DeathKind::kStartFailed, ENOENT, "exec ./train: No such file or directory"), 127, ExitOrigin::kWorker,
         "rank 3 on n1 could not be started: exec ./train: No such file or directory", true},
        {death(DeathKind::kStartFailed, EACCES, "exec ./train: Permission denied"), 126, ExitOrigin::kWorker,
         "rank 3 on n1 could not be started: exec ./train: Permission denied", true},
        {death(DeathKind::kStartFailed, ENOEXEC, "exec ./train: Exec format error"), 126, ExitOrigin::kWorker,
         "rank 3 on n1 could not be started: exec ./train: Exec format error", true},
        {death(DeathKind::kOutOfMemory, SIGKILL), 137, ExitOrigin::kWorker,
         "rank 3 on n1 (pid 411) was killed because memory ran out", false},
        {death(DeathKind::kOutOfMemory, SIGKILL, "memory.max is 1 GiB"), 137, ExitOrigin::kWorker,
         "rank 3 on n1 (pid 411) was killed because memory ran out (memory.max is 1 GiB)", false},
        {death(DeathKind::kHung, SIGABRT, "no step for 600 s"), 134, ExitOrigin::kWorker,
         "rank 3 on n1 (pid 411) hung (no step for 600 s)", false},
        {death(DeathKind::kNodeLost, 0), 65, ExitOrigin::kLauncher, "node n1 was lost", false},
        {death(DeathKind::kNodeLost, 0, "connection reset"), 65, ExitOrigin::kLauncher,
         "node n1 was lost (connection reset)", false},
    };
    return kRows;
}

TEST(RestartPolicy, TableIsOfEveryKind) {
    std::set<DeathKind> kinds;
    for (const Row& row : rows()) {
        kinds.insert(row.death.kind);
    }
    EXPECT_EQ(kinds.size(), static_cast<std::size_t>(DeathKind::kHung) + 1);
}

TEST(RestartPolicy, StartsAnotherRoundWhileTheBudgetLasts) {
    for (const Row& row : rows()) {
        Job job(allow(3));
        for (const char* text : {"restart 1 of 3", "restart 2 of 3", "restart 3 of 3"}) {
            const auto decision = job.fails(row.death);
            EXPECT_FALSE(decision.over) << row.text;
            EXPECT_EQ(decision.text, text) << row.text;
            EXPECT_EQ(decision.delay, Duration::zero()) << row.text;
        }
        EXPECT_EQ(job.policy.restart_count(), 3) << row.text;
    }
}

TEST(RestartPolicy, WithoutABudgetEndsWithTheCulpritsCode) {
    for (const Row& row : rows()) {
        Job job(allow(0));
        const auto decision = job.fails(row.death);
        ASSERT_TRUE(decision.over) << row.text;
        EXPECT_EQ(decision.over->exit_code, row.exit_code) << row.text;
        EXPECT_EQ(decision.over->origin, row.origin) << row.text;
        EXPECT_EQ(decision.over->why, std::string(row.text) + "; no restarts are allowed (--max-restarts 0)");
        EXPECT_EQ(decision.text, decision.over->why);
        EXPECT_EQ(decision.over->restart_count, 0);
    }
}

TEST(RestartPolicy, WithTheBudgetUsedUpSaysSo) {
    for (const Row& row : rows()) {
        Job job(allow(2));
        EXPECT_FALSE(job.fails(row.death).over);
        EXPECT_FALSE(job.fails(row.death).over);
        const auto over = job.fails(row.death).over;
        ASSERT_TRUE(over) << row.text;
        EXPECT_EQ(over->exit_code, row.exit_code) << row.text;
        EXPECT_EQ(over->origin, row.origin) << row.text;
        EXPECT_EQ(over->why, std::string(row.text) + "; all 2 restarts are used up (2 of 2)");
        EXPECT_EQ(over->restart_count, 2);
        EXPECT_EQ(job.policy.restart_count(), 2) << "a failure that ends the job is no restart";
    }
}

TEST(RestartPolicy, EndsACrashLoopAtTheSecondTime) {
    for (const Row& row : rows()) {
        Job job(allow(9));
        EXPECT_FALSE(job.fails(row.death, kShort).over) << row.text;
        const auto over = job.fails(row.death, kShort).over;
        ASSERT_EQ(over.has_value(), row.loops) << row.text;
        if (over) {
            EXPECT_EQ(over->exit_code, kExitDontRetry);
            EXPECT_EQ(over->origin, ExitOrigin::kLauncher);
            EXPECT_EQ(over->why, std::string(row.text) +
                                     "; a crash loop: the same failure twice, within 5 s of the start; to restart "
                                     "all the same: --crash-loop-window 0");
            EXPECT_EQ(over->restart_count, 1);
        }
    }
}

TEST(RestartPolicy, NeverRestartsTheCodesThatWereNamed) {
    for (const Row& row : rows()) {
        RestartRules rules = allow(9);
        rules.no_restart_codes = {7, row.exit_code};
        Job job(rules);
        const auto over = job.fails(row.death).over;
        ASSERT_EQ(over.has_value(), row.death.kind != DeathKind::kNodeLost) << row.text;
        if (over) {
            EXPECT_EQ(over->exit_code, kExitDontRetry);
            EXPECT_EQ(over->origin, ExitOrigin::kLauncher);
            EXPECT_EQ(over->why, std::string(row.text) + "; code " + std::to_string(row.exit_code) +
                                     " is not restarted (--no-restart-exit-codes)");
        }
    }
}

TEST(RestartPolicy, FreeNodeLossIsFreeForNodesAlone) {
    for (const Row& row : rows()) {
        RestartRules rules = allow(0);
        rules.free_node_loss = true;
        Job job(rules);
        const auto decision = job.fails(row.death);
        const bool free = row.death.kind == DeathKind::kNodeLost;
        EXPECT_EQ(decision.over.has_value(), !free) << row.text;
        EXPECT_EQ(decision.text == "not counted (--free-node-loss)", free) << row.text;
        EXPECT_EQ(job.policy.restart_count(), 0) << row.text;
    }
}

TEST(RestartPolicy, BacksOffFromWorkersAlone) {
    for (const Row& row : rows()) {
        RestartRules rules = allow(9);
        rules.backoff = seconds(3);
        Job job(rules);
        EXPECT_EQ(job.fails(row.death).delay, Duration::zero()) << row.text;
        const bool node = row.death.kind == DeathKind::kNodeLost;
        EXPECT_EQ(job.fails(row.death).delay, node ? Duration::zero() : Duration(seconds(3))) << row.text;
    }
}

TEST(Describe, IsTheTextOfTheDecision) {
    for (const Row& row : rows()) {
        EXPECT_EQ(describe(row.death), row.text);
        EXPECT_EQ(exit_code_of(row.death), row.exit_code) << row.text;
    }
}

// ---- the codes that are never restarted -------------------------------------------------------------------------

TEST(NoRestartCodes, GoBeforeABudgetOfNone) {
    RestartRules rules = allow(0);
    rules.no_restart_codes = {1};
    EXPECT_EQ(Job(rules).fails(any()).over->exit_code, kExitDontRetry);
}

TEST(NoRestartCodes, AreAboutTheFirstCause) {
    RestartRules rules = allow(3);
    rules.no_restart_codes = {1};
    EXPECT_FALSE(Job(rules).fails({death(DeathKind::kExited, 9), any()}).over);
    EXPECT_FALSE(Job(rules).fails({lost(), any()}).over);
    EXPECT_TRUE(Job(rules).fails({any(), death(DeathKind::kExited, 9)}).over);
}

// ---- crash loops ------------------------------------------------------------------------------------------------

TEST(CrashLoop, IsLookedForWithinTheWindowOnly) {
    for (const auto& [first, second, loop] : std::vector<std::tuple<Duration, Duration, bool>>{
             {seconds(5), seconds(5), true},
             {seconds(5), milliseconds(5001), false},
             {milliseconds(5001), seconds(5), false},
         }) {
        Job job(allow(9));
        EXPECT_FALSE(job.fails(any(), first).over);
        EXPECT_EQ(job.fails(any(), second).over.has_value(), loop) << second.count();
    }
}

TEST(CrashLoop, IsNotLookedForWithAWindowOfZero) {
    RestartRules rules = allow(9);
    rules.crash_loop_window = Duration::zero();
    Job job(rules);
    for (int i = 0; i < 9; ++i) {
        EXPECT_FALSE(job.fails(any(), Duration::zero()).over) << i;
    }
}

TEST(CrashLoop, GivesWayToABudgetThatIsUsedUp) {
    Job job(allow(1));
    EXPECT_FALSE(job.fails(any(), kShort).over);
    EXPECT_EQ(job.fails(any(), kShort).over->exit_code, 1);
}

TEST(CrashLoop, IsTheSameFailureInEveryPart) {
    wire::Death other_rank = any();
    other_rank.rank = 2;
    wire::Death other_message = any();
    other_message.message = "ValueError: 17";
    wire::Death other_words = any();
    other_words.stderr_tail = {"loading", "out of luck"};
    for (const wire::Death& other :
         {death(DeathKind::kExited, 2), death(DeathKind::kSignalled, 1), other_rank, other_message, other_words}) {
        Job job(allow(9));
        EXPECT_FALSE(job.fails(any(), kShort).over);
        EXPECT_FALSE(job.fails(other, kShort).over) << describe(other);
        EXPECT_TRUE(job.fails(other, kShort).over) << describe(other);
    }
}

TEST(CrashLoop, LooksAtTheLastLineOnly) {
    wire::Death first = any();
    first.stderr_tail = {"10:31:07 loading", "no such config"};
    wire::Death second = any();
    second.pid = 500;
    second.age = seconds(1);
    second.stderr_tail = {"10:31:09 loading", "no such config"};
    Job job(allow(9));
    EXPECT_FALSE(job.fails(first, kShort).over);
    EXPECT_TRUE(job.fails(second, kShort).over);
}

TEST(CrashLoop, SeesAFailureOfAllRanksWhoeverWasFirst) {
    wire::Death zero = any();
    zero.rank = 0;
    Job job(allow(9));
    EXPECT_FALSE(job.fails({any(), zero}, kShort).over);
    EXPECT_TRUE(job.fails({zero, any()}, kShort).over);
}

TEST(CrashLoop, IsBrokenByAnotherFailureInBetween) {
    for (const wire::Death& between : {lost(), death(DeathKind::kSignalled, SIGKILL), death(DeathKind::kExited, 3)}) {
        Job job(allow(9));
        EXPECT_FALSE(job.fails(any(), kShort).over);
        EXPECT_FALSE(job.fails(between, kShort).over);
        EXPECT_FALSE(job.fails(any(), kShort).over) << describe(between);
    }
}

TEST(CrashLoop, IsNotMadeOfConsequences) {
    Job job(allow(9));
    EXPECT_FALSE(job.fails({lost(), any()}, kShort).over);
    EXPECT_FALSE(job.fails(any(), kShort).over) << "it was not the first cause before";
}

}  // namespace
}  // namespace ddl::core
