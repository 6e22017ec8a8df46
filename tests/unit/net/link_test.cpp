// AgentLink: dialling for ever, sessions with a real hub, endings.
#include <sys/socket.h>

#include "net/agent_sessions.hpp"
#include "support.hpp"

namespace ddl::net {
namespace {

using namespace test;

wire::Message notice(const std::string& text) {
    return wire::Notice{text};
}

std::string magic() {
    return {wire::kSessionMagic.begin(), wire::kSessionMagic.end()};
}

// A port on which nobody listens.
std::uint16_t unused_port() {
    return RawServer().port();
}

class Link : public testing::Test {
protected:
    void dial(const std::string& host, std::uint16_t port) {
        link = std::make_unique<AgentLink>(loop, std::vector<LinkTarget>{{host, port}},
                                           LinkCallbacks{.up =
                                                             [this](std::string own) {
                                                                 own_address = std::move(own);
                                                                 ++ups;
                                                                 if (on_up) {
                                                                     on_up();
                                                                 }
                                                             },
                                                         .received =
                                                             [this](wire::Message message) {
                                                                 received.push_back(std::move(message));
                                                                 if (on_received) {
                                                                     on_received();
                                                                 }
                                                             },
                                                         .down = [this](std::string why) { downs.push_back(why); },
                                                         .retrying =
                                                             [this](std::string why) {
                                                                 tries.push_back(why);
                                                             }});
    }
    void open_hub(std::uint16_t port = 0) {
        auto listening =
            AgentHub::listen(loop, port,
                             {.arrived =
                                  [this](PeerId id, const std::string&) {
                                      peer = id;
                                      ++arrivals;
                                  },
                              .received = [this](PeerId, wire::Message m) { at_hub.push_back(std::move(m)); },
                              .gone = [this](PeerId, const std::string&) { ++gone; },
                              .store_client =
                                  [](int fd, const std::string&) {
                                      ::close(fd);
                                  }});
        ASSERT_TRUE(listening.has_value()) << listening.error().message;
        hub = std::move(*listening);
    }
    bool until(const std::function<bool()>& holds) {
        return run_until(loop, holds);
    }

