// Listener: taking, opening and closing a port; what is said when somebody else has it.
#include "net/listener.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include "net/address.hpp"
#include "net/port_owner.hpp"
#include "support.hpp"

namespace ddl::net {
namespace {

using namespace test;

struct Accepted {
    std::vector<os::Fd> fds;
    std::vector<std::string> addresses;
    std::vector<std::string> warnings;

    ListenerCallbacks callbacks() {
        return {.accepted =
                    [this](os::Fd fd, std::string address) {
                        fds.push_back(std::move(fd));
                        addresses.push_back(std::move(address));
                    },
                .warn =
                    [this](std::string line) {
                        warnings.push_back(std::move(line));
                    }};
    }
};

std::unique_ptr<Listener> bound(Loop& loop, Reach reach, std::uint16_t port = 0) {
    auto listener = Listener::bind(loop, reach, port);
    EXPECT_TRUE(listener.has_value()) << listener.error().message;
    return std::move(*listener);
}

// Connects to an address of either family; 0 or errno.
int connect_to(const std::string& address, std::uint16_t port) {
    const auto target = socket_address(address, port);
    const os::Fd fd(::socket(target->ss_family, SOCK_STREAM, 0));
    return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*target), size_of(*target)) == 0 ? 0 : errno;
}

class BothReaches : public testing::TestWithParam<Reach> {};

TEST_P(BothReaches, APortThatIsOnlyHeldRefuses) {
    Loop loop;
    const auto listener = bound(loop, GetParam());
    EXPECT_NE(listener->port(), 0);
    EXPECT_EQ(RawClient(listener->port()).connect_error(), ECONNREFUSED);
}

