#include "base/text.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddl {
namespace {

using testing::ElementsAre;

TEST(Split, KeepsEmptyParts) {
    EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
    EXPECT_THAT(split("", ','), ElementsAre(""));
    EXPECT_THAT(split(",", ','), ElementsAre("", ""));
    EXPECT_THAT(split("one", ','), ElementsAre("one"));
}

TEST(Trim, TakesBlanksOffBothEnds) {
    EXPECT_EQ(trim("  a b\t\n"), "a b");
    EXPECT_EQ(trim(" \r\n"), "");
    EXPECT_EQ(trim(""), "");
}

TEST(Join, PutsSeparatorsBetween) {
    EXPECT_EQ(join({"a", "b", "a"}, ", "), "a, b, a");
    EXPECT_EQ(join({}, ", "), "");
    EXPECT_EQ(join({"x"}, ", "), "x");
}

TEST(ParseInteger, TakesTheWholeTextOrNothing) {
    EXPECT_EQ(parse_integer("0"), 0);
    EXPECT_EQ(parse_integer("-12"), -12);
    EXPECT_EQ(parse_integer("+12"), 12);
    EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
    for (const char* bad : {"", "+", "-", "+-1", " 1", "1 ", "1.5", "0x10", "9223372036854775808", "ten"}) {
        EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
    }
}

TEST(ParseSeconds, TakesFractionsButNothingNegativeOrEndless) {
    EXPECT_EQ(parse_seconds("1.5"), 1.5);
    EXPECT_EQ(parse_seconds("0"), 0.0);
    for (const char* bad : {"", "-1", "inf", "nan", "3s", " 3"}) {
        EXPECT_EQ(parse_seconds(bad), std::nullopt) << bad;
    }
}

TEST(NearestName, FindsTyposAndIgnoresStrangers) {
    const std::vector<std::string> names = {"--nnodes", "--nproc-per-node", "--max-restarts"};
    EXPECT_EQ(nearest_name("--nodes", names), "--nnodes");
    EXPECT_EQ(nearest_name("--max-restart", names), "--max-restarts");
    EXPECT_EQ(nearest_name("--verbose", names), std::nullopt);
    EXPECT_EQ(nearest_name("", names), std::nullopt);
    EXPECT_EQ(nearest_name("x", {}), std::nullopt);
}

TEST(NaturalLess, OrdersNumbersAsPeopleDo) {
    EXPECT_TRUE(natural_less("n2", "n10"));
    EXPECT_FALSE(natural_less("n10", "n2"));
    EXPECT_TRUE(natural_less("n9-ib1", "n9-ib12"));
    EXPECT_TRUE(natural_less("a", "b"));
    EXPECT_TRUE(natural_less("n", "n1"));
    EXPECT_FALSE(natural_less("n1", "n1"));
    EXPECT_TRUE(natural_less("n99999999999999999998", "n99999999999999999999")) << "more digits than any integer has";
}

TEST(NaturalLess, IsAStrictOrderEvenWithLeadingZeros) {
    EXPECT_NE(natural_less("n01", "n1"), natural_less("n1", "n01"));
    EXPECT_TRUE(natural_less("n01", "n2"));
}

TEST(SignalName, IsWhatPeopleWrite) {
    EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
    EXPECT_EQ(signal_name(SIGKILL), "SIGKILL");
    for (const int number : {42, 0, -1, 4711}) {
        EXPECT_EQ(signal_name(number), "signal " + std::to_string(number));
    }
}

TEST(Digest, TellsTextsApart) {
    EXPECT_EQ(digest("").size(), 16U);
    EXPECT_EQ(digest("a"), "af63dc4c8601ec8c");  // FNV-1a's published value
    EXPECT_NE(digest("ab"), digest("ba"));
}

TEST(HostAndPort, PutsBracketsAroundIpv6) {
    EXPECT_EQ(host_and_port("h0", 29400), "h0:29400");
    EXPECT_EQ(host_and_port("fd00::1", 1), "[fd00::1]:1");
}

TEST(PlainAddress, DropsMappingAndScope) {
    EXPECT_EQ(plain_address("::ffff:10.0.0.1"), "10.0.0.1");
    EXPECT_EQ(plain_address("fe80::1%eth0"), "fe80::1");
    EXPECT_EQ(plain_address("10.0.0.1"), "10.0.0.1");
    EXPECT_EQ(plain_address("::ffff:1"), "::ffff:1") << "an IPv6 address of its own";
}

}  // namespace
}  // namespace ddl
