// Silent connections and refused addresses: who is dropped, what is said.
#include <set>

#include "net/refusals.hpp"
#include "net/silence.hpp"
#include "support.hpp"

namespace ddl::net {
namespace {

const auto kNoInput = [](std::uint64_t) {
    return false;
};

TEST(Silence, TheLimitGrowsWithTheRanks) {
    EXPECT_EQ(silent_limit(0), 16U);
    EXPECT_EQ(silent_limit(-3), 16U);
    EXPECT_EQ(silent_limit(8), 80U);
}

TEST(Silence, TheOldestGoesFirst) {
    SilentConnections silent(2);
    for (const std::uint64_t id : {1U, 2U, 3U, 4U}) {
        silent.add("10.0.0.1", id);
    }
    EXPECT_EQ(silent.excess("10.0.0.1", kNoInput), 1U);
    EXPECT_EQ(silent.excess("10.0.0.1", kNoInput), 2U);
    EXPECT_EQ(silent.excess("10.0.0.1", kNoInput), std::nullopt);
}

TEST(Silence, EachAddressHasItsOwnLimit) {
    SilentConnections silent(1);
    silent.add("10.0.0.1", 1);
    silent.add("10.0.0.2", 2);
    EXPECT_EQ(silent.excess("10.0.0.1", kNoInput), std::nullopt);
    EXPECT_EQ(silent.excess("10.0.0.2", kNoInput), std::nullopt);
    EXPECT_EQ(silent.excess("10.0.0.3", kNoInput), std::nullopt);
}

TEST(Silence, WhoSpokeOrEndedDoesNotCount) {
    SilentConnections silent(1);
    silent.add("10.0.0.1", 1);
    silent.spoke("10.0.0.1", 1);
    silent.spoke("10.0.0.1", 1);
    silent.spoke("10.0.0.9", 7);
    silent.add("10.0.0.1", 2);
    EXPECT_EQ(silent.excess("10.0.0.1", kNoInput), std::nullopt);
}

TEST(Silence, BytesThatWaitInTheSocketCountAsSpeaking) {
    SilentConnections silent(1);
    for (const std::uint64_t id : {1U, 2U, 3U}) {
        silent.add("10.0.0.1", id);
    }
    std::set<std::uint64_t> asked;
    const auto one_has = [&asked](std::uint64_t id) {
        EXPECT_TRUE(asked.insert(id).second) << "asked twice";
        return id == 1;
    };
    EXPECT_EQ(silent.excess("10.0.0.1", one_has), 2U);
    EXPECT_EQ(silent.excess("10.0.0.1", one_has), std::nullopt);
}

TEST(Refusals, TheFirstIsSaidAtOnceWithAddressPortAndFlag) {
    Refusals refusals;
    const auto line = refusals.count("10.0.0.9", 29500);
    ASSERT_TRUE(line.has_value());
    for (const char* part : {"10.0.0.9", "29500", "--store-allow=10.0.0.9"}) {
        EXPECT_NE(line->find(part), std::string::npos) << *line;
    }
}

TEST(Refusals, LaterOnesAreSaidAtTheTenthTheHundredth) {
    Refusals refusals;
    std::vector<int> said;
    for (int count = 1; count <= 1000; ++count) {
        if (refusals.count("10.0.0.9", 1).has_value()) {
            said.push_back(count);
        }
    }
    EXPECT_EQ(said, (std::vector<int>{1, 10, 100, 1000}));
}

TEST(Refusals, ALaterLineTellsTheCount) {
    Refusals refusals;
    std::optional<std::string> line;
    for (int count = 1; count <= 10; ++count) {
        line = refusals.count("10.0.0.9", 1);
    }
    ASSERT_TRUE(line.has_value());
    EXPECT_NE(line->find("10 connections"), std::string::npos) << *line;
}

TEST(Refusals, TooManyAddressesAreSaidOnce) {
    Refusals refusals;
    std::size_t lines = 0;
    for (std::size_t i = 0; i < kMaxRefusedAddresses * 4; ++i) {
        lines += refusals.count("10.0." + std::to_string(i / 200) + "." + std::to_string(i % 200), 1) ? 1U : 0U;
    }
    EXPECT_EQ(lines, kMaxRefusedAddresses + 1);
    for (int count = 2; count < 10; ++count) {
        EXPECT_EQ(refusals.count("10.0.0.0", 1), std::nullopt);
    }
    EXPECT_TRUE(refusals.count("10.0.0.0", 1).has_value());  // the known ones are still counted
}

}  // namespace
}  // namespace ddl::net
