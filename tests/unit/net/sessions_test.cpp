// AgentHub with raw clients, and resolve(): sniffing, framing, endings.
#include <sys/socket.h>

#include <map>

#include "net/agent_sessions.hpp"
#include "net/silence.hpp"
#include "support.hpp"

namespace ddl::net {
namespace {

using namespace test;

std::string magic() {
    return {wire::kSessionMagic.begin(), wire::kSessionMagic.end()};
}

wire::Message notice(const std::string& text) {
    return wire::Notice{text};
}

class Hub : public testing::Test {
protected:
    struct Peer {
        std::string address;
        std::vector<wire::Message> received;
        std::vector<std::string> gone;
    };

    void SetUp() override {
        open(10s);
    }
    void open(Duration first_message_limit) {
        auto listening = AgentHub::listen(
            loop, 0,
            {.arrived = [this](PeerId id, std::string address) { arrived(id, std::move(address)); },
             .received = [this](PeerId id, wire::Message message) { received(id, std::move(message)); },
             .gone = [this](PeerId id, std::string why) { peers.at(id).gone.push_back(std::move(why)); },
             .store_client =
                 [this](int fd, std::string bytes) {
                     store_fds.emplace_back(fd);
                     store_bytes.push_back(std::move(bytes));
                 },
             .warn = [this](std::string line) { warnings.push_back(std::move(line)); },
             .became_idle =
                 [this] {
                     ++idle_calls;
                 }},
            first_message_limit);
        ASSERT_TRUE(listening.has_value()) << listening.error().message;
        hub = std::move(*listening);
    }
    void arrived(PeerId id, std::string address) {
        EXPECT_TRUE(peers.emplace(id, Peer{std::move(address), {}, {}}).second);
        if (on_arrived) {
            on_arrived(id);
        }
    }
    void received(PeerId id, wire::Message message) {
        peers.at(id).received.push_back(std::move(message));
        if (on_received) {
            on_received(id);
        }
    }
    std::unique_ptr<RawClient> connect() {
        return std::make_unique<RawClient>(hub->port());
    }
    // A raw agent whose session is up.
    std::unique_ptr<RawClient> agent(PeerId& id) {
        auto client = connect();
        const std::size_t before = peers.size();
        client->send(magic());
        EXPECT_TRUE(run_until(loop, [&] { return peers.size() > before; }));
        id = peers.rbegin()->first;
        return client;
    }

