// Dialling, sending and receiving with a deadline, each against a peer that does as little as it can.
#include "worker/stream.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <string>

#include "unit/worker/loopback.hpp"

namespace ddl::worker {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Pair {
    Pair() {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            throw std::runtime_error("no socket pair");
        }
        own = os::Fd(ends[0]);
        peer = os::Fd(ends[1]);
    }
    os::Fd own;
    os::Fd peer;
};

Duration took(const std::function<void()>& call) {
    const auto begun = std::chrono::steady_clock::now();
    call();
    return std::chrono::steady_clock::now() - begun;
}

// ---- deadlines ----------------------------------------------------------------------------------------------------

TEST(Deadlines, OfNothingHavePassed) {
    const Deadline now(0ms);
    EXPECT_TRUE(now.passed());
    EXPECT_EQ(now.left(), 0ms);
    const Deadline before(-5s);
    EXPECT_TRUE(before.passed());
    EXPECT_EQ(before.left(), 0ms) << "poll() would take a negative time for none";
}

TEST(Deadlines, NeverRoundDownToABusyLoop) {
    for (int i = 0; i < 1000; ++i) {
        const Deadline soon(1ms);
        const auto left = soon.left();
        EXPECT_TRUE(left > 0ms || soon.passed()) << "nought left, yet not over";
        EXPECT_LE(left, 1ms);
    }
}

TEST(Deadlines, FarAwayOnesDoNotOverflow) {
    for (const auto far : {std::chrono::milliseconds::max(), std::chrono::milliseconds(std::int64_t{1} << 60U),
                           std::chrono::milliseconds(std::chrono::hours(24 * 365 * 200))}) {
        const Deadline deadline(far);
        EXPECT_FALSE(deadline.passed());
        EXPECT_GT(deadline.left(), std::chrono::hours(24));
        EXPECT_LE(deadline.left().count(), std::numeric_limits<int>::max()) << "it becomes poll()'s int";
        EXPECT_GT(deadline.end(), std::chrono::steady_clock::now());
    }
}

// ---- receiving ----------------------------------------------------------------------------------------------------

TEST(Receiving, AppendsWhatIsThere) {
    Pair pair;
    test::write_all(pair.peer.get(), "abc");
    std::string into = ">";
    EXPECT_EQ(receive_some(pair.own.get(), into, Deadline(5s)), Result<Transfer>(Transfer::kDone));
    EXPECT_EQ(into, ">abc");
}

TEST(Receiving, LooksOnceEvenPastTheDeadline) {
    Pair pair;
    test::write_all(pair.peer.get(), "late");
    std::string into;
    EXPECT_EQ(receive_some(pair.own.get(), into, Deadline(-1s)), Result<Transfer>(Transfer::kDone));
    EXPECT_EQ(into, "late");
    EXPECT_EQ(receive_some(pair.own.get(), into, Deadline(-1s)), Result<Transfer>(Transfer::kTimeout));
    EXPECT_EQ(into, "late") << "nothing came, nothing was appended";
}

TEST(Receiving, WaitsItsTimeAndNoLonger) {
    Pair pair;
    std::string into;
    const Duration waited = took(
        [&] { EXPECT_EQ(receive_some(pair.own.get(), into, Deadline(30ms)), Result<Transfer>(Transfer::kTimeout)); });
    EXPECT_GE(waited, Duration(30ms));
    EXPECT_LT(waited, Duration(5s));
}

TEST(Receiving, WakesWhenSomethingComes) {
    Pair pair;
    auto sender = std::async(std::launch::async, [&] { test::write_all(pair.peer.get(), "x"); });
    std::string into;
    EXPECT_EQ(receive_some(pair.own.get(), into, Deadline(10s)), Result<Transfer>(Transfer::kDone));
    EXPECT_EQ(into, "x");
}

TEST(Receiving, TheEndIsAnErrorAfterTheLastBytes) {
    Pair pair;
    test::write_all(pair.peer.get(), "bye");
    pair.peer.reset();
    std::string into;
    EXPECT_EQ(receive_some(pair.own.get(), into, Deadline(5s)), Result<Transfer>(Transfer::kDone));
    EXPECT_EQ(into, "bye");
    const auto end = receive_some(pair.own.get(), into, Deadline(5s));
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().message, "the server closed the connection");
}

