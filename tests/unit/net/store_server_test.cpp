// StoreServer with raw clients: the way of bytes, who may connect, what a bad client cannot do to a good one.
#include "net/store_server.hpp"

#include <sys/socket.h>

#include "net/silence.hpp"
#include "support.hpp"

namespace ddl::net {
namespace {

using namespace test;
using wire::reply::Blob;
using wire::reply::Byte;
using wire::reply::Integer;

const AllowList kAnybody{.any = true, .networks = {}};
const AllowList kLoopbackOnly{.any = false, .networks = {"127.0.0.1"}};

class Store : public testing::Test {
protected:
    void SetUp() override {
        open(Reach::kEverywhere, 10s);
    }
    void open(Reach reach, Duration handshake_limit) {
        auto bound = StoreServer::bind(loop, {.reach = reach,
                                              .port = 0,
                                              .compat = "auto",
                                              .handshake_limit = handshake_limit,
                                              .warn = [this](std::string line) {
                                                  warnings.push_back(std::move(line));
                                              }});
        ASSERT_TRUE(bound.has_value()) << bound.error().message;
        server = std::move(*bound);
    }
    void serve(const AllowList& allow = kLoopbackOnly, int ranks = 8) {
        const auto served = server->serve(allow, ranks);
        ASSERT_TRUE(served.has_value()) << served.error().message;
    }
    std::unique_ptr<RawClient> connect(const char* from = nullptr) {
        return std::make_unique<RawClient>(server->port(), from);
    }
    // A client that has said hello.
    std::unique_ptr<RawClient> join(const char* from = nullptr) {
        auto client = connect(from);
        client->send(handshake());
        return client;
    }
    [[nodiscard]] testing::AssertionResult works(RawClient& client) {
        ++checks;
        client.send(request(wire::op::Ping{checks}));
        return client.gets(loop, reply(wire::reply::Nonce{checks}));
    }

