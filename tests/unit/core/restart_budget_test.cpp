// Budgets per time, what a takeover keeps of them, and back-off.
#include <vector>

#include <gmock/gmock.h>

#include "core/restart_policy.hpp"
#include "restart_policy_harness.hpp"

namespace ddl::core {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- budget per time --------------------------------------------------------------------------------------------

RestartRules within(int restarts, Duration window) {
    RestartRules rules = allow(restarts);
    rules.window = window;
    return rules;
}

TEST(Window, ForgetsOldRestarts) {
    Job job(within(2, hours(1)));
    EXPECT_EQ(job.fails(any(), minutes(20)).text, "restart 1 of 2 within 1 h");
    EXPECT_EQ(job.fails(any(), minutes(20)).text, "restart 2 of 2 within 1 h");
    EXPECT_EQ(job.fails(any(), minutes(41)).text, "restart 2 of 2 within 1 h");
    EXPECT_EQ(job.policy.restart_count(), 3);
    const auto over = job.fails(any(), minutes(5)).over;
    ASSERT_TRUE(over);
    EXPECT_EQ(over->exit_code, 1);
    EXPECT_EQ(over->restart_count, 3);
    EXPECT_EQ(over->why, "rank 3 on n1 (pid 411) exited with code 1; all 2 restarts are used up (2 of 2) within 1 h");
}

TEST(Window, CountsARestartExactlyAsOldAsItself) {
    Job job(within(1, minutes(10)));
    EXPECT_FALSE(job.fails(any()).over);
    EXPECT_TRUE(Job(job).fails(any(), minutes(10)).over);
    EXPECT_FALSE(Job(job).fails(any(), minutes(10) + milliseconds(1)).over);
}

TEST(Window, IsNamedInTheUnitItFits) {
    EXPECT_EQ(Job(within(2, hours(24))).fails(any()).text, "restart 1 of 2 within 24 h");
    EXPECT_EQ(Job(within(2, minutes(90))).fails(any()).text, "restart 1 of 2 within 90 min");
    EXPECT_EQ(Job(within(2, seconds(90))).fails(any()).text, "restart 1 of 2 within 90 s");
    EXPECT_EQ(Job(within(2, milliseconds(1500))).fails(any()).text, "restart 1 of 2 within 1.5 s");
}

TEST(Window, TellsTheAgesOfWhatStillCounts) {
    Job job(within(5, hours(1)));
    EXPECT_THAT(job.policy.ages(job.now), IsEmpty());
    (void)job.fails(any(), minutes(1));
    (void)job.fails(any(), minutes(2));
    EXPECT_THAT(job.policy.ages(job.now), ElementsAre(Duration::zero(), minutes(2)));
    EXPECT_THAT(job.policy.ages(job.now + minutes(59)), ElementsAre(minutes(59)));
    EXPECT_THAT(job.policy.ages(job.now + hours(2)), IsEmpty());
}

TEST(Window, OfTheWholeJobNeedsNoAges) {
    Job job(allow(5));
    (void)job.fails(any());
    EXPECT_THAT(job.policy.ages(job.now), IsEmpty());
}

TEST(Window, KeepsNoMoreAgesThanAMessageHolds) {
    Job job(within(1000, hours(1)));
    for (int i = 0; i < 150; ++i) {
        (void)job.fails(any(), seconds(6));
    }
    EXPECT_EQ(job.policy.ages(job.now).size(), wire::kMaxRestartAges);
}

// ---- after a takeover -------------------------------------------------------------------------------------------

TEST(Adopt, TakesTheLargerCount) {
    RestartPolicy policy(allow(3));
    policy.adopt(2, {}, kStart);
    policy.adopt(1, {}, kStart);
    EXPECT_EQ(policy.restart_count(), 2);
    EXPECT_EQ(policy.judge({any()}, kLong, kStart).text, "restart 3 of 3");
    EXPECT_TRUE(policy.judge({any()}, kLong, kStart).over);
}

TEST(Adopt, JoinsWhatEachAgentKnows) {
    RestartPolicy policy(within(4, hours(1)));
    policy.adopt(2, {minutes(30), minutes(10)}, kStart);
    EXPECT_THAT(policy.ages(kStart), ElementsAre(minutes(10), minutes(30)));
    policy.adopt(3, {minutes(2), minutes(11), minutes(31)}, kStart);
    EXPECT_THAT(policy.ages(kStart), ElementsAre(minutes(2), minutes(11), minutes(31)));
    policy.adopt(1, {minutes(1)}, kStart);
    EXPECT_THAT(policy.ages(kStart), ElementsAre(minutes(1), minutes(11), minutes(31)));
    policy.adopt(0, {}, kStart);
    EXPECT_THAT(policy.ages(kStart), ElementsAre(minutes(1), minutes(11), minutes(31)));
    EXPECT_EQ(policy.restart_count(), 3);
}

TEST(Adopt, CountsForTheBudgetOfTheWindow) {
    RestartPolicy policy(within(2, hours(1)));
    policy.adopt(7, {minutes(10), minutes(50), minutes(70)}, kStart);
    EXPECT_TRUE(policy.judge({any()}, kLong, kStart).over);
    EXPECT_EQ(policy.judge({any()}, kLong, kStart + minutes(11)).text, "restart 2 of 2 within 1 h");
    EXPECT_EQ(policy.restart_count(), 8);
}

// ---- back-off ---------------------------------------------------------------------------------------------------

TEST(Backoff, DoublesUpToAMinute) {
    RestartRules rules = allow(99);
    rules.backoff = seconds(4);
    Job job(rules);
    std::vector<long> delays;
    for (int i = 0; i < 8; ++i) {
        delays.push_back(job.fails(any()).delay / seconds(1));
    }
    EXPECT_THAT(delays, ElementsAre(0, 4, 8, 16, 32, 60, 60, 60));
}

TEST(Backoff, IsSaid) {
    RestartRules rules = allow(3);
    rules.backoff = milliseconds(2500);
    Job job(rules);
    EXPECT_EQ(job.fails(any()).text, "restart 1 of 3");
    EXPECT_EQ(job.fails(any()).text, "restart 2 of 3, in 2.5 s (--restart-backoff)");
}

TEST(Backoff, LongerThanAMinuteStaysAsItIs) {
    RestartRules rules = allow(9);
    rules.backoff = minutes(3);
    Job job(rules);
    (void)job.fails(any());
    EXPECT_EQ(job.fails(any()).delay, minutes(3));
    EXPECT_EQ(job.fails(any()).delay, minutes(3));
}

TEST(Backoff, BeginsAnewAfterASteadyRound) {
    RestartRules rules = allow(99);
    rules.backoff = seconds(4);
    Job job(rules);
    (void)job.fails(any());
    EXPECT_EQ(job.fails(any(), minutes(10)).delay, seconds(4));
    EXPECT_EQ(job.fails(any(), minutes(10) + milliseconds(1)).delay, Duration::zero());
    EXPECT_EQ(job.fails(any()).delay, seconds(4));
}

TEST(Backoff, LeavesLostNodesOut) {
    RestartRules rules = allow(99);
    rules.backoff = seconds(4);
    Job job(rules);
    (void)job.fails(any());
    EXPECT_EQ(job.fails(lost()).delay, Duration::zero());
    EXPECT_EQ(job.fails(any()).delay, seconds(4));
}

}  // namespace
}  // namespace ddl::core
