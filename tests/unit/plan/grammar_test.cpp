// The grammar of the values, one table for each: what is taken, and in which words the rest is refused.
#include "plan/grammar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace ddl::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

template <class T>
std::string reason(const Result<T>& result) {
    return result ? "no error" : result.error().message;
}

TEST(NodeRangeGrammar, TakesOneNumberOrTwo) {
    EXPECT_EQ(parse_node_range("1"), (NodeRange{1, 1}));
    EXPECT_EQ(parse_node_range("4"), (NodeRange{4, 4}));
    EXPECT_EQ(parse_node_range("1:4"), (NodeRange{1, 4}));
    EXPECT_EQ(parse_node_range("2:2"), (NodeRange{2, 2}));
    EXPECT_EQ(parse_node_range("65535"), (NodeRange{65535, 65535}));
}

TEST(NodeRangeGrammar, SaysWhatIsWrong) {
    const std::string shape = " is neither N nor MIN:MAX; try 2 or 1:4";
    EXPECT_EQ(reason(parse_node_range("")), "\"\"" + shape);
    EXPECT_EQ(reason(parse_node_range("two")), "\"two\"" + shape);
    EXPECT_EQ(reason(parse_node_range("1:2:3")), "\"1:2:3\"" + shape);
    EXPECT_EQ(reason(parse_node_range("1:")), "\"1:\"" + shape);
    EXPECT_EQ(reason(parse_node_range(":4")), "\":4\"" + shape);
    EXPECT_EQ(reason(parse_node_range("1.5")), "\"1.5\"" + shape);
    EXPECT_EQ(reason(parse_node_range("99999999999999999999")), "\"99999999999999999999\"" + shape);
    EXPECT_EQ(reason(parse_node_range("3:2")), "\"3:2\" has its bounds the wrong way round; try 2:3");
    EXPECT_EQ(reason(parse_node_range("0")), "\"0\" is not between 1 and 65535 nodes");
    EXPECT_EQ(reason(parse_node_range("-1:2")), "\"-1:2\" is not between 1 and 65535 nodes");
    EXPECT_EQ(reason(parse_node_range("1:70000")), "\"1:70000\" is not between 1 and 65535 nodes");
}

TEST(CountGrammar, ChecksShapeAndRange) {
    EXPECT_EQ(parse_count("0", 0, 3), 0);
    EXPECT_EQ(parse_count("3", 0, 3), 3);
    EXPECT_EQ(reason(parse_count("4", 0, 3)), "\"4\" is not between 0 and 3");
    EXPECT_EQ(reason(parse_count("-1", 0, 3)), "\"-1\" is not between 0 and 3");
    EXPECT_EQ(reason(parse_count("abc", 0, 3)), "\"abc\" is not a whole number");
    EXPECT_EQ(reason(parse_count("1 ", 0, 3)), "\"1 \" is not a whole number");
}

TEST(DurationGrammar, IsInSecondsWithFractions) {
    EXPECT_EQ(parse_duration("30", 0, 60), Duration(30s));
    EXPECT_EQ(parse_duration("1.5", 0, 60), Duration(1500ms));
    EXPECT_EQ(parse_duration("0", 0, 60), Duration(0s));
    EXPECT_EQ(reason(parse_duration("61", 0, 60)), "\"61\" is not between 0 and 60 seconds");
    EXPECT_EQ(reason(parse_duration("0", 0.001, 60)), "\"0\" is not between 0.001 and 60 seconds");
    EXPECT_EQ(reason(parse_duration("10s", 0, 60)), "\"10s\" is not a number of seconds");
    EXPECT_EQ(reason(parse_duration("-1", 0, 60)), "\"-1\" is not a number of seconds");
    EXPECT_EQ(reason(parse_duration("", 0, 60)), "\"\" is not a number of seconds");
    EXPECT_EQ(reason(parse_duration("inf", 0, 60)), "\"inf\" is not a number of seconds");
}

