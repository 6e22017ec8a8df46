// Connections: recognising clients, closing bad ones, holding back those that ask for more than they read.
#include "core/store_session.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/store_vectors.hpp"

namespace ddl::core {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
namespace op = wire::op;

constexpr ConnectionId kA{1};
constexpr ConnectionId kB{2};
constexpr ConnectionId kC{3};

std::string modern(const std::vector<wire::Request>& requests) {
    std::string bytes;
    wire::append_handshake(bytes);
    for (const wire::Request& request : requests) {
        wire::append_request(bytes, request);
    }
    return bytes;
}

std::string old(wire::Dialect dialect, const wire::Request& request) {
    std::string bytes;
    EXPECT_TRUE(wire::append_request(bytes, request, dialect));
    return bytes;
}

// All bytes for one connection, in hex; "closed" at the end if it was closed.
std::string seen_by(ConnectionId connection, const StoreReaction& reaction) {
    std::string seen;
    for (const StoreOutput& output : reaction.outputs) {
        if (output.connection == connection) {
            seen += test::to_hex(output.bytes) + (output.close ? "closed" : "");
        }
    }
    return seen;
}

class Sessions : public testing::Test {
protected:
    void open(ConnectionId connection, Duration at = 0s, const char* address = "10.0.0.1") {
        sessions_.opened(connection, address, Instant{} + at);
    }

