// The workers' store over the rounds of a job: which port, when it answers, to what end it forgets.
#include "run/store_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "unit/net/support.hpp"
#include "wire/tcpstore.hpp"

namespace ddl::run {
namespace {

using net::test::RawClient;
using net::test::run_until;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string bytes_of(const wire::Request& request, bool greet = true) {
    std::string bytes;
    if (greet) {
        wire::append_handshake(bytes);
    }
    wire::append_request(bytes, request);
    return bytes;
}

std::string number(std::int64_t value) {
    std::string bytes;
    wire::append_i64(bytes, value);
    return bytes;
}

class StoreHosts : public ::testing::Test {
protected:
    void SetUp() override {
        plan_.loopback_only = true;
    }

    StoreHost make() {
        return StoreHost(loop_, plan_, [this](const std::string& text) { warnings_.push_back(text); });
    }
    static std::uint16_t prepared(StoreHost& host) {
        const Result<std::uint16_t> port = host.prepare();
        EXPECT_TRUE(port) << port.error().message;
        return port.value_or(0);
    }
    // A port that nobody has now.
    static std::uint16_t unused_port() {
        return os::PortReservation::take()->port();
    }
    static os::Fd occupy(std::uint16_t port) {
        os::Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
        const int on = 1;  // connections of an earlier test that linger are no obstacle
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        const sockaddr_in address = net::test::loopback(port);
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(fd.get(), 1), 0);
        return fd;
    }

    // What the store's counter of all keys says, or nothing if it does not answer.
    ::testing::AssertionResult holds_keys(std::uint16_t port, std::int64_t count) {
        RawClient client(port);
        if (client.connect_error() != 0) {
            return ::testing::AssertionFailure() << "connect: " << std::strerror(client.connect_error());
        }
        client.send(bytes_of(wire::op::NumKeys{}));
        return client.gets(loop_, number(count));
    }
    void put_key(std::uint16_t port, const std::string& key) {
        RawClient client(port);
        client.send(bytes_of(wire::op::Add{key, 1}));
        EXPECT_TRUE(client.gets(loop_, number(1)));
    }
    static bool refuses(std::uint16_t port) {
        return RawClient(port).connect_error() == ECONNREFUSED;
    }