    Loop loop;
    std::map<PeerId, Peer> peers;
    std::vector<std::string> warnings;
    int idle_calls = 0;
    std::vector<os::Fd> store_fds;
    std::vector<std::string> store_bytes;
    std::function<void(PeerId)> on_arrived;
    std::function<void(PeerId)> on_received;
    std::unique_ptr<AgentHub> hub;
};

TEST_F(Hub, PeersCountFromOneAndAreNeverReused) {
    PeerId first{};
    PeerId second{};
    PeerId third{};
    auto client = agent(first);
    EXPECT_EQ(first, PeerId{1});
    EXPECT_EQ(peers.at(first).address, "127.0.0.1");
    client.reset();
    EXPECT_TRUE(run_until(loop, [&] { return !peers.at(first).gone.empty(); }));
    const auto another = agent(second);
    const auto one_more = agent(third);
    EXPECT_EQ(second, PeerId{2});
    EXPECT_EQ(third, PeerId{3});
}

TEST_F(Hub, ReceivesMessagesInOrderHoweverTheyAreCut) {
    const std::string bytes =
        magic() + wire::encode(notice("one")) + wire::encode(notice("two")) + wire::encode(notice("three"));
    for (std::size_t cut = 1; cut < bytes.size(); cut += 7) {
        const auto client = connect();
        const std::size_t before = peers.size();
        client->send(std::string_view(bytes).substr(0, cut));
        run_for(loop, 0ms);
        run_for(loop, 1ms);
        client->send(std::string_view(bytes).substr(cut));
        ASSERT_TRUE(
            run_until(loop, [&] { return peers.size() > before && peers.rbegin()->second.received.size() == 3; }));
        EXPECT_EQ(peers.rbegin()->second.received.at(0), notice("one"));
        EXPECT_EQ(peers.rbegin()->second.received.at(2), notice("three"));
    }
}

TEST_F(Hub, SendsToItsPeersOnly) {
    PeerId first{};
    PeerId second{};
    const auto one = agent(first);
    const auto two = agent(second);
    hub->send(first, notice("for one"));
    hub->send(second, notice("for two"));
    hub->send(PeerId{99}, notice("for nobody"));
    EXPECT_TRUE(one->gets(loop, wire::encode(notice("for one"))));
    EXPECT_TRUE(two->gets(loop, wire::encode(notice("for two"))));
    EXPECT_TRUE(hub->idle());
}

TEST_F(Hub, HandsStoreClientsOverWithWhatTheySaid) {
    const std::string first = handshake() + request(wire::op::Add{"/n", 1});
    const auto client = connect();
    client->send(first);
    ASSERT_TRUE(run_until(loop, [&] { return !store_fds.empty(); }));
    EXPECT_EQ(store_bytes.at(0), first);
    EXPECT_EQ(::send(store_fds.at(0).get(), "x", 1, MSG_NOSIGNAL), 1);
    EXPECT_TRUE(client->gets(loop, "x")) << "the connection lives on";
    EXPECT_TRUE(peers.empty());
}

TEST_F(Hub, HandsStoreClientsOverThatStartSlowly) {
    const auto client = connect();
    for (const char byte : handshake()) {
        EXPECT_TRUE(store_fds.empty());
        client->send(std::string_view(&byte, 1));
        run_for(loop, 1ms);
    }
    ASSERT_TRUE(run_until(loop, [&] { return !store_fds.empty(); }));
    EXPECT_EQ(store_bytes.at(0), handshake());
}

TEST_F(Hub, HandsOldStoreClientsOver) {
    const auto client = connect();
    client->send("\x03");  // ADD of the releases before 2.2
    ASSERT_TRUE(run_until(loop, [&] { return !store_fds.empty(); }));
    EXPECT_EQ(store_bytes.at(0), "\x03");
}

TEST_F(Hub, HandsTheSilentConnectionsOfOldStoreClientsOverInOrder) {
    const auto first = connect();
    const auto second = connect();
    const auto first_silent = connect();
    PeerId id{};
    const auto an_agent = agent(id);
    const auto second_silent = connect();
    const auto slow_agent = connect();
    slow_agent->send(magic().substr(0, 2));
    run_for(loop, 3ms);
    EXPECT_TRUE(store_fds.empty());
    const auto late_silent = connect();  // not accepted yet when the bytes are read
    second->send("\x03");
    ASSERT_TRUE(run_until(loop, [&] { return store_fds.size() == 5; }));
    EXPECT_EQ(store_bytes, (std::vector<std::string>{"", "\x03", "", "", ""}));
    EXPECT_EQ(::send(store_fds.at(0).get(), "1", 1, MSG_NOSIGNAL), 1);
    EXPECT_EQ(::send(store_fds.at(4).get(), "5", 1, MSG_NOSIGNAL), 1);
    EXPECT_TRUE(first->gets(loop, "1"));
    EXPECT_TRUE(late_silent->gets(loop, "5"));
    slow_agent->send(magic().substr(2));
    EXPECT_TRUE(run_until(loop, [&] { return peers.size() == 2; }));
    EXPECT_TRUE(peers.at(id).gone.empty());
}

TEST_F(Hub, AModernStoreClientComesAlone) {
    const auto silent = connect();
    const auto client = connect();
    client->send(handshake());
    ASSERT_TRUE(run_until(loop, [&] { return !store_fds.empty(); }));
    run_for(loop, 3ms);
    EXPECT_EQ(store_fds.size(), 1U);
    EXPECT_FALSE(silent->ended());
}

TEST_F(Hub, ClosesWhatItDoesNotKnow) {
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\n"), std::string("\x16\x03\x01"), std::string("\xDD\x4C\x41\x02"),
          std::string("\x00\xff\xff\xff\xff\xff", 6), std::string("\xff")}) {
        const auto client = connect();
        client->send(bytes);
        EXPECT_TRUE(run_until(loop, [&] { return client->ended(); })) << testing::PrintToString(bytes);
    }
    EXPECT_TRUE(peers.empty());
    EXPECT_TRUE(store_fds.empty());
}

