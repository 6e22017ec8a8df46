// Connection over a socket pair: queueing, limits, endings, and letting go of it from within its own callbacks.
#include "net/connection.hpp"

#include <sys/socket.h>

#include "support.hpp"

namespace ddl::net {
namespace {

using namespace test;

constexpr std::size_t kMiB = 1U << 20U;

struct Pair {
    explicit Pair(Loop& loop, std::size_t limit = 64 * kMiB) {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        connection = Connection::open(loop, os::Fd(ends[0]), limit);
        peer.reset(ends[1]);
    }
    void start() {
        connection->start({.received = [this](std::string_view bytes) { received += bytes; },
                           .closed =
                               [this](const std::string& reason) {
                                   ++closed;
                                   why = reason;
                               },
                           .sent =
                               [this] {
                                   ++sent;
                               }});
    }
    void put(std::string_view bytes) const {
        EXPECT_EQ(::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    }
    // Reads all that is there now; false at the end of the stream.
    bool take() {
        std::array<char, 65536> bytes{};
        for (;;) {
            const ssize_t got = ::recv(peer.get(), bytes.data(), bytes.size(), 0);
            if (got <= 0) {
                return got != 0 && errno == EAGAIN;
            }
            taken.append(bytes.data(), static_cast<std::size_t>(got));
        }
    }

    std::shared_ptr<Connection> connection;
    os::Fd peer;
    std::string received;
    std::string taken;
    std::string why;
    int closed = 0;
    int sent = 0;
};

TEST(Connection, SendsAtOnceWhenNothingIsQueued) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.connection->send("hello");
    EXPECT_EQ(pair.connection->unsent(), 0U);
    EXPECT_TRUE(pair.take());  // the loop has not turned yet
    EXPECT_EQ(pair.taken, "hello");
    pair.connection->close();
}

TEST(Connection, ReceivesInOrder) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.put("ab");
    EXPECT_TRUE(run_until(loop, [&] { return pair.received == "ab"; }));
    pair.put("cd");
    EXPECT_TRUE(run_until(loop, [&] { return pair.received == "abcd"; }));
    pair.connection->close();
}

TEST(Connection, QueuesWhatASlowPeerDoesNotTakeAndKeepsTheOrder) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    std::string expected;
    for (int i = 0; i < 40; ++i) {
        const std::string piece(static_cast<std::size_t>(1 + i * 7001), static_cast<char>('a' + i % 26));
        expected += piece;
        pair.connection->send(piece);
    }
    EXPECT_GT(pair.connection->unsent(), kMiB);
    EXPECT_TRUE(run_until(loop, [&] { return pair.take() && pair.taken.size() >= expected.size(); }));
    EXPECT_EQ(pair.taken, expected);
    EXPECT_TRUE(run_until(loop, [&] { return pair.sent > 0; }));
    EXPECT_EQ(pair.sent, 1);
    EXPECT_EQ(pair.connection->unsent(), 0U);
    pair.connection->close();
}

TEST(Connection, IsGivenUpBeyondItsLimitAndSaysSoOnceLater) {
    Loop loop;
    Pair pair(loop, kMiB);
    pair.start();
    pair.connection->send(std::string(4 * kMiB, 'x'));  // one piece may be larger than the limit
    EXPECT_EQ(pair.closed, 0);
    pair.connection->send("one more");
    EXPECT_EQ(pair.closed, 0) << "never from within send()";
    pair.connection->send("ignored");
    EXPECT_TRUE(run_until(loop, [&] { return pair.closed > 0; }));
    run_for(loop, 3ms);
    EXPECT_EQ(pair.closed, 1);
    EXPECT_NE(pair.why.find("not taken by the peer"), std::string::npos) << pair.why;
    EXPECT_FALSE(pair.connection->is_open());
}

TEST(Connection, TellsOfTheEndAfterTheLastBytes) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.put("last words");
    pair.peer.reset();
    EXPECT_TRUE(run_until(loop, [&] { return pair.closed > 0; }));
    EXPECT_EQ(pair.received, "last words");
    EXPECT_EQ(pair.why, "closed by the peer");
}

