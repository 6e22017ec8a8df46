#include "core/store_dialect.hpp"

#include <gtest/gtest.h>

namespace ddl::core {
namespace {

using namespace std::chrono_literals;
using wire::Dialect;

constexpr ConnectionId kA{1};
constexpr ConnectionId kB{2};
constexpr ConnectionId kC{3};
constexpr std::uint8_t kAdd = 3;
constexpr std::uint8_t kSeven = 7;

class Detector : public testing::Test {
protected:
    void open(ConnectionId connection, Duration at, const char* address = "h1") {
        detector_.opened(connection, address, Instant{} + at);
    }

    OldReleaseDetector detector_;
};

TEST_F(Detector, ALoneConnectionIsOf2_1) {
    open(kA, 0s);
    detector_.spoke(kA, kAdd);
    EXPECT_EQ(detector_.decide(kA), Dialect::k2_1);
}

TEST_F(Detector, ASilentFollowerMeans1_13) {
    open(kA, 0s);
    detector_.spoke(kA, kAdd);
    open(kB, 1s);
    EXPECT_EQ(detector_.decide(kA), Dialect::k1_13);
}

TEST_F(Detector, AFollowerAfterTheWindowMeansNothing) {
    open(kA, 0s);
    open(kB, 1s + 1ns);
    EXPECT_EQ(detector_.decide(kA), Dialect::k2_1);
}

TEST_F(Detector, AFollowerFromElsewhereMeansNothing) {
    open(kA, 0s);
    open(kB, 0s, "h2");
    EXPECT_EQ(detector_.decide(kA), Dialect::k2_1);
}

TEST_F(Detector, AnEarlierSilentConnectionIsNoFollower) {
    open(kA, 0s);
    open(kB, 0s);
    EXPECT_EQ(detector_.decide(kB), Dialect::k2_1);
}

TEST_F(Detector, AFollowerThatTalksIsAnotherClient) {
    open(kA, 0s);
    open(kB, 10ms);
    detector_.spoke(kB, kAdd);
    EXPECT_EQ(detector_.decide(kA), Dialect::k2_1);
}

TEST_F(Detector, AFollowerThatWatchesIsStillTheSecondConnection) {
    open(kA, 0s);
    open(kB, 10ms);
    detector_.spoke(kB, kSeven);
    EXPECT_EQ(detector_.decide(kA), Dialect::k1_13);
    EXPECT_EQ(detector_.decide(kB), Dialect::k1_13);
}

// DELETE_KEY of 2.1 is the same byte as WATCH_KEY of 1.13, which nobody sends on a first connection.
TEST_F(Detector, OpcodeSevenWithoutALeaderIsADelete) {
    open(kB, 0s, "h2");
    open(kA, 2s);
    detector_.spoke(kA, kSeven);
    EXPECT_EQ(detector_.decide(kA), Dialect::k2_1);
}

TEST_F(Detector, OpcodeSevenAfterALeaderIsAWatch) {
    open(kA, 0s);
    detector_.spoke(kA, kAdd);
    open(kB, 1s);
    detector_.spoke(kB, kSeven);
    EXPECT_EQ(detector_.decide(kB), Dialect::k1_13);
    open(kC, 3s);
    detector_.spoke(kC, kSeven);
    EXPECT_EQ(detector_.decide(kC), Dialect::k2_1) << "its leaders are too old";
}

TEST_F(Detector, OnlyTheFirstByteCounts) {
    open(kA, 0s);
    detector_.spoke(kA, kAdd);
    detector_.spoke(kA, kSeven);
    EXPECT_EQ(detector_.decide(kA), Dialect::k2_1);
}

TEST_F(Detector, AFollowerThatLeftIsForgotten) {
    open(kA, 0s);
    open(kB, 10ms);
    open(kC, 10ms);
    detector_.closed(kB);
    EXPECT_EQ(detector_.decide(kA), Dialect::k1_13) << "C is still there";
    open(ConnectionId{4}, 100s);
    open(ConnectionId{5}, 100s);
    detector_.closed(ConnectionId{5});
    detector_.closed(ConnectionId{5});
    EXPECT_EQ(detector_.decide(ConnectionId{4}), Dialect::k2_1);
}

TEST_F(Detector, TheAnswerNeverChanges) {
    open(kA, 0s);
    EXPECT_EQ(detector_.decide(kA), Dialect::k2_1);
    open(kB, 10ms);
    EXPECT_EQ(detector_.decide(kA), Dialect::k2_1);
    EXPECT_EQ(detector_.decide(kC), Dialect::k2_1) << "unknown";
}

TEST_F(Detector, ClearForgets) {
    open(kA, 0s);
    open(kB, 0s);
    detector_.clear();
    open(kA, 0s);
    EXPECT_EQ(detector_.decide(kA), Dialect::k2_1);
}

}  // namespace
}  // namespace ddl::core