TEST(BooleanGrammar, TakesWordsAndDigitsInAnyCase) {
    for (const char* yes : {"1", "true", "True", "TRUE", "t", "yes", "Y", "on"}) {
        EXPECT_EQ(parse_boolean(yes), true) << yes;
    }
    for (const char* no : {"0", "false", "False", "f", "no", "N", "OFF"}) {
        EXPECT_EQ(parse_boolean(no), false) << no;
    }
    EXPECT_EQ(reason(parse_boolean("maybe")), "\"maybe\" is neither yes nor no; try 1 or 0");
    EXPECT_EQ(reason(parse_boolean("2")), "\"2\" is neither yes nor no; try 1 or 0");
}

Streams none() {
    return {};
}
Streams out() {
    return {true, false};
}
Streams err() {
    return {false, true};
}
Streams both() {
    return {true, true};
}

TEST(StreamsGrammar, OneDigitIsForAll) {
    EXPECT_THAT(*parse_streams("0", 2), ElementsAre(none(), none()));
    EXPECT_THAT(*parse_streams("1", 2), ElementsAre(out(), out()));
    EXPECT_THAT(*parse_streams("2", 2), ElementsAre(err(), err()));
    EXPECT_THAT(*parse_streams("3", 2), ElementsAre(both(), both()));
}

TEST(StreamsGrammar, RanksAndRangesOfThem) {
    EXPECT_THAT(*parse_streams("0:1,2:3", 4), ElementsAre(out(), none(), both(), none()));
    EXPECT_THAT(*parse_streams("0-2:2", 4), ElementsAre(err(), err(), err(), none()));
    EXPECT_THAT(*parse_streams("0-3:3,1:0", 4), ElementsAre(both(), none(), both(), both()));
    EXPECT_EQ(parse_streams("10:1", 12)->at(10), out());
    EXPECT_EQ(parse_streams("10:1", 12)->at(1), none());
}

TEST(StreamsGrammar, RanksOfLargerNodesAreNoError) {
    EXPECT_THAT(*parse_streams("0:1,7:3", 2), ElementsAre(out(), none()));
    EXPECT_THAT(*parse_streams("1-7:3", 2), ElementsAre(none(), both()));
}

TEST(StreamsGrammar, SaysWhatIsWrong) {
    EXPECT_EQ(reason(parse_streams("4", 2)),
              "\"4\" is not 0 (none), 1 (stdout), 2 (stderr) or 3 (both); try 3, or 0:3,1-7:1 by local rank");
    EXPECT_THAT(reason(parse_streams("", 2)), HasSubstr("\"\" is not 0 (none)"));
    EXPECT_THAT(reason(parse_streams("33", 2)), HasSubstr("\"33\" is not 0 (none)"));
    EXPECT_EQ(reason(parse_streams("0:4", 2)), "\"4\" is not 0 (none), 1 (stdout), 2 (stderr) or 3 (both)");
    EXPECT_EQ(reason(parse_streams("x:1", 2)), "\"x\" is neither a local rank nor a range of them; try 3 or 0-3");
    EXPECT_EQ(reason(parse_streams("3-1:1", 2)), "\"3-1\" is neither a local rank nor a range of them; try 3 or 0-3");
    EXPECT_THAT(reason(parse_streams("0:1,3", 2)), HasSubstr("\"\" is not 0 (none)"));
    EXPECT_THAT(reason(parse_streams("-1:1", 2)), HasSubstr("neither a local rank"));
}

TEST(RankFilterGrammar, ListsAndRanges) {
    EXPECT_THAT(*parse_rank_filter("0,2", 4), ElementsAre(true, false, true, false));
    EXPECT_THAT(*parse_rank_filter("1-3", 4), ElementsAre(false, true, true, true));
    EXPECT_THAT(*parse_rank_filter("3,9", 4), ElementsAre(false, false, false, true));
    EXPECT_THAT(reason(parse_rank_filter("0,a", 4)), HasSubstr("\"a\" is neither a local rank nor a range"));
    EXPECT_THAT(reason(parse_rank_filter("0,,1", 4)), HasSubstr("\"\" is neither a local rank nor a range"));
}