TEST(Connection, AFailedSendIsReportedByTheReadSide) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.peer.reset();
    pair.connection->send("nobody takes it");
    EXPECT_EQ(pair.closed, 0);
    EXPECT_TRUE(run_until(loop, [&] { return pair.closed == 1; }));
}

TEST(Connection, ReportsNothingAfterClose) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.put("unread");
    pair.connection->close();
    pair.connection->close();
    pair.connection->send("ignored");
    run_for(loop, 3ms);
    EXPECT_EQ(pair.received, "");
    EXPECT_EQ(pair.closed, 0);
    EXPECT_FALSE(pair.take());
}

TEST(Connection, CloseWhenSentDeliversEverythingFirst) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.put("input that nobody reads any more must not reset the connection");
    const std::string bytes(3 * kMiB, 'x');
    pair.connection->send(bytes);
    int lingered = 0;
    pair.connection->close_when_sent([&] { ++lingered; });
    pair.connection->send("too late");
    bool ended = false;
    EXPECT_TRUE(run_until(loop, [&] { return ended = ended || !pair.take(); }));
    EXPECT_EQ(pair.taken, bytes);
    EXPECT_TRUE(pair.connection->is_open()) << "waits for the peer's end";
    EXPECT_EQ(lingered, 0);
    pair.peer.reset();
    EXPECT_TRUE(run_until(loop, [&] { return lingered == 1; }));
    EXPECT_FALSE(pair.connection->is_open());
    EXPECT_EQ(pair.closed, 0);
    EXPECT_EQ(pair.received, "");
}

TEST(Connection, CloseWhenSentDoesNotWaitForEver) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.connection->send(std::string(3 * kMiB, 'x'));
    const Instant before = os::now();
    int lingered = 0;
    pair.connection->close_when_sent([&] { ++lingered; });
    EXPECT_TRUE(run_until(loop, [&] { return lingered == 1; }));
    EXPECT_FALSE(pair.connection->is_open());
    EXPECT_GE(os::now() - before, kLingerTime);
}

TEST(Connection, ClosedWhileItLingersItSaysNothing) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.connection->close_when_sent([] { FAIL() << "the owner knows"; });
    pair.connection->close();
    pair.peer.reset();
    run_for(loop, std::chrono::milliseconds(20));
}

TEST(Connection, ReleaseGivesTheUnreadBytesAway) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.put("for somebody else");
    const os::Fd fd = pair.connection->release();
    ASSERT_TRUE(fd);
    run_for(loop, 3ms);
    EXPECT_EQ(pair.received, "");
    EXPECT_EQ(pair.closed, 0);
    std::array<char, 64> bytes{};
    EXPECT_EQ(::recv(fd.get(), bytes.data(), bytes.size(), 0), 17);
    EXPECT_FALSE(pair.connection->release()) << "only once";
}

TEST(Connection, HasInputLooksWithoutTaking) {
    Loop loop;
    Pair pair(loop);
    EXPECT_FALSE(pair.connection->has_input());
    pair.put("x");
    EXPECT_TRUE(pair.connection->has_input());
    pair.start();
    EXPECT_TRUE(run_until(loop, [&] { return pair.received == "x"; }));
    EXPECT_FALSE(pair.connection->has_input());
    pair.connection->close();
    EXPECT_FALSE(pair.connection->has_input());
}

TEST(Connection, PausedReadsNothingButStillSends) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.connection->pause_reading();
    pair.put("later");
    run_for(loop, 3ms);
    EXPECT_EQ(pair.received, "");
    pair.connection->send("now");
    EXPECT_TRUE(pair.take());
    EXPECT_EQ(pair.taken, "now");
    pair.connection->resume_reading();
    EXPECT_TRUE(run_until(loop, [&] { return pair.received == "later"; }));
    pair.connection->close();
}

