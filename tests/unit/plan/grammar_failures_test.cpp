// Budgets, exit codes, spans of time and signals that are passed on.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/grammar.hpp"

namespace ddl::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

template <class T>
std::string reason(const Result<T>& result) {
    return result ? "no error" : result.error().message;
}

TEST(SpanGrammar, TakesUnits) {
    EXPECT_EQ(*parse_span("90", 1, 1e6), Duration(90s));
    EXPECT_EQ(*parse_span("1.5s", 1, 1e6), Duration(1500ms));
    EXPECT_EQ(*parse_span("30m", 1, 1e6), Duration(30min));
    EXPECT_EQ(*parse_span(" 1.5h ", 1, 1e6), Duration(90min));
    EXPECT_EQ(*parse_span("2d", 1, 1e6), Duration(48h));
}

TEST(SpanGrammar, SaysWhatIsWrong) {
    const std::string shape = " is not a span of time; try 90 (seconds), 30m, 1h or 1d";
    for (const char* text : {"", "h", "1 h", "1w", "-1h", "1hh", "soon"}) {
        EXPECT_EQ(reason(parse_span(text, 1, 100)), "\"" + std::string(text) + "\"" + shape);
    }
    EXPECT_EQ(reason(parse_span("0.5", 1, 100)), "\"0.5\" is not between 1 and 100 seconds");
    EXPECT_EQ(reason(parse_span("2m", 1, 100)), "\"2m\" is not between 1 and 100 seconds");
}

TEST(BudgetGrammar, IsANumberOrOnePerTime) {
    EXPECT_EQ(*parse_restart_budget("0"), (RestartBudget{0, std::nullopt}));
    EXPECT_EQ(*parse_restart_budget("1000000"), (RestartBudget{1'000'000, std::nullopt}));
    EXPECT_EQ(*parse_restart_budget("3/1h"), (RestartBudget{3, Duration(1h)}));
    EXPECT_EQ(*parse_restart_budget("10/30m"), (RestartBudget{10, Duration(30min)}));
    EXPECT_EQ(*parse_restart_budget("100/60"), (RestartBudget{100, Duration(60s)}));
}

TEST(BudgetGrammar, SaysWhatIsWrong) {
    EXPECT_EQ(reason(parse_restart_budget("x")), "\"x\" is not a whole number");
    EXPECT_EQ(reason(parse_restart_budget("-1")), "\"-1\" is not between 0 and 1000000");
    EXPECT_EQ(reason(parse_restart_budget("/1h")), "\"\" is not a whole number; try 3/1h");
    EXPECT_EQ(reason(parse_restart_budget("0/1h")), "\"0\" is not between 1 and 100; try 3/1h");
    EXPECT_EQ(reason(parse_restart_budget("101/1h")), "\"101\" is not between 1 and 100; try 3/1h");
    EXPECT_THAT(reason(parse_restart_budget("3/")), HasSubstr("\"\" is not a span of time"));
    EXPECT_THAT(reason(parse_restart_budget("3/1h/2")), HasSubstr("\"1h/2\" is not a span of time"));
    EXPECT_EQ(reason(parse_restart_budget("3/0")), "\"0\" is not between 1 and 31536000 seconds");
}

TEST(ExitCodeGrammar, TakesRanges) {
    EXPECT_THAT(*parse_exit_codes("3"), ElementsAre(3));
    EXPECT_THAT(*parse_exit_codes("143, 10-12,3,11"), ElementsAre(3, 10, 11, 12, 143));
    EXPECT_THAT(*parse_exit_codes("255"), ElementsAre(255));
    EXPECT_EQ(parse_exit_codes("1-255")->size(), 255U);
}

TEST(ExitCodeGrammar, SaysWhatIsWrong) {
    for (const char* text : {"", "0", "256", "-3", "a", "1-2-3", "1-", "SIGTERM"}) {
        EXPECT_EQ(reason(parse_exit_codes(text)), "\"" + std::string(text) +
                                                      "\" is neither an exit code (1 to 255) nor a range of them; try "
                                                      "3 or 3,10-20");
    }
    EXPECT_EQ(reason(parse_exit_codes("1,20-10")), "\"20-10\" has its bounds the wrong way round; try 10-20");
}

TEST(ForwardGrammar, IsOfSignalsThatStopNothing) {
    const std::vector<int> stop = {SIGTERM, SIGHUP};
    EXPECT_THAT(*parse_forwarded_signals("USR1,sigusr2,QUIT", stop), ElementsAre(SIGUSR1, SIGUSR2, SIGQUIT));
    for (const char* text : {"KILL", "SIGSTOP", "CHLD"}) {
        EXPECT_EQ(reason(parse_forwarded_signals(text, stop)),
                  "\"" + std::string(text) + "\" can't be handled; leave it out");
    }
    for (const char* text : {"TERM", "INT"}) {
        EXPECT_EQ(reason(parse_forwarded_signals(text, {})),
                  "SIG" + std::string(text) + " stops the job and reaches the workers anyway; leave it out");
    }
    EXPECT_EQ(reason(parse_forwarded_signals("USR1,HUP", {SIGTERM, SIGHUP, SIGINT})),
              "SIGHUP is one of --signals-to-handle, which stop the job; leave it out of one of the two: "
              "--signals-to-handle SIGTERM,SIGINT");
}

}  // namespace
}  // namespace ddl::plan