    net::Loop loop_;
    plan::LaunchPlan plan_;
    std::vector<std::string> warnings_;
};

TEST_F(StoreHosts, AFreshPortAnswersFromServeToClose) {
    StoreHost host = make();
    const std::uint16_t port = prepared(host);
    EXPECT_TRUE(refuses(port)) << "before the round is open";
    ASSERT_TRUE(host.serve({}, 2));
    EXPECT_TRUE(holds_keys(port, 0));
    host.close();
    EXPECT_TRUE(refuses(port)) << "after the round";
    EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(StoreHosts, EveryRoundHasAPortAndKeysOfItsOwn) {
    StoreHost host = make();
    std::set<std::uint16_t> ports;
    for (int round = 0; round < 5; ++round) {
        const std::uint16_t port = prepared(host);
        EXPECT_TRUE(ports.insert(port).second) << "a late worker of an old round would find the new one";
        ASSERT_TRUE(host.serve({}, 1));
        EXPECT_TRUE(holds_keys(port, 0));
        put_key(port, "/k");
        host.close();
    }
}

TEST_F(StoreHosts, FormerPortsAreKeptFromOtherJobs) {
    StoreHost host = make();
    const std::uint16_t first = prepared(host);
    host.close();
    prepared(host);
    EXPECT_FALSE(os::PortReservation::take(first, first)) << "the round is over, but its workers may come late";
}

TEST_F(StoreHosts, ANodeThatDoesNotServeLetsGoOfItsListener) {
    StoreHost host = make();
    const std::uint16_t port = prepared(host);
    host.withdraw();
    EXPECT_TRUE(refuses(port));
    const os::Fd taken = occupy(port);
    EXPECT_NE(prepared(host), port);
}

TEST_F(StoreHosts, AFixedPortStaysAndForgets) {
    plan_.store_ports.first = plan_.store_ports.last = unused_port();
    StoreHost host = make();
    const std::uint16_t port = prepared(host);
    EXPECT_EQ(port, plan_.store_ports.first);
    ASSERT_TRUE(host.serve({}, 1));
    put_key(port, "/of the first round");
    RawClient late(port);
    late.send(bytes_of(wire::op::NumKeys{}));
    ASSERT_TRUE(late.gets(loop_, number(1)));
    host.close();
    EXPECT_TRUE(run_until(loop_, [&] { return late.ended(); })) << "nobody takes a connection into the next round";
    EXPECT_FALSE(holds_keys(port, 1)) << "between rounds nothing is served";
    EXPECT_EQ(prepared(host), port);
    ASSERT_TRUE(host.serve({}, 1));
    EXPECT_TRUE(holds_keys(port, 0));
}

TEST_F(StoreHosts, AFixedPortSurvivesARoundThatAnotherNodeServes) {
    plan_.store_ports.first = plan_.store_ports.last = unused_port();
    StoreHost host = make();
    prepared(host);
    host.withdraw();
    host.close();
    EXPECT_EQ(prepared(host), plan_.store_ports.first);
    ASSERT_TRUE(host.serve({}, 1));
    EXPECT_TRUE(holds_keys(plan_.store_ports.first, 0));
}

TEST_F(StoreHosts, AFixedPortInUseIsAnErrorThatNamesIt) {
    const std::uint16_t port = unused_port();
    const os::Fd taken = occupy(port);
    plan_.store_ports.first = plan_.store_ports.last = port;
    StoreHost host = make();
    const Result<std::uint16_t> prepared_port = host.prepare();
    ASSERT_FALSE(prepared_port);
    EXPECT_THAT(prepared_port.error().message, HasSubstr(std::to_string(port)));
}

TEST_F(StoreHosts, ARangeIsGoneThroughInTurn) {
    const std::uint16_t base = unused_port();
    plan_.store_ports = {base, static_cast<std::uint16_t>(base + 2)};
    const os::Fd taken = occupy(static_cast<std::uint16_t>(base + 1));
    StoreHost host = make();
    std::vector<int> offsets;
    for (int round = 0; round < 4; ++round) {
        offsets.push_back(prepared(host) - base);
        ASSERT_TRUE(host.serve({}, 1));
        EXPECT_TRUE(holds_keys(static_cast<std::uint16_t>(base + offsets.back()), 0));
        host.close();
    }
    EXPECT_THAT(offsets, ::testing::ElementsAre(0, 2, 0, 2)) << "on from the last one, past the one in use";
}

TEST_F(StoreHosts, ARangeWithNothingFreeIsAnError) {
    const std::uint16_t base = unused_port();
    plan_.store_ports = {base, static_cast<std::uint16_t>(base + 1)};
    const os::Fd first = occupy(base);
    const os::Fd second = occupy(static_cast<std::uint16_t>(base + 1));
    StoreHost host = make();
    const Result<std::uint16_t> port = host.prepare();
    ASSERT_FALSE(port);
    EXPECT_THAT(port.error().message, HasSubstr(std::to_string(base + 1)));
}

TEST_F(StoreHosts, WorkersThatHostFindTheirPortFree) {
    plan_.worker_store = plan::WorkerStore::kWorker;
    StoreHost host = make();
    const std::uint16_t port = prepared(host);
    ASSERT_TRUE(host.serve({}, 1));
    EXPECT_TRUE(refuses(port));
    const os::Fd of_the_worker = occupy(port);
    host.close();
    EXPECT_NE(prepared(host), port);
}

TEST_F(StoreHosts, WorkersThatHostAFixedPortKeepItWhoeverHasItNow) {
    const std::uint16_t port = unused_port();
    const os::Fd of_the_worker = occupy(port);  // a worker of the last round that is still there
    plan_.worker_store = plan::WorkerStore::kWorker;
    plan_.store_ports.first = plan_.store_ports.last = port;
    StoreHost host = make();
    EXPECT_EQ(prepared(host), port);
    EXPECT_TRUE(host.serve({}, 1));
}

TEST_F(StoreHosts, WorkersThatHostAreGivenAPortOfTheRange) {
    const std::uint16_t base = unused_port();
    plan_.worker_store = plan::WorkerStore::kWorker;
    plan_.store_ports = {base, static_cast<std::uint16_t>(base + 3)};
    StoreHost host = make();
    const std::uint16_t port = prepared(host);
    EXPECT_GE(port, base);
    EXPECT_LE(port, base + 3);
}

TEST_F(StoreHosts, LoopbackOnlyIsClosedToTheNetwork) {
    StoreHost host = make();
    const std::uint16_t port = prepared(host);
    ASSERT_TRUE(host.serve({"10.1.2.3"}, 1));
    const os::Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = net::test::loopback(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // 127.0.0.2 stands for any address but 127.0.0.1
    EXPECT_NE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_TRUE(holds_keys(port, 0));
}

TEST_F(StoreHosts, ABadAllowListIsAnErrorThatNamesTheEntry) {
    plan_.loopback_only = false;
    plan_.store_allow = {"10.0.0.0/8", "h0"};
    StoreHost host = make();
    prepared(host);
    const Result<void> served = host.serve({}, 1);
    ASSERT_FALSE(served);
    EXPECT_THAT(served.error().message, HasSubstr("h0"));
}

// ---- connections that came to the rendezvous port -----------------------------------------------------------------

class AdoptedClients : public StoreHosts {
protected:
    void SetUp() override {
        plan_.rendezvous.endpoint = {"127.0.0.1", 29400};
    }

    // A connection whose first bytes were read to tell that it is a store client.
    struct Client {
        os::Fd own;
        os::Fd accepted;
    };
    static Client connect() {
        const os::Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
        sockaddr_in address = net::test::loopback(0);
        socklen_t size = sizeof address;
        EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
        EXPECT_EQ(::listen(listener.get(), 1), 0);
        ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
        Client client{os::Fd(::socket(AF_INET, SOCK_STREAM, 0)), os::Fd()};
        EXPECT_EQ(::connect(client.own.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
        client.accepted = os::Fd(::accept(listener.get(), nullptr, nullptr));
        ::fcntl(client.own.get(), F_SETFL, O_NONBLOCK);
        return client;
    }
    // The bytes that came until the reply was whole or the connection ended.
    std::string answer(const Client& client, std::size_t size) {
        std::string received;
        bool ended = false;
        run_until(loop_, [&] {
            std::array<char, 100> bytes{};
            const ssize_t got = ::recv(client.own.get(), bytes.data(), bytes.size(), 0);
            ended = got == 0 || (got < 0 && errno != EAGAIN);
            received.append(bytes.data(), static_cast<std::size_t>(got > 0 ? got : 0));
            return ended || received.size() >= size;
        });
        return ended && received.empty() ? "closed" : received;
    }
};

TEST_F(AdoptedClients, OfADynamicRendezvousHaveABareStoreAtOnce) {
    plan_.rendezvous.kind = plan::Rendezvous::kDynamic;
    StoreHost host = make();
    Client one = connect();
    host.adopt(one.accepted.release(), bytes_of(wire::op::Add{"/bare", 5}));
    EXPECT_EQ(answer(one, 8), number(5));
    Client two = connect();
    host.adopt(two.accepted.release(), bytes_of(wire::op::Add{"/bare", 1}));
    EXPECT_EQ(answer(two, 8), number(6)) << "the same store";
    const std::uint16_t port = prepared(host);
    ASSERT_TRUE(host.serve({}, 1));
    EXPECT_TRUE(holds_keys(port, 0)) << "its keys are apart from the workers'";
    host.close();
    Client three = connect();
    host.adopt(three.accepted.release(), bytes_of(wire::op::NumKeys{}));
    EXPECT_EQ(answer(three, 8), number(1)) << "and outlive their rounds";
}

TEST_F(AdoptedClients, OfAStaticRendezvousAreTheWorkersOfTheRound) {
    plan_.rendezvous.kind = plan::Rendezvous::kStatic;
    StoreHost host = make();
    EXPECT_EQ(prepared(host), 29400) << "where the agents meet; nothing is bound here";
    Client early = connect();
    host.adopt(early.accepted.release(), bytes_of(wire::op::Add{"/k", 1}));
    EXPECT_EQ(answer(early, 8), "closed") << "before the round is open";
    ASSERT_TRUE(host.serve({"127.0.0.1"}, 1));
    Client worker = connect();
    host.adopt(worker.accepted.release(), bytes_of(wire::op::Add{"/k", 1}));
    EXPECT_EQ(answer(worker, 8), number(1));
    host.close();
    EXPECT_EQ(answer(worker, 1), "closed");
    ASSERT_TRUE(host.serve({"127.0.0.1"}, 1));
    Client next = connect();
    host.adopt(next.accepted.release(), bytes_of(wire::op::Add{"/k", 1}));
    EXPECT_EQ(answer(next, 8), number(1)) << "the last round's keys are gone";
}

TEST_F(AdoptedClients, AreClosedWithAWarningWhenThereCanBeNoStore) {
    plan_.rendezvous.kind = plan::Rendezvous::kDynamic;
    plan_.store_compat = "0.9";
    StoreHost host = make();
    Client client = connect();
    host.adopt(client.accepted.release(), bytes_of(wire::op::NumKeys{}));
    EXPECT_EQ(answer(client, 8), "closed");
    EXPECT_THAT(warnings_, Contains(HasSubstr("0.9")));
}

}  // namespace
}  // namespace ddl::run