    Loop loop;
    std::unique_ptr<AgentHub> hub;
    std::unique_ptr<AgentLink> link;
    std::function<void()> on_up;
    std::function<void()> on_received;
    int ups = 0;
    std::string own_address;
    std::vector<wire::Message> received;
    std::vector<std::string> downs;
    std::vector<std::string> tries;
    PeerId peer{};
    int arrivals = 0;
    int gone = 0;
    std::vector<wire::Message> at_hub;
};

TEST_F(Link, ExchangesMessagesWithAHub) {
    open_hub();
    on_up = [this] {
        link->send(notice("from the link"));
    };
    dial("127.0.0.1", hub->port());
    EXPECT_EQ(ups, 0) << "never from within the constructor";
    ASSERT_TRUE(until([&] { return at_hub.size() == 1; }));
    EXPECT_EQ(at_hub.at(0), notice("from the link"));
    EXPECT_EQ(own_address, "127.0.0.1");
    for (int i = 0; i < 300; ++i) {
        hub->send(peer, notice(std::to_string(i) + std::string(1500, 'x')));
        link->send(notice(std::to_string(i) + std::string(1500, 'y')));
    }
    ASSERT_TRUE(until([&] { return received.size() == 300 && at_hub.size() == 301; }));
    for (std::size_t i = 0; i < 300; ++i) {
        ASSERT_EQ(received.at(i), notice(std::to_string(i) + std::string(1500, 'x')));
    }
    EXPECT_TRUE(hub->idle());
    EXPECT_TRUE(link->idle());
    EXPECT_TRUE(tries.empty());
}

TEST_F(Link, SaysTheMagicBeforeAnythingElse) {
    RawServer server;
    on_up = [this] {
        link->send(notice("hello"));
    };
    dial("127.0.0.1", server.port());
    os::Fd fd;
    ASSERT_TRUE(until([&] { return static_cast<bool>(fd = server.accept()); }));
    std::array<char, 256> bytes{};
    ssize_t got = 0;
    const std::string expected = magic() + wire::encode(notice("hello"));
    ASSERT_TRUE(until([&] {
        const ssize_t now = ::recv(fd.get(), bytes.data() + got, bytes.size() - static_cast<std::size_t>(got), 0);
        got += now > 0 ? now : 0;
        return got >= static_cast<ssize_t>(expected.size());
    }));
    EXPECT_EQ(std::string(bytes.data(), static_cast<std::size_t>(got)), expected);
}

TEST_F(Link, ResolvesNames) {
    open_hub();
    dial("localhost", hub->port());
    EXPECT_TRUE(until([&] { return arrivals == 1; }));
    EXPECT_TRUE(own_address == "127.0.0.1" || own_address == "::1") << own_address;
}

TEST_F(Link, WaitsForAHubThatComesLater) {
    const std::uint16_t port = unused_port();
    dial("127.0.0.1", port);
    ASSERT_TRUE(until([&] { return !tries.empty(); }));
    EXPECT_NE(tries.at(0).find("127.0.0.1:" + std::to_string(port)), std::string::npos) << tries.at(0);
    EXPECT_NE(tries.at(0).find("Connection refused"), std::string::npos) << tries.at(0);
    run_for(loop, 300ms);
    EXPECT_EQ(tries.size(), 1U) << "the same reason is said once";
    open_hub(port);
    EXPECT_TRUE(until([&] { return ups == 1; }));
}

TEST_F(Link, SaysANewReason) {
    dial("no-such-host.invalid", 1);
    ASSERT_TRUE(until([&] { return !tries.empty(); }));
    EXPECT_NE(tries.at(0).find("no-such-host.invalid"), std::string::npos) << tries.at(0);
    EXPECT_EQ(ups, 0);
}

TEST_F(Link, TriesAllAddressesOfAName) {
    // `localhost` may be ::1 first; a server on 127.0.0.1 only must be found all the same.
    RawServer server;
    dial("localhost", server.port());
    EXPECT_TRUE(until([&] { return ups == 1; }));
    EXPECT_EQ(own_address, "127.0.0.1");
}

TEST_F(Link, ComesBackToAHubThatWasMadeAnew) {
    open_hub();
    const std::uint16_t port = hub->port();
    dial("127.0.0.1", port);
    for (int round = 1; round <= 3; ++round) {
        ASSERT_TRUE(until([&] { return arrivals == round; }));
        EXPECT_EQ(ups, round);
        hub->send(peer, notice(std::to_string(round)));
        ASSERT_TRUE(until([&] { return received.size() == static_cast<std::size_t>(round); }));
        hub.reset();
        ASSERT_TRUE(until([&] { return downs.size() == static_cast<std::size_t>(round); }));
        link->send(notice("there is no session"));
        open_hub(port);
    }
    ASSERT_TRUE(until([&] { return arrivals == 4; }));
    EXPECT_TRUE(at_hub.empty());
}

TEST_F(Link, ComesBackAfterADropAndHasGotEverything) {
    open_hub();
    dial("127.0.0.1", hub->port());
    ASSERT_TRUE(until([&] { return arrivals == 1; }));
    link->send(notice("crosses"));
    hub->send(peer, notice("last"));
    hub->drop(peer);
    ASSERT_TRUE(until([&] { return arrivals == 2; }));
    EXPECT_EQ(received, std::vector<wire::Message>{notice("last")});
    EXPECT_EQ(downs, std::vector<std::string>{"closed by the peer"});
    EXPECT_EQ(gone, 0);
}

TEST_F(Link, HurriesLessAndLessWithAServerThatOnlyHangsUp) {
    RawServer server;
    dial("127.0.0.1", server.port());
    std::vector<Instant> accepted;
    ASSERT_TRUE(until([&] {
        if (server.accept()) {
            accepted.push_back(os::now());
        }
        return accepted.size() == 5;
    }));
    EXPECT_GE(accepted.at(4) - accepted.at(0), 50ms + 100ms + 200ms + 400ms - 20ms);
}

TEST_F(Link, DoesNotHangOnAHostThatDropsPackets) {
    RawServer full(0, 0);
    // The backlog is full: further handshakes are not answered, as behind a firewall.
    std::vector<os::Fd> fillers;
    for (int i = 0; i < 4; ++i) {
        fillers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
        const sockaddr_in address = loopback(full.port());
        (void)!::connect(fillers.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
    const Instant before = os::now();
    dial("127.0.0.1", full.port());
    ASSERT_TRUE(until([&] { return !tries.empty(); }));
    EXPECT_NE(tries.at(0).find("timed out"), std::string::npos) << tries.at(0);
    EXPECT_LT(os::now() - before, 10s);
    EXPECT_GE(os::now() - before, 1900ms);
}

TEST_F(Link, EndsASessionWhosePeerSpeaksNonsense) {
    RawServer server;
    dial("127.0.0.1", server.port());
    os::Fd fd;
    ASSERT_TRUE(until([&] { return static_cast<bool>(fd = server.accept()); }));
    EXPECT_EQ(::send(fd.get(), "HTTP/1.1 400", 12, MSG_NOSIGNAL), 12);
    ASSERT_TRUE(until([&] { return !downs.empty(); }));
    EXPECT_NE(downs.at(0).find("no message"), std::string::npos) << downs.at(0);
    EXPECT_TRUE(until([&] { return static_cast<bool>(server.accept()); })) << "and dials again";
}

TEST_F(Link, CloseWhenSentDeliversFirstAndSaysNothingMore) {
    open_hub();
    dial("127.0.0.1", hub->port());
    ASSERT_TRUE(until([&] { return arrivals == 1; }));
    for (int i = 0; i < 1000; ++i) {
        link->send(notice(std::to_string(i) + std::string(2000, 'x')));
    }
    hub->send(peer, notice("crosses"));
    int closed = 0;
    link->close_when_sent([&] { ++closed; });
    EXPECT_FALSE(link->idle());
    EXPECT_EQ(closed, 0);
    ASSERT_TRUE(until([&] { return at_hub.size() == 1000 && gone == 1; }));
    EXPECT_TRUE(until([&] { return closed == 1; }));
    EXPECT_TRUE(link->idle());
    run_for(loop, 100ms);
    EXPECT_EQ(closed, 1);
    EXPECT_TRUE(received.empty());
    EXPECT_TRUE(downs.empty());
    EXPECT_EQ(arrivals, 1) << "does not dial again";
}

TEST_F(Link, CloseWhenSentStopsDialling) {
    const std::uint16_t port = unused_port();
    dial("127.0.0.1", port);
    ASSERT_TRUE(until([&] { return !tries.empty(); }));
    link->close_when_sent([] { FAIL() << "there is nothing to be closed"; });
    EXPECT_TRUE(link->idle());
    RawServer server(port);
    run_for(loop, 200ms);
    EXPECT_FALSE(server.accept());
}

TEST_F(Link, WhatWasSentBeforeDestructionStillArrives) {
    open_hub();
    dial("127.0.0.1", hub->port());
    ASSERT_TRUE(until([&] { return arrivals == 1; }));
    link->send(notice(std::string(2000, 'x')));
    link->close_when_sent(nullptr);
    link.reset();
    EXPECT_TRUE(until([&] { return at_hub.size() == 1 && gone == 1; }));
}

TEST_F(Link, MayBeDestroyedInUp) {
    open_hub();
    on_up = [this] {
        link.reset();
    };
    dial("127.0.0.1", hub->port());
    EXPECT_TRUE(until([&] { return ups == 1; }));
    run_for(loop, 100ms);
    EXPECT_EQ(ups, 1);
    EXPECT_TRUE(downs.empty());
}

TEST_F(Link, MayBeDestroyedWhileMessagesAreRead) {
    open_hub();
    on_received = [this] {
        link.reset();
    };
    dial("127.0.0.1", hub->port());
    ASSERT_TRUE(until([&] { return arrivals == 1; }));
    hub->send(peer, notice("one"));
    hub->send(peer, notice("two"));
    ASSERT_TRUE(until([&] { return gone == 1; }));
    EXPECT_EQ(received.size(), 1U);
}

TEST_F(Link, MayBeDestroyedWhileItDials) {
    dial("127.0.0.1", unused_port());
    link.reset();
    dial("localhost", unused_port());
    link.reset();
    run_for(loop, 100ms);
    EXPECT_TRUE(tries.empty());
    EXPECT_EQ(ups, 0);
}

TEST_F(Link, ManyLinksShareAHub) {
    open_hub();
    std::vector<std::unique_ptr<AgentLink>> links;
    int many_ups = 0;
    int many_received = 0;
    for (int i = 0; i < 200; ++i) {
        links.push_back(std::make_unique<AgentLink>(loop, std::vector<LinkTarget>{{"127.0.0.1", hub->port()}},
                                                    LinkCallbacks{.up = [&](const std::string&) { ++many_ups; },
                                                                  .received = [&](const auto&) { ++many_received; },
                                                                  .down = [](const std::string&) { FAIL(); },
                                                                  .retrying =
                                                                      [](const std::string&) {
                                                                          FAIL();
                                                                      }}));
    }
    ASSERT_TRUE(until([&] { return many_ups == 200 && arrivals == 200; }));
    for (std::uint32_t id = 1; id <= 200; ++id) {
        hub->send(PeerId{id}, notice("hello"));
    }
    EXPECT_TRUE(until([&] { return many_received == 200; }));
}

}  // namespace
}  // namespace ddl::net