TEST_F(Hub, ABadMessageEndsThatSessionOnly) {
    PeerId good{};
    PeerId bad{};
    const auto good_client = agent(good);
    for (const std::string& bytes : {std::string("\xff\xff\xff\xff", 4), std::string("\x02\x00\x00\x00{]", 6),
                                     std::string("\x02\x00\x00\x00{}", 6)}) {
        const auto bad_client = agent(bad);
        bad_client->send(wire::encode(notice("fine")) + bytes);
        EXPECT_TRUE(run_until(loop, [&] { return bad_client->ended(); }));
        EXPECT_EQ(peers.at(bad).received.size(), 1U);
        ASSERT_EQ(peers.at(bad).gone.size(), 1U);
        EXPECT_NE(peers.at(bad).gone.at(0).find("no message"), std::string::npos) << peers.at(bad).gone.at(0);
    }
    good_client->send(wire::encode(notice("still here")));
    EXPECT_TRUE(run_until(loop, [&] { return peers.at(good).received.size() == 1; }));
    EXPECT_TRUE(peers.at(good).gone.empty());
}

TEST_F(Hub, TellsOnceThatAPeerIsGone) {
    PeerId id{};
    auto client = agent(id);
    client->send(wire::encode(notice("last")));
    client.reset();
    EXPECT_TRUE(run_until(loop, [&] { return !peers.at(id).gone.empty(); }));
    run_for(loop, 3ms);
    EXPECT_EQ(peers.at(id).received.size(), 1U);
    EXPECT_EQ(peers.at(id).gone.size(), 1U);
    hub->send(id, notice("dropped silently"));
    hub->drop(id);
}

TEST_F(Hub, DropDeliversFirstAndTellsNothing) {
    PeerId id{};
    auto client = agent(id);
    std::string expected;
    for (int i = 0; i < 200; ++i) {
        const auto message = notice(std::string(2000, 'x') + std::to_string(i));
        expected += wire::encode(message);
        hub->send(id, message);
    }
    client->send(wire::encode(notice("crosses")));
    hub->drop(id);
    hub->send(id, notice("too late"));
    EXPECT_FALSE(hub->idle());
    EXPECT_TRUE(client->gets(loop, expected));
    EXPECT_TRUE(run_until(loop, [&] { return client->ended(); }));
    EXPECT_EQ(client->received(), "");
    EXPECT_EQ(idle_calls, 0) << "its end is still open";
    client.reset();
    EXPECT_TRUE(run_until(loop, [&] { return idle_calls == 1; }));
    EXPECT_TRUE(hub->idle());
    EXPECT_TRUE(peers.at(id).gone.empty());
    EXPECT_TRUE(peers.at(id).received.empty());
}

TEST_F(Hub, MayDropAPeerWhileItsMessagesAreRead) {
    on_received = [this](PeerId id) {
        hub->drop(id);
    };
    const auto client = connect();
    client->send(magic() + wire::encode(notice("one")) + wire::encode(notice("two")));
    EXPECT_TRUE(run_until(loop, [&] { return client->ended(); }));
    EXPECT_EQ(peers.at(PeerId{1}).received.size(), 1U);
    EXPECT_TRUE(peers.at(PeerId{1}).gone.empty());
}

TEST_F(Hub, MayDropAPeerWhenItArrives) {
    on_arrived = [this](PeerId id) {
        hub->send(id, notice("go away"));
        hub->drop(id);
    };
    const auto client = connect();
    client->send(magic() + wire::encode(notice("one")));
    EXPECT_TRUE(client->gets(loop, wire::encode(notice("go away"))));
    EXPECT_TRUE(run_until(loop, [&] { return client->ended(); }));
    EXPECT_TRUE(peers.at(PeerId{1}).received.empty());
}

TEST_F(Hub, MayBeDestroyedWhileMessagesAreRead) {
    on_received = [this](PeerId) {
        hub.reset();
    };
    const auto client = connect();
    client->send(magic() + wire::encode(notice("one")) + wire::encode(notice("two")));
    EXPECT_TRUE(run_until(loop, [&] { return client->ended(); }));
    EXPECT_EQ(peers.at(PeerId{1}).received.size(), 1U);
}

TEST_F(Hub, APeerThatTakesNothingIsGivenUp) {
    PeerId id{};
    const auto client = agent(id);
    const auto message = notice(std::string(2000, 'x'));
    for (int i = 0; i < 16'000 && peers.at(id).gone.empty(); ++i) {
        hub->send(id, message);
    }
    EXPECT_TRUE(run_until(loop, [&] { return !peers.at(id).gone.empty(); }));
    EXPECT_NE(peers.at(id).gone.at(0).find("not taken"), std::string::npos);
    EXPECT_TRUE(hub->idle());
}