TEST(TextListGrammar, DoubleCommaIsAComma) {
    EXPECT_THAT(parse_text_list("a"), ElementsAre("a"));
    EXPECT_THAT(parse_text_list("loss,step 1"), ElementsAre("loss", "step 1"));
    EXPECT_THAT(parse_text_list("a,,b,c"), ElementsAre("a,b", "c"));
    EXPECT_THAT(parse_text_list(""), ElementsAre());
    EXPECT_THAT(parse_text_list("a,"), ElementsAre("a"));
}

TEST(SignalsGrammar, NamesWithAndWithoutSigAndNumbers) {
    EXPECT_THAT(*parse_signals("SIGTERM,SIGINT,SIGHUP,SIGQUIT"), ElementsAre(SIGTERM, SIGINT, SIGHUP, SIGQUIT));
    EXPECT_THAT(*parse_signals("TERM, usr1"), ElementsAre(SIGTERM, SIGUSR1));
    EXPECT_THAT(*parse_signals("15,10"), ElementsAre(SIGTERM, SIGUSR1));
    EXPECT_THAT(*parse_signals("SIGTERM,15,TERM"), ElementsAre(SIGTERM));
}

TEST(SignalsGrammar, SaysWhatIsWrong) {
    EXPECT_EQ(reason(parse_signals("SIGTRM")), "\"SIGTRM\" is not a signal to handle; try SIGTERM");
    EXPECT_EQ(reason(parse_signals("SIGKILL")), "\"SIGKILL\" can't be handled; leave it out");
    EXPECT_EQ(reason(parse_signals("STOP")), "\"STOP\" can't be handled; leave it out");
    EXPECT_EQ(reason(parse_signals("SIGCHLD")), "\"SIGCHLD\" can't be handled; leave it out");
    EXPECT_THAT(reason(parse_signals("9")), HasSubstr("\"9\" is not a signal to handle"));
    EXPECT_THAT(reason(parse_signals("")), HasSubstr("\"\" is not a signal to handle"));
    EXPECT_THAT(reason(parse_signals("SIGTERM,")), HasSubstr("\"\" is not a signal to handle"));
}

TEST(KeyValuesGrammar, TrimsAndKeepsTheLastOfARepeatedKey) {
    EXPECT_EQ(parse_key_values(""), KeyValues{});
    EXPECT_EQ(parse_key_values("a=1"), (KeyValues{{"a", "1"}}));
    EXPECT_EQ(parse_key_values(" a = 1 , b=x=y "), (KeyValues{{"a", "1"}, {"b", "x=y"}}));
    EXPECT_EQ(parse_key_values("a=1,b=2,a=3"), (KeyValues{{"b", "2"}, {"a", "3"}}));
}

TEST(KeyValuesGrammar, SaysWhatIsWrong) {
    EXPECT_EQ(reason(parse_key_values("a")), "\"a\" is not KEY=VALUE");
    EXPECT_EQ(reason(parse_key_values("a=")), "\"a=\" is not KEY=VALUE");
    EXPECT_EQ(reason(parse_key_values("=1")), "\"=1\" is not KEY=VALUE");
    EXPECT_EQ(reason(parse_key_values("a=1,")), "\"\" is not KEY=VALUE");
}

TEST(Quoting, KeepsAMessageOnOneShortLine) {
    EXPECT_EQ(reason(parse_count("a\nb\x1b[31m", 0, 1)), "\"a?b?[31m\" is not a whole number");
    const std::string message = reason(parse_count(std::string(5'000, 'x'), 0, 1));
    EXPECT_LT(message.size(), 200U);
    EXPECT_THAT(message, HasSubstr("x...\" is not a whole number"));
}

}  // namespace
}  // namespace ddl::plan