TEST_P(BothReaches, OpenAccepts) {
    Loop loop;
    Accepted accepted;
    const auto listener = bound(loop, GetParam());
    ASSERT_TRUE(listener->open(accepted.callbacks()).has_value());
    const RawClient client(listener->port());
    EXPECT_EQ(client.connect_error(), 0);
    EXPECT_TRUE(run_until(loop, [&] { return !accepted.fds.empty(); }));
    EXPECT_EQ(accepted.addresses.at(0), "127.0.0.1") << "v4-mapped forms are normalised";
    EXPECT_NE(::fcntl(accepted.fds.at(0).get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(accepted.fds.at(0).get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_P(BothReaches, ClosedItRefusesButKeepsThePortAndOpensAgain) {
    Loop loop;
    const auto listener = bound(loop, GetParam());
    const std::uint16_t port = listener->port();
    for (int round = 0; round < 3; ++round) {
        Accepted accepted;
        const auto opened = listener->open(accepted.callbacks());
        ASSERT_TRUE(opened.has_value()) << opened.error().message;
        RawClient client(port);
        EXPECT_TRUE(run_until(loop, [&] { return accepted.fds.size() == 1; }));
        EXPECT_FALSE(client.ended());
        client.send("x");
        char byte = 0;
        EXPECT_TRUE(run_until(loop, [&] { return ::recv(accepted.fds.at(0).get(), &byte, 1, 0) == 1; }));
        listener->close();
        EXPECT_EQ(RawClient(port).connect_error(), ECONNREFUSED);
        EXPECT_EQ(listener->port(), port);
    }
}

TEST_P(BothReaches, ConnectionsThatWaitAreResetByClose) {
    Loop loop;
    Accepted accepted;
    const auto listener = bound(loop, GetParam());
    ASSERT_TRUE(listener->open(accepted.callbacks()).has_value());
    RawClient client(listener->port());
    ASSERT_EQ(client.connect_error(), 0);
    listener->close();
    EXPECT_TRUE(run_until(loop, [&] { return client.ended(); }));
    EXPECT_TRUE(accepted.fds.empty());
}

INSTANTIATE_TEST_SUITE_P(Listener, BothReaches, testing::Values(Reach::kLoopback, Reach::kEverywhere));

TEST(Listener, CloseWithoutOpenSpoilsNothing) {
    Loop loop;
    Accepted accepted;
    const auto listener = bound(loop, Reach::kEverywhere);
    listener->close();
    ASSERT_TRUE(listener->open(accepted.callbacks()).has_value());
    RawClient client(listener->port());
    EXPECT_TRUE(run_until(loop, [&] { return accepted.fds.size() == 1; }));
    EXPECT_EQ(::send(accepted.fds.at(0).get(), "y", 1, MSG_NOSIGNAL), 1);
    EXPECT_TRUE(client.gets(loop, "y"));
}

TEST(Listener, EverywhereServesIPv6WhereThereIsSome) {
    Loop loop;
    Accepted accepted;
    const auto listener = bound(loop, Reach::kEverywhere);
    ASSERT_TRUE(listener->open(accepted.callbacks()).has_value());
    if (connect_to("::1", listener->port()) == 0) {
        EXPECT_TRUE(run_until(loop, [&] { return !accepted.fds.empty(); }));
        EXPECT_EQ(accepted.addresses.at(0), "::1");
    }
    EXPECT_EQ(connect_to("127.0.0.1", listener->port()), 0);
    EXPECT_EQ(connect_to("127.0.0.2", listener->port()), 0);
}

TEST(Listener, LoopbackServesOneAddressOnly) {
    Loop loop;
    Accepted accepted;
    const auto listener = bound(loop, Reach::kLoopback);
    ASSERT_TRUE(listener->open(accepted.callbacks()).has_value());
    EXPECT_EQ(connect_to("127.0.0.1", listener->port()), 0);
    EXPECT_EQ(connect_to("127.0.0.2", listener->port()), ECONNREFUSED);
}

TEST(Listener, MayBeClosedInItsCallback) {
    Loop loop;
    const auto listener = bound(loop, Reach::kLoopback);
    int accepted = 0;
    ASSERT_TRUE(listener
                    ->open({.accepted =
                                [&](os::Fd, const std::string&) {
                                    ++accepted;
                                    listener->close();
                                },
                            .warn = nullptr})
                    .has_value());
    const RawClient first(listener->port());
    const RawClient second(listener->port());
    EXPECT_TRUE(run_until(loop, [&] { return accepted > 0; }));
    run_for(loop, 3ms);
    EXPECT_EQ(accepted, 1);
}

TEST(Listener, AcceptWaitingDoesNotWaitForTheLoop) {
    Loop loop;
    Accepted accepted;
    const auto listener = bound(loop, Reach::kLoopback);
    ASSERT_TRUE(listener->open(accepted.callbacks()).has_value());
    const RawClient client(listener->port());
    listener->accept_waiting();
    EXPECT_EQ(accepted.fds.size(), 1U);
    listener->accept_waiting();
    EXPECT_EQ(accepted.fds.size(), 1U);
}

TEST(Listener, APortInUseNamesAddressPortAndOwner) {
    Loop loop;
    const RawServer other;
    for (const Reach reach : {Reach::kLoopback, Reach::kEverywhere}) {
        const auto listener = Listener::bind(loop, reach, other.port());
        ASSERT_FALSE(listener.has_value());
        const std::string& text = listener.error().message;
        for (const std::string& part : {"port " + std::to_string(other.port()), std::string("Address already in use"),
                                        "pid " + std::to_string(::getpid()), std::string("net_test"),
                                        std::string(reach == Reach::kLoopback ? "127.0.0.1" : "all addresses")}) {
            EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
        }
        EXPECT_EQ(text.find('\n'), std::string::npos);
    }
}

TEST(Listener, WhatToTryWithAPortInUseDependsOnWhoKnowsIt) {
    Loop loop;
    const RawServer other;
    const auto ours = Listener::bind(loop, Reach::kLoopback, other.port());
    ASSERT_FALSE(ours.has_value());
    EXPECT_NE(ours.error().message.find("; choose another port, or 0 for a free one"), std::string::npos);
    const auto agreed = Listener::bind(loop, Reach::kEverywhere, other.port(), true);
    ASSERT_FALSE(agreed.has_value());
    EXPECT_NE(agreed.error().message.find("; end it, or choose another port on all nodes"), std::string::npos)
        << agreed.error().message;
    EXPECT_EQ(agreed.error().message.find("free one"), std::string::npos);
}

TEST(Listener, APortThatSomebodyOpenedFirstIsAnErrorOfOpen) {
    Loop loop;
    Accepted accepted;
    const auto first = bound(loop, Reach::kEverywhere);
    const auto second = bound(loop, Reach::kEverywhere, first->port());  // both only hold it
    ASSERT_TRUE(first->open(accepted.callbacks()).has_value());
    const auto opened = second->open(accepted.callbacks());
    ASSERT_FALSE(opened.has_value());
    EXPECT_NE(opened.error().message.find("Address already in use"), std::string::npos) << opened.error().message;
}

TEST(Listener, APortWithConnectionsThatJustEndedCanBeTakenAgain) {
    Loop loop;
    Accepted accepted;
    auto listener = bound(loop, Reach::kEverywhere);
    const std::uint16_t port = listener->port();
    ASSERT_TRUE(listener->open(accepted.callbacks()).has_value());
    {
        RawClient client(port);
        EXPECT_TRUE(run_until(loop, [&] { return accepted.fds.size() == 1; }));
        accepted.fds.clear();  // this end closes first and stays behind in TIME_WAIT
        EXPECT_TRUE(run_until(loop, [&] { return client.ended(); }));
    }
    listener.reset();
    listener = bound(loop, Reach::kEverywhere, port);
    EXPECT_TRUE(listener->open(accepted.callbacks()).has_value());
}

TEST(Listener, WithoutDescriptorsItWarnsOnceAndGoesOnLater) {
    Loop loop;
    Accepted accepted;
    const auto listener = bound(loop, Reach::kLoopback);
    ASSERT_TRUE(listener->open(accepted.callbacks()).has_value());
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(std::make_unique<RawClient>(listener->port()));
    }
    {
        const DescriptorLimit none(3);
        EXPECT_TRUE(run_until(loop, [&] { return !accepted.warnings.empty(); }));
        run_for(loop, 250ms);  // one pause and a second try
        EXPECT_EQ(accepted.warnings.size(), 1U);
        EXPECT_NE(accepted.warnings.at(0).find("ulimit -n"), std::string::npos) << accepted.warnings.at(0);
        EXPECT_TRUE(accepted.fds.empty());
    }
    EXPECT_TRUE(run_until(loop, [&] { return accepted.fds.size() == 3; }));
}

TEST(PortOwner, KnowsNobodyOfAFreePort) {
    std::uint16_t port = 0;
    {
        const RawServer server;
        port = server.port();
        EXPECT_NE(port_owner(port).find("pid " + std::to_string(::getpid()) + " ("), std::string::npos);
    }
    EXPECT_EQ(port_owner(port), "");
}

}  // namespace
}  // namespace ddl::net