    Loop loop;
    std::vector<std::string> warnings;
    std::unique_ptr<StoreServer> server;
    std::uint32_t checks = 0;
};

TEST_F(Store, RefusesUntilItServes) {
    EXPECT_EQ(connect()->connect_error(), ECONNREFUSED);
    serve();
    EXPECT_EQ(connect()->connect_error(), 0);
}

TEST_F(Store, ServesASession) {
    serve();
    const auto client = join();
    client->send(request(wire::op::Set{"/k", "value"}) + request(wire::op::Get{"/k"}) +
                 request(wire::op::Add{"init/", 1}));
    EXPECT_TRUE(client->gets(loop, reply(Blob{"value"}) + reply(Integer{1})));
    EXPECT_TRUE(warnings.empty());
}

TEST_F(Store, ServesBytesThatComeOneByOne) {
    serve();
    const auto client = connect();
    for (const char byte : handshake() + request(wire::op::Set{"/k", "v"}) + request(wire::op::Get{"/k"})) {
        client->send(std::string_view(&byte, 1));
        run_for(loop, 0ms);
    }
    EXPECT_TRUE(client->gets(loop, reply(Blob{"v"})));
}

TEST_F(Store, OneClientWakesAnother) {
    serve();
    const auto waiting = join();
    const auto setting = join();
    waiting->send(request(wire::op::Wait{{"/k"}}));
    EXPECT_TRUE(works(*setting));
    run_for(loop, 3ms);
    EXPECT_EQ(waiting->received(), "");
    setting->send(request(wire::op::Set{"/k", ""}));
    EXPECT_TRUE(waiting->gets(loop, reply(Byte{wire::reply::kStopWaiting})));
}

TEST_F(Store, AWaiterThatLeftIsForgotten) {
    serve();
    auto waiting = join();
    waiting->send(request(wire::op::Wait{{"/k"}}));
    const auto setting = join();
    EXPECT_TRUE(works(*setting));
    waiting.reset();
    setting->send(request(wire::op::Set{"/k", "v"}));
    EXPECT_TRUE(works(*setting));
}

TEST_F(Store, LargeValuesGoBothWays) {
    serve();
    const auto client = join();
    const std::string value(wire::kMaxValueBytes, 'v');
    const std::string bytes = request(wire::op::Set{"/k", value}) + request(wire::op::Get{"/k"});
    std::size_t sent = 0;
    EXPECT_TRUE(run_until(loop, [&] {
        sent += client->send(std::string_view(bytes).substr(sent));
        return sent == bytes.size();
    }));
    EXPECT_TRUE(client->gets(loop, reply(Blob{value})));
}

TEST_F(Store, RequestsWithoutEndAndRepliesThatNobodyReadsDoNotPileUp) {
    serve();
    const auto client = join();
    const auto other = join();
    client->send(request(wire::op::Set{"/k", std::string(100'000, 'v')}));
    std::string gets;
    std::string replies;
    for (int i = 0; i < 300; ++i) {  // 30 MB, far more than the sockets hold
        gets += request(wire::op::Get{"/k"});
        replies += reply(Blob{std::string(100'000, 'v')});
    }
    client->send(gets);
    EXPECT_TRUE(works(*other)) << "others are served meanwhile";
    EXPECT_TRUE(client->gets(loop, replies));
    EXPECT_TRUE(works(*client));
}

TEST_F(Store, StrangersAreRefusedAndNamed) {
    serve();
    const auto stranger = connect("127.0.0.5");
    EXPECT_TRUE(run_until(loop, [&] { return stranger->ended(); }));
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings.at(0).find("127.0.0.5"), std::string::npos) << warnings.at(0);
    EXPECT_NE(warnings.at(0).find("--store-allow"), std::string::npos) << warnings.at(0);
    EXPECT_TRUE(works(*join()));
}

TEST_F(Store, ManyRefusalsMakeFewLines) {
    serve();
    for (int i = 0; i < 30; ++i) {
        const auto stranger = connect("127.0.0.5");
        EXPECT_TRUE(run_until(loop, [&] { return stranger->ended(); }));
    }
    EXPECT_EQ(warnings.size(), 2U);  // the first and the tenth
}

TEST_F(Store, NetworksAllowTheirAddresses) {
    serve({.any = false, .networks = {"127.0.0.1", "127.0.3.0/24"}});
    EXPECT_TRUE(works(*join("127.0.3.77")));
    const auto stranger = connect("127.0.4.1");
    EXPECT_TRUE(run_until(loop, [&] { return stranger->ended(); }));
}

TEST_F(Store, AnyAllowsAll) {
    serve(kAnybody);
    EXPECT_TRUE(works(*join("127.0.3.77")));
    EXPECT_TRUE(warnings.empty());
}

TEST_F(Store, ABadAllowListIsAnErrorThatNamesTheEntry) {
    const auto served = server->serve({.any = false, .networks = {"10.0.0.0/40"}}, 1);
    ASSERT_FALSE(served.has_value());
    EXPECT_NE(served.error().message.find("10.0.0.0/40"), std::string::npos);
}

TEST_F(Store, TheOldestSilentConnectionsGoWhenThereAreTooMany) {
    constexpr int kRanks = 2;
    serve(kLoopbackOnly, kRanks);
    const auto talking = join();
    EXPECT_TRUE(works(*talking));
    constexpr std::size_t kTooMany = 5;
    std::vector<std::unique_ptr<RawClient>> silent;
    for (std::size_t i = 0; i < silent_limit(kRanks) + kTooMany; ++i) {
        silent.push_back(connect());
    }
    EXPECT_TRUE(run_until(loop, [&] { return silent.at(kTooMany - 1)->ended(); }));
    run_for(loop, 5ms);
    for (std::size_t i = 0; i < silent.size(); ++i) {
        EXPECT_EQ(silent[i]->ended(), i < kTooMany) << i;
    }
    silent.back()->send(handshake());
    EXPECT_TRUE(works(*silent.back())) << "a silent connection may speak at any time";
    EXPECT_TRUE(works(*talking));
}

TEST_F(Store, ClientsThatSpokeBeforeTheyWereAcceptedAreNotSilent) {
    serve(kLoopbackOnly, 0);
    std::vector<std::unique_ptr<RawClient>> clients;
    for (std::size_t i = 0; i < 3 * silent_limit(0); ++i) {
        clients.push_back(join());
    }
    for (const auto& client : clients) {
        ASSERT_TRUE(works(*client));
    }
}

TEST_F(Store, HalfAHandshakeOfAnOutsiderIsTimedOutASilentOneAndAMemberIsNot) {
    open(Reach::kEverywhere, 300ms);
    serve({.any = true, .networks = {"127.0.0.1"}});
    const auto outsider = connect("127.0.0.5");
    const auto silent_outsider = connect("127.0.0.5");
    const auto quick_outsider = join("127.0.0.5");
    const auto member = connect();
    for (const auto& half : {outsider.get(), member.get()}) {
        half->send(handshake().substr(0, 3));
    }
    const Instant before = os::now();
    EXPECT_TRUE(run_until(loop, [&] { return outsider->ended(); }));
    EXPECT_GE(os::now() - before, 290ms);
    run_for(loop, 200ms);
    EXPECT_FALSE(silent_outsider->ended());
    EXPECT_TRUE(works(*quick_outsider));
    member->send(handshake().substr(3));
    EXPECT_TRUE(works(*member));
}

TEST_F(Store, AThousandBadClientsDoNotDisturbAGoodOne) {
    serve(kLoopbackOnly, 1000);
    const auto good = join();
    std::vector<std::unique_ptr<RawClient>> bad;
    const std::string huge_length("\x01\xff\xff\xff\xff\xff\xff\xff\x7f", 9);
    const std::string huge_count("\x0a\xff\xff\xff\xff\xff\xff\xff\xff", 9);
    for (int i = 0; i < 1000; ++i) {
        bad.push_back(connect());
        switch (i % 8) {
            case 0:
                break;  // silent
            case 1:
                bad.back()->send("GET / HTTP/1.1\r\n\r\n");
                break;
            case 2:
                bad.back()->send(handshake() + huge_length);
                break;
            case 3:
                bad.back()->send(handshake() + huge_count);
                break;
            case 4:
                bad.back()->send(handshake() + request(wire::op::Set{"/half", "of a message"}).substr(0, 15));
                break;
            case 5:
                bad.back()->send(handshake() + '\xff');
                break;
            case 6:
                bad.back()->send(std::string("\x00\x00\x00", 3));
                break;
            default:
                bad.back()->send(handshake() + request(wire::op::Wait{{"/never"}}));
                break;
        }
        if (i % 50 == 0) {
            ASSERT_TRUE(works(*good)) << i;
        }
    }
    EXPECT_TRUE(run_until(loop, [&] { return bad.at(993)->ended() && bad.at(994)->ended() && bad.at(995)->ended(); }));
    EXPECT_TRUE(bad.at(997)->ended());
    EXPECT_FALSE(bad.at(992)->ended());
    EXPECT_FALSE(bad.at(996)->ended());
    EXPECT_FALSE(bad.at(999)->ended());
    bad.clear();
    good->send(request(wire::op::Check{{"/half"}}));
    EXPECT_TRUE(good->gets(loop, reply(Byte{wire::reply::kNotReady})));
}

TEST_F(Store, ManyClientsJoinAtOnce) {
    constexpr int kClients = 500;
    serve(kLoopbackOnly, kClients);
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < kClients; ++i) {
        clients.push_back(join());
        clients.back()->send(request(wire::op::Add{"init/", 1}));
    }
    std::int64_t sum = 0;
    for (const auto& client : clients) {
        ASSERT_TRUE(run_until(loop, [&] { return client->received().size() == 8; }));
        sum +=
            static_cast<unsigned char>(client->received()[0]) + 256 * static_cast<unsigned char>(client->received()[1]);
    }
    EXPECT_EQ(sum, kClients * (kClients + 1) / 2);
}

TEST_F(Store, ResetForgetsKeysClosesConnectionsAndRefuses) {
    serve();
    const std::uint16_t port = server->port();
    const auto client = join();
    client->send(request(wire::op::Set{"/k", "v"}));
    EXPECT_TRUE(works(*client));
    server->reset();
    EXPECT_TRUE(run_until(loop, [&] { return client->ended(); }));
    EXPECT_EQ(connect()->connect_error(), ECONNREFUSED);
    EXPECT_EQ(server->port(), port);
    serve();
    const auto next = join();
    next->send(request(wire::op::Check{{"/k"}}));
    EXPECT_TRUE(next->gets(loop, reply(Byte{wire::reply::kNotReady})));
}

TEST_F(Store, ResetIsHarmlessAtAnyTime) {
    server->reset();
    server->reset();
    serve();
    server->reset();
    server->reset();
    serve({.any = false, .networks = {"127.0.0.1"}});
    EXPECT_TRUE(works(*join()));
    serve();  // as reset() and serve()
    EXPECT_TRUE(works(*join()));
}

TEST_F(Store, AnotherRoundMayAllowOthers) {
    serve({.any = false, .networks = {"127.0.0.1"}});
    EXPECT_TRUE(works(*join()));
    serve({.any = false, .networks = {"127.0.0.7"}});
    EXPECT_TRUE(works(*join("127.0.0.7")));
    const auto lost = join();
    EXPECT_TRUE(run_until(loop, [&] { return lost->ended(); }));
}

// An accepted connection of which the first bytes were read elsewhere.
struct Handed {
    Handed() : client(server.port()) {
        fd = server.accept();
        EXPECT_TRUE(fd);
    }
    RawServer server;
    RawClient client;
    os::Fd fd;
};

TEST_F(Store, AdoptsAConnectionWithItsFirstBytes) {
    serve();
    Handed handed;
    server->adopt(handed.fd.release(), handshake() + request(wire::op::Add{"/n", 5}).substr(0, 7));
    handed.client.send(request(wire::op::Add{"/n", 5}).substr(7));
    EXPECT_TRUE(handed.client.gets(loop, reply(Integer{5})));
}

TEST_F(Store, AdoptClosesWhenNotServing) {
    Handed handed;
    server->adopt(handed.fd.release(), handshake());
    EXPECT_TRUE(run_until(loop, [&] { return handed.client.ended(); }));
}

TEST_F(Store, AdoptAppliesTheAllowList) {
    serve({.any = false, .networks = {"10.0.0.1"}});
    Handed handed;
    server->adopt(handed.fd.release(), handshake());
    EXPECT_TRUE(run_until(loop, [&] { return handed.client.ended(); }));
    EXPECT_EQ(warnings.size(), 1U);
}

// The clients of a port on which somebody else listens: only handed over.
class StoreWithoutPort : public Store {
protected:
    void SetUp() override {
        auto made = StoreServer::without_port(
            loop, {.reach = Reach::kEverywhere, .port = 29400, .compat = "auto", .warn = [this](std::string line) {
                       warnings.push_back(std::move(line));
                   }});
        ASSERT_TRUE(made.has_value()) << made.error().message;
        server = std::move(*made);
    }
};

TEST_F(StoreWithoutPort, ServesWhoIsHandedOver) {
    EXPECT_EQ(server->port(), 29400);
    serve();
    Handed first;
    Handed second;
    server->adopt(first.fd.release(), handshake() + request(wire::op::Wait{{"/k"}}));
    server->adopt(second.fd.release(), handshake() + request(wire::op::Set{"/k", "v"}));
    EXPECT_TRUE(first.client.gets(loop, reply(Byte{wire::reply::kStopWaiting})));
    EXPECT_TRUE(works(second.client));
}

TEST_F(StoreWithoutPort, RefusesUntilItServesAndAfterReset) {
    Handed early;
    server->adopt(early.fd.release(), handshake());
    EXPECT_TRUE(run_until(loop, [&] { return early.client.ended(); }));
    serve();
    Handed served;
    server->adopt(served.fd.release(), handshake());
    EXPECT_TRUE(works(served.client));
    server->reset();
    EXPECT_TRUE(run_until(loop, [&] { return served.client.ended(); }));
    Handed late;
    server->adopt(late.fd.release(), handshake());
    EXPECT_TRUE(run_until(loop, [&] { return late.client.ended(); }));
}

TEST_F(StoreWithoutPort, ARefusalNamesThePortThatTheClientUsed) {
    serve({.any = false, .networks = {"10.0.0.1"}});
    Handed handed;
    server->adopt(handed.fd.release(), handshake());
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings.at(0).find("29400"), std::string::npos) << warnings.at(0);
}

TEST_F(StoreWithoutPort, RefusesAnUnknownCompat) {
    const auto made =
        StoreServer::without_port(loop, {.reach = Reach::kLoopback, .port = 1, .compat = "", .warn = nullptr});
    EXPECT_FALSE(made.has_value());
}

TEST_F(Store, AnOldClientIsKnownByItsSilentSecondConnection) {
    serve();
    const auto client = connect();
    const auto second = connect();  // as PyTorch 1.13 does
    std::string bytes;
    EXPECT_TRUE(wire::append_request(bytes, wire::op::Set{"/k", "v"}, wire::Dialect::k1_13));
    EXPECT_TRUE(wire::append_request(bytes, wire::op::DeleteKey{"/k"}, wire::Dialect::k1_13));
    client->send(bytes);
    EXPECT_TRUE(client->gets(loop, reply(Integer{1})));
    EXPECT_EQ(warnings.size(), 1U);
    EXPECT_FALSE(second->ended());
}

TEST_F(Store, WhatIsNotedOfOldClientsIsSaidOnce) {
    serve();
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 5; ++i) {
        clients.push_back(connect());
        clients.push_back(connect());
        std::string bytes;
        EXPECT_TRUE(wire::append_request(bytes, wire::op::DeleteKey{"/k"}, wire::Dialect::k1_13));
        clients.at(clients.size() - 2)->send(bytes);
        EXPECT_TRUE(clients.at(clients.size() - 2)->gets(loop, reply(Integer{0})));
    }
    EXPECT_EQ(warnings.size(), 1U);
}

TEST_F(Store, DestructionClosesEverything) {
    serve();
    const std::uint16_t port = server->port();
    const auto client = join();
    EXPECT_TRUE(works(*client));
    server.reset();
    EXPECT_TRUE(client->ended());
    EXPECT_EQ(RawClient(port).connect_error(), ECONNREFUSED);
    run_for(loop, 3ms);
}

TEST_F(Store, LoopbackReachIsForThisHostOnly) {
    open(Reach::kLoopback, 10s);
    serve();
    EXPECT_TRUE(works(*join()));
}

TEST(StoreServer, RefusesAnUnknownCompat) {
    Loop loop;
    const auto server =
        StoreServer::bind(loop, {.reach = Reach::kLoopback, .port = 0, .compat = "3.0", .warn = nullptr});
    ASSERT_FALSE(server.has_value());
    EXPECT_NE(server.error().message.find("3.0"), std::string::npos);
}

TEST(StoreServer, APortInUseIsAnErrorThatNamesIt) {
    Loop loop;
    const RawServer other;
    const auto server =
        StoreServer::bind(loop, {.reach = Reach::kLoopback, .port = other.port(), .compat = "auto", .warn = nullptr});
    ASSERT_FALSE(server.has_value());
    EXPECT_NE(server.error().message.find(std::to_string(other.port())), std::string::npos);
}

}  // namespace
}  // namespace ddl::net