TEST(Receiving, AResetIsAnErrorInWords) {
    test::Listener listener;
    auto own = dial("127.0.0.1", listener.port(), Deadline(5s));
    ASSERT_TRUE(own) << own.error().message;
    os::Fd accepted = listener.accept();
    const linger abort{1, 0};
    ::setsockopt(accepted.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
    accepted.reset();
    std::string into;
    const auto got = receive_some(own->get(), into, Deadline(5s));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().message, "Connection reset by peer");
}

// ---- sending ------------------------------------------------------------------------------------------------------

TEST(Sending, NothingNeedsNothing) {
    EXPECT_EQ(send_all(-1, "", Deadline(-1s)), Result<Transfer>(Transfer::kDone));
}

TEST(Sending, WhatFitsIsSentEvenPastTheDeadline) {
    Pair pair;
    EXPECT_EQ(send_all(pair.own.get(), "abc", Deadline(-1s)), Result<Transfer>(Transfer::kDone));
    EXPECT_EQ(test::read_exactly(pair.peer.get(), 3), "abc");
}

TEST(Sending, APeerThatDoesNotReadMissesTheDeadline) {
    Pair pair;
    const std::string much(std::size_t{16} << 20U, 'x');
    const Duration waited =
        took([&] { EXPECT_EQ(send_all(pair.own.get(), much, Deadline(30ms)), Result<Transfer>(Transfer::kTimeout)); });
    EXPECT_GE(waited, Duration(30ms));
    EXPECT_LT(waited, Duration(10s));
}

TEST(Sending, GoesOnWhenThePeerReadsSlowly) {
    Pair pair;
    const std::string much(std::size_t{4} << 20U, 'x');
    ::fcntl(pair.peer.get(), F_SETFL, 0);
    auto reader = std::async(std::launch::async, [&] { return test::read_exactly(pair.peer.get(), much.size()); });
    EXPECT_EQ(send_all(pair.own.get(), much, Deadline(20s)), Result<Transfer>(Transfer::kDone));
    EXPECT_EQ(reader.get(), much);
}

TEST(Sending, AClosedPeerIsAnErrorAndNoSignal) {
    Pair pair;
    pair.peer.reset();
    const auto sent = send_all(pair.own.get(), "x", Deadline(5s));
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().message, "Broken pipe");
}

// ---- dialling -----------------------------------------------------------------------------------------------------

TEST(Dialling, GivesADescriptorThatNeitherBlocksNorLeaks) {
    const test::Listener listener;
    const auto fd = dial("127.0.0.1", listener.port(), Deadline(5s));
    ASSERT_TRUE(fd) << fd.error().message;
    EXPECT_NE(::fcntl(fd->get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Dialling, TriesOnceEvenPastTheDeadline) {
    const test::Listener listener;
    EXPECT_FALSE(dial("127.0.0.1", 1, Deadline(-1s)));
    // A connection to this machine is made within the first look.
    const auto fd = dial("127.0.0.1", listener.port(), Deadline(1s));
    EXPECT_TRUE(fd) << fd.error().message;
}

TEST(Dialling, ATryIsRepeatedUntilSomebodyListens) {
    os::Fd holder(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(holder.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ::getsockname(holder.get(), reinterpret_cast<sockaddr*>(&address), &size);
    auto dialled = std::async(std::launch::async, [port = ntohs(address.sin_port)] {
        return dial("127.0.0.1", port, Deadline(20s));  // refused at first: bound, but not listening
    });
    EXPECT_EQ(dialled.wait_for(20ms), std::future_status::timeout);
    ASSERT_EQ(::listen(holder.get(), 1), 0);
    const auto fd = dialled.get();
    EXPECT_TRUE(fd) << fd.error().message;
}

TEST(Dialling, ARefusalNamesTheAddressAndTheReason) {
    std::uint16_t port = 0;
    {
        const test::Listener gone;
        port = gone.port();
    }
    const auto fd = dial("127.0.0.1", port, Deadline(10ms));
    ASSERT_FALSE(fd);
    EXPECT_EQ(fd.error().message, "127.0.0.1: Connection refused");
}

TEST(Dialling, ANameThatIsNoneIsALookUpThatFailed) {
    const auto fd = dial("no-such-host.invalid", 1, Deadline(0ms));
    ASSERT_FALSE(fd);
    EXPECT_THAT(fd.error().message, StartsWith("look-up: "));
    const auto empty = dial("a host with blanks", 1, Deadline(0ms));
    ASSERT_FALSE(empty);
    EXPECT_THAT(empty.error().message, HasSubstr("look-up: "));
}

}  // namespace
}  // namespace ddl::worker