TEST(Connection, PausedFromWithinItsCallbackItStopsAtOnce) {
    Loop loop;
    Pair pair(loop);
    int calls = 0;
    pair.connection->start({.received =
                                [&](std::string_view) {
                                    ++calls;
                                    pair.connection->pause_reading();
                                },
                            .closed = [](const std::string&) {},
                            .sent = nullptr});
    for (int i = 0; i < 3; ++i) {
        pair.put(std::string(60'000, 'x'));
    }
    EXPECT_TRUE(run_until(loop, [&] { return calls > 0; }));
    run_for(loop, 3ms);
    EXPECT_EQ(calls, 1);
    pair.connection->close();
}

TEST(Connection, ThePeersEndIsNoticedOnceReadingGoesOn) {
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.connection->pause_reading();
    pair.peer.reset();
    run_for(loop, 3ms);
    pair.connection->resume_reading();
    EXPECT_TRUE(run_until(loop, [&] { return pair.closed == 1; }));
}

TEST(Connection, MayBeLetGoOfInReceived) {
    Loop loop;
    Pair pair(loop);
    int calls = 0;
    pair.connection->start({.received =
                                [&, proof = std::string(100, 'x')](std::string_view bytes) {
                                    pair.connection->close();
                                    pair.connection.reset();
                                    calls += proof.size() == 100 && bytes == "a" ? 1 : 1000;
                                },
                            .closed = [&](const std::string&) { calls += 1000; },
                            .sent = nullptr});
    pair.put("a");
    EXPECT_TRUE(run_until(loop, [&] { return calls > 0; }));
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(pair.connection, nullptr);
}

TEST(Connection, MayBeLetGoOfInClosed) {
    Loop loop;
    Pair pair(loop);
    std::string why;
    pair.connection->start({.received = [](std::string_view) {},
                            .closed =
                                [&](const std::string& reason) {
                                    pair.connection.reset();
                                    why = reason;
                                },
                            .sent = nullptr});
    pair.peer.reset();
    EXPECT_TRUE(run_until(loop, [&] { return !why.empty(); }));
    EXPECT_EQ(why, "closed by the peer");
}

TEST(Connection, CallbacksMayBeReplacedInReceived) {
    Loop loop;
    Pair pair(loop);
    std::string second;
    pair.connection->start({.received =
                                [&, proof = std::string(100, 'x')](std::string_view) {
                                    pair.start();  // as replace_callbacks, and starts to wait again: harmless
                                    second = proof;
                                },
                            .closed = [](const std::string&) {},
                            .sent = nullptr});
    pair.put("a");
    EXPECT_TRUE(run_until(loop, [&] { return !second.empty(); }));
    pair.put("b");
    EXPECT_TRUE(run_until(loop, [&] { return pair.received == "b"; }));
    EXPECT_EQ(second, std::string(100, 'x'));
    pair.connection->close();
}

TEST(Connection, ADescriptorThatCannotBeWatchedEndsAtOnce) {
    Loop loop;
    std::string why;
    const auto connection = Connection::open(loop, os::Fd(), kMiB);
    connection->start({.received = [](std::string_view) {},
                       .closed = [&](const std::string& reason) { why = reason; },
                       .sent = nullptr});
    EXPECT_EQ(why, "");
    EXPECT_TRUE(run_until(loop, [&] { return !why.empty(); }));
}

TEST(Connection, SurvivesTheLoopsEndWhileItWaits) {
    std::shared_ptr<Connection> connection;
    Loop loop;
    Pair pair(loop);
    pair.start();
    pair.connection->send(std::string(3 * kMiB, 'x'));
    pair.connection->close_when_sent();
    pair.connection.reset();  // held by the loop only, which ends first
}

TEST(Addresses, OfBothEnds) {
    const RawServer server;
    RawClient client(server.port(), "127.0.0.3");
    EXPECT_EQ(peer_address(client.fd().get()), "127.0.0.1");
    EXPECT_EQ(own_address(client.fd().get()), "127.0.0.3");
    EXPECT_EQ(peer_address(-1), "");
    EXPECT_EQ(own_address(-1), "");
}

}  // namespace
}  // namespace ddl::net
