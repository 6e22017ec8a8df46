// Budget, classes of failure and signals that are passed on, as flags and as variables.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

Supervision supervision_of(const Requested& requested) {
    const Result<LaunchPlan> plan = make_plan(requested, machine());
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    return plan ? plan->supervision : Supervision{};
}

TEST(FailurePlan, Defaults) {
    const Supervision supervision = supervision_of(request({}));
    EXPECT_EQ(supervision.restart_window, std::nullopt);
    EXPECT_THAT(supervision.no_restart_codes, IsEmpty());
    EXPECT_EQ(supervision.restart_backoff, Duration::zero());
    EXPECT_EQ(supervision.crash_loop_window, Duration(5s));
    EXPECT_FALSE(supervision.free_node_loss);
    EXPECT_THAT(supervision.forward_signals, IsEmpty());
}

void check_all(const Supervision& supervision) {
    EXPECT_EQ(supervision.max_restarts, 3);
    EXPECT_EQ(supervision.restart_window, Duration(1h));
    EXPECT_THAT(supervision.no_restart_codes, ElementsAre(3, 10, 11, 143));
    EXPECT_EQ(supervision.restart_backoff, Duration(1500ms));
    EXPECT_EQ(supervision.crash_loop_window, Duration::zero());
    EXPECT_TRUE(supervision.free_node_loss);
    EXPECT_THAT(supervision.forward_signals, ElementsAre(SIGUSR1, SIGHUP));
}

TEST(FailurePlan, TakesWhatWasAskedByFlagAndByVariable) {
    const std::initializer_list<Given> all = {
        {Flag::kMaxRestarts, "3/1h"},       {Flag::kNoRestartExitCodes, "3,10-11,143"},
        {Flag::kRestartBackoff, "1.5"},     {Flag::kCrashLoopWindow, "0"},
        {Flag::kFreeNodeLoss, "1"},         {Flag::kSignalsToHandle, "TERM,INT"},
        {Flag::kForwardSignals, "USR1,HUP"}};
    check_all(supervision_of(request(all)));
    check_all(supervision_of(by_variables(all)));
}

TEST(FailurePlan, HasVariablesOfItsOwn) {
    EXPECT_EQ(variable_name(Flag::kNoRestartExitCodes), "DDL_NO_RESTART_EXIT_CODES");
    EXPECT_EQ(variable_name(Flag::kRestartBackoff), "DDL_RESTART_BACKOFF");
    EXPECT_EQ(variable_name(Flag::kCrashLoopWindow), "DDL_CRASH_LOOP_WINDOW");
    EXPECT_EQ(variable_name(Flag::kFreeNodeLoss), "DDL_FREE_NODE_LOSS");
    EXPECT_EQ(variable_name(Flag::kForwardSignals), "DDL_FORWARD_SIGNALS");
    EXPECT_EQ(variable_name(Flag::kScaleUp), "DDL_SCALE_UP");
    EXPECT_EQ(variable_name(Flag::kScaleUpDeadline), "DDL_SCALE_UP_DEADLINE");
}

TEST(FailurePlan, SaysWhatIsWrong) {
    EXPECT_EQ(error_of(by_variables({{Flag::kMaxRestarts, "3/x"}})),
              "PET_MAX_RESTARTS: \"x\" is not a span of time; try 90 (seconds), 30m, 1h or 1d");
    EXPECT_THAT(error_of(request({{Flag::kNoRestartExitCodes, "0"}})),
                HasSubstr("--no-restart-exit-codes: \"0\" is neither an exit code"));
    EXPECT_EQ(error_of(request({{Flag::kRestartBackoff, "-1"}})),
              "--restart-backoff: \"-1\" is not a number of seconds");
    EXPECT_EQ(error_of(request({{Flag::kCrashLoopWindow, "86401"}})),
              "--crash-loop-window: \"86401\" is not between 0 and 86400 seconds");
    EXPECT_THAT(error_of(request({{Flag::kForwardSignals, "HUP"}})),
                HasSubstr("--forward-signals: SIGHUP is one of --signals-to-handle, which stop the job"));
    EXPECT_THAT(error_of(request({{Flag::kForwardSignals, "KILL"}})), HasSubstr("can't be handled"));
}

}  // namespace
}  // namespace ddl::plan::testing