TEST_F(Hub, SilentConnectionsAreLimited) {
    PeerId id{};
    const auto working = agent(id);
    std::vector<std::unique_ptr<RawClient>> silent;
    for (std::size_t i = 0; i < silent_limit(64) + 10; ++i) {
        silent.push_back(connect());
    }
    EXPECT_TRUE(run_until(loop, [&] { return silent.at(9)->ended(); }));
    EXPECT_FALSE(silent.at(10)->ended());
    silent.back()->send(magic());
    EXPECT_TRUE(run_until(loop, [&] { return peers.size() == 2; }));
    working->send(wire::encode(notice("works")));
    EXPECT_TRUE(run_until(loop, [&] { return !peers.at(id).received.empty(); }));
}

TEST_F(Hub, WithoutDescriptorsItWarns) {
    const auto client = connect();
    const DescriptorLimit none(3);
    EXPECT_TRUE(run_until(loop, [&] { return warnings.size() == 1; }));
    EXPECT_NE(warnings.at(0).find("ulimit -n"), std::string::npos) << warnings.at(0);
}

TEST_F(Hub, WhoStartsToSpeakMustGoOn) {
    open(300ms);
    const Instant before = os::now();
    const auto half = connect();
    half->send(magic().substr(0, 2));
    const auto silent = connect();
    PeerId id{};
    const auto mute = agent(id);
    PeerId talking{};
    const auto talker = agent(talking);
    talker->send(wire::encode(notice("hello")));
    EXPECT_TRUE(run_until(loop, [&] { return half->ended() && mute->ended(); }));
    EXPECT_GE(os::now() - before, 300ms);
    EXPECT_EQ(peers.at(id).gone.size(), 1U);
    run_for(loop, 100ms);
    EXPECT_FALSE(silent->ended());
    EXPECT_FALSE(talker->ended());
}

TEST_F(Hub, APortInUseIsAnErrorThatNamesTheOwner) {
    const auto second = AgentHub::listen(loop, hub->port(), {});
    ASSERT_FALSE(second.has_value());
    EXPECT_NE(second.error().message.find("pid " + std::to_string(::getpid())), std::string::npos)
        << second.error().message;
}

TEST(Resolve, AnswersLiteralsWithoutAThreadAndNeverFromWithin) {
    Loop loop;
    for (const char* literal : {"127.0.0.1", "::1", "fe80::1%lo"}) {
        std::vector<std::string> found;
        resolve(loop, literal, [&](Result<std::vector<std::string>> result) {
            found = result.value_or(std::vector<std::string>{});
            loop.stop();
        });
        EXPECT_TRUE(found.empty());
        loop.run();
        EXPECT_EQ(found, std::vector<std::string>{literal});
    }
}

TEST(Resolve, FindsTheAddressesOfAName) {
    Loop loop;
    std::vector<std::string> found;
    resolve(loop, "localhost", [&](Result<std::vector<std::string>> result) {
        ASSERT_TRUE(result.has_value()) << result.error().message;
        found = *result;
        loop.stop();
    });
    loop.run();
    ASSERT_FALSE(found.empty());
    EXPECT_TRUE(found.at(0) == "127.0.0.1" || found.at(0) == "::1") << found.at(0);
}

TEST(Resolve, AnErrorNamesTheHost) {
    Loop loop;
    std::string why;
    resolve(loop, "no-such-host.invalid", [&](Result<std::vector<std::string>> result) {
        ASSERT_FALSE(result.has_value());
        why = result.error().message;
        loop.stop();
    });
    loop.run();
    EXPECT_NE(why.find("no-such-host.invalid"), std::string::npos) << why;
}

TEST(Resolve, WithoutDescriptorsThereIsAnErrorAndNoCrash) {
    Loop loop;
    const int lowest_free = os::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get();
    std::vector<std::string> errors;
    for (const int left : {0, 1}) {
        const DescriptorLimit limit(static_cast<rlim_t>(lowest_free + left));
        resolve(loop, "localhost", [&](Result<std::vector<std::string>> result) {
            errors.push_back(result ? "none" : result.error().message);
        });
    }
    EXPECT_TRUE(run_until(loop, [&] { return errors.size() == 2; }));
    for (const std::string& error : errors) {
        EXPECT_NE(error.find("cannot resolve localhost: no descriptor"), std::string::npos) << error;
    }
}

TEST(Resolve, TheLoopMayEndBeforeTheAnswer) {
    bool called = false;
    {
        Loop loop;
        resolve(loop, "localhost", [&](const auto&) { called = true; });
    }
    EXPECT_FALSE(called);
}

}  // namespace
}  // namespace ddl::net