    StoreSessions sessions_;
};

TEST_F(Sessions, AModernClientInOneSegment) {
    open(kA);
    EXPECT_EQ(seen_by(kA, sessions_.received(kA, modern({op::Ping{0x04030201}, op::Add{"/n", 2}}))),
              "010203040200000000000000");
}

TEST_F(Sessions, WakesGoToTheOtherConnection) {
    open(kA);
    open(kB);
    EXPECT_EQ(seen_by(kA, sessions_.received(kA, modern({op::Wait{{"/k"}}}))), "");
    const StoreReaction reaction = sessions_.received(kB, modern({op::Set{"/k", "v"}, op::NumKeys{}}));
    EXPECT_EQ(seen_by(kA, reaction), "00");
    EXPECT_EQ(seen_by(kB, reaction), "0100000000000000");
}

TEST_F(Sessions, BadBeginningsAreClosed) {
    for (const std::string& bytes : {"\0\1\2\3\4"s, "GET / HTTP/1.1\r\n"s, "\xDDLA\1"s, "\x16\3\1"s, "\xFF"s}) {
        open(kA);
        EXPECT_EQ(seen_by(kA, sessions_.received(kA, bytes)), "closed");
        EXPECT_EQ(seen_by(kA, sessions_.received(kA, modern({op::NumKeys{}}))), "") << "after closing";
        sessions_.closed(kA);
    }
}

TEST_F(Sessions, ErrorsCloseAfterTheAnswersBefore) {
    open(kA);
    const StoreReaction reaction = sessions_.received(kA, modern({op::NumKeys{}}) + "\xFF"s + modern({op::NumKeys{}}));
    EXPECT_EQ(seen_by(kA, reaction), "0000000000000000closed");
    EXPECT_EQ(reaction.outputs.back().why, "unknown opcode 255");
}

TEST_F(Sessions, ASecondHandshakeCloses) {
    open(kA);
    EXPECT_EQ(seen_by(kA, sessions_.received(kA, modern({}) + modern({}))), "closed");
}

TEST_F(Sessions, ARefusedRequestClosesOnlyItsConnection) {
    open(kA);
    open(kB);
    EXPECT_EQ(seen_by(kA, sessions_.received(kA, modern({op::Set{"/n", "text"}, op::Add{"/n", 1}}))), "closed");
    EXPECT_EQ(seen_by(kB, sessions_.received(kB, modern({op::Get{"/n"}}))), "040000000000000074657874");
}

TEST_F(Sessions, AClosedConnectionsWaitIsForgotten) {
    open(kA);
    open(kB);
    EXPECT_TRUE(sessions_.received(kA, modern({op::Wait{{"/k"}}})).outputs.empty());
    sessions_.closed(kA);
    EXPECT_EQ(seen_by(kA, sessions_.received(kB, modern({op::Set{"/k", "v"}}))), "");
    EXPECT_EQ(sessions_.table().waiting(), 0U);
}

TEST_F(Sessions, BytesOfUnknownConnectionsAreIgnored) {
    EXPECT_TRUE(sessions_.received(kC, modern({op::NumKeys{}})).outputs.empty());
    EXPECT_FALSE(sessions_.stalled(kC));
    EXPECT_TRUE(sessions_.drained(kC).outputs.empty());
}

TEST_F(Sessions, ResetForgetsKeysAndConnections) {
    open(kA);
    EXPECT_TRUE(sessions_.received(kA, modern({op::Set{"/k", "v"}})).outputs.empty());
    sessions_.reset();
    EXPECT_EQ(sessions_.table().keys(), 0U);
    EXPECT_TRUE(sessions_.received(kA, old(wire::Dialect::k2_1, op::NumKeys{})).outputs.empty());
}

// Ten GETs of a megabyte arrive at once: answers come a budget at a time, and none is lost.
TEST_F(Sessions, OutputIsHeldBackUntilItIsRead) {
    open(kA);
    std::vector<wire::Request> requests = {op::Set{"/k", std::string(kReplyBudgetBytes, 'v')}};
    requests.insert(requests.end(), 10, op::Get{"/k"});
    StoreReaction reaction = sessions_.received(kA, modern(requests));
    std::size_t answered = 0;
    int turns = 0;
    while (true) {
        std::size_t bytes = 0;
        for (const StoreOutput& output : reaction.outputs) {
            bytes += output.bytes.size();
        }
        EXPECT_LE(bytes, kReplyBudgetBytes + 8);
        answered += bytes;
        if (!sessions_.stalled(kA)) {
            break;
        }
        ++turns;
        EXPECT_TRUE(sessions_.received(kA, "").outputs.empty());
        reaction = sessions_.drained(kA);
    }
    EXPECT_EQ(answered, 10 * (kReplyBudgetBytes + 8));
    EXPECT_EQ(turns, 10);
}

TEST_F(Sessions, InputThatArrivesWhileHeldBackWaits) {
    open(kA);
    EXPECT_FALSE(sessions_.received(kA, modern({op::Set{"/k", std::string(kReplyBudgetBytes, 'v')}, op::Get{"/k"}}))
                     .outputs.empty());
    ASSERT_TRUE(sessions_.stalled(kA));
    std::string more;
    wire::append_request(more, op::NumKeys{});
    EXPECT_TRUE(sessions_.received(kA, more).outputs.empty());
    EXPECT_EQ(seen_by(kA, sessions_.drained(kA)), "0100000000000000");
    EXPECT_FALSE(sessions_.stalled(kA));
}

// DELETE_KEY of 2.1 and WATCH_KEY of 1.13 are the same byte.
TEST_F(Sessions, AnOldClientWithASilentFollowerIsOf1_13) {
    open(kA);
    open(kB, 500ms);
    EXPECT_EQ(seen_by(kA, sessions_.received(kA, old(wire::Dialect::k1_13, op::Set{"/k", "v"}))), "");
    const StoreReaction reaction = sessions_.received(kA, old(wire::Dialect::k1_13, op::DeleteKey{"/k"}));
    EXPECT_EQ(seen_by(kA, reaction), "0100000000000000");
    ASSERT_EQ(reaction.notes.size(), 1U);
    EXPECT_NE(reaction.notes[0].find("older than PyTorch 2.1"), std::string::npos);
}

TEST_F(Sessions, AnOldClientAloneIsOf2_1) {
    open(kA);
    open(kB, 0s, "10.0.0.2");
    EXPECT_EQ(seen_by(kA, sessions_.received(kA, old(wire::Dialect::k2_1, op::Append{"/k", "v"}))), "");
    const StoreReaction reaction = sessions_.received(kA, old(wire::Dialect::k2_1, op::DeleteKey{"/k"}));
    EXPECT_EQ(seen_by(kA, reaction), "0100000000000000");
    EXPECT_TRUE(reaction.notes.empty()) << "said once, at the first ambiguous request";
}

TEST_F(Sessions, AWatchOnASecondConnectionIsServed) {
    open(kA);
    open(kB, 1ms);
    EXPECT_EQ(seen_by(kB, sessions_.received(kB, old(wire::Dialect::k1_13, op::WatchKey{"/k"}))), "03");
    const StoreReaction reaction = sessions_.received(kA, old(wire::Dialect::k1_13, op::Set{"/k", "v"}));
    EXPECT_EQ(seen_by(kB, reaction), "0102000000000000002f6b0000000000000000010000000000000076");
    EXPECT_EQ(seen_by(kA, sessions_.received(kA, old(wire::Dialect::k1_13, op::DeleteKey{"/k"}))), "0100000000000000");
}

TEST(SessionsCompat, SaysWhichReleaseWithoutGuessing) {
    for (const auto& [compat, dialect] :
         {std::pair(OldRelease::k1_13, wire::Dialect::k1_13), std::pair(OldRelease::k2_1, wire::Dialect::k2_1)}) {
        StoreSessions sessions(compat);
        sessions.opened(kA, "10.0.0.1", Instant{});
        EXPECT_TRUE(sessions.received(kA, old(dialect, op::Set{"/k", "v"})).outputs.empty());
        const StoreReaction reaction = sessions.received(kA, old(dialect, op::DeleteKey{"/k"}));
        EXPECT_EQ(seen_by(kA, reaction), "0100000000000000");
        EXPECT_TRUE(reaction.notes.empty());
    }
}

TEST(ParseOldRelease, Table) {
    EXPECT_EQ(parse_old_release("auto"), OldRelease::kAuto);
    EXPECT_EQ(parse_old_release("1.13"), OldRelease::k1_13);
    EXPECT_EQ(parse_old_release("2.1"), OldRelease::k2_1);
    for (const char* text : {"", "2.2", "1.13 ", "AUTO"}) {
        EXPECT_FALSE(parse_old_release(text)) << text;
    }
}

}  // namespace
}  // namespace ddl::core
