// What the store client says, to the word, and how it comes back into step after a deadline that was missed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "ddlaunch/store.hpp"
#include "unit/worker/loopback.hpp"
#include "wire/tcpstore.hpp"

namespace ddlaunch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;
namespace test = ddl::test;
namespace wire = ddl::wire;

const StoreOptions kPatient{10s, 10s, false};

template <class Function>
StoreError error_of(Function function) {
    try {
        function();
    } catch (const StoreError& error) {
        return error;
    }
    ADD_FAILURE() << "no StoreError";
    return {StoreErrc::kProtocol, "none"};
}

std::string bytes_of(const wire::Request& request) {
    std::string bytes;
    wire::append_request(bytes, request);
    return bytes;
}

std::string handshake() {
    std::string bytes;
    wire::append_handshake(bytes);
    return bytes;
}

// ---- coming back into step ----------------------------------------------------------------------------------------

// A server that reads exactly the requests of a wait that missed its deadline, answers the cancellation with `answer`,
// and then, if the client is still there, one more request with `last_words`.
struct LateServer {
    std::string answer;
    std::string last_words;
    std::string asked;  // what came after the cancellation

    void operator()(int fd) {
        test::read_exactly(fd, handshake().size());
        test::read_exactly(fd, bytes_of(wire::op::Wait{{"/k"}}).size());
        test::read_exactly(fd, bytes_of(wire::op::CancelWait{}).size());
        test::write_all(fd, answer);
        asked = test::read_exactly(fd, bytes_of(wire::op::NumKeys{}).size());
        test::write_all(fd, last_words);
        test::read_exactly(fd, 1000);
    }
};

TEST(Resync, AConfirmedCancellationIsATimeoutAndTheConnectionGoesOn) {
    LateServer script{std::string(1, '\1'), std::string("\x07\0\0\0\0\0\0\0", 8), ""};
    test::ScriptedServer server([&script](int fd) { script(fd); });
    {
        Store store("127.0.0.1", server.port(), kPatient);
        const StoreError error = error_of([&] { store.wait({"k"}, 10ms); });
        EXPECT_EQ(error.code(), StoreErrc::kTimeout);
        EXPECT_THAT(error.what(), HasSubstr("wait(k): nobody set all of these in time: /k"));
        EXPECT_EQ(store.num_keys(), 7);
    }
    server.finish();
    EXPECT_EQ(script.asked, bytes_of(wire::op::NumKeys{}));
}

TEST(Resync, AReleaseThatCrossedTheCancellationCounts) {
    LateServer script{std::string("\0\1", 2), std::string("\x07\0\0\0\0\0\0\0", 8), ""};
    test::ScriptedServer server([&script](int fd) { script(fd); });
    Store store("127.0.0.1", server.port(), kPatient);
    store.wait({"k"}, 10ms);  // no error: the key was set
    EXPECT_EQ(store.num_keys(), 7) << "both answers were taken off the stream";
}

TEST(Resync, AnAnswerThatMeansNothingClosesTheConnection) {
    for (const std::string& nonsense : {std::string("\5"), std::string("\0\5", 2), std::string("\0\0", 2)}) {
        LateServer script{nonsense, "", ""};
        test::ScriptedServer server([&script](int fd) { script(fd); });
        Store store("127.0.0.1", server.port(), kPatient);
        const StoreError error = error_of([&] { store.wait({"k"}, 10ms); });
        EXPECT_EQ(error.code(), StoreErrc::kProtocol);
        EXPECT_THAT(error.what(), HasSubstr("a wait was cancelled, but not confirmed"));
        EXPECT_EQ(error_of([&] { static_cast<void>(store.num_keys()); }).code(), StoreErrc::kConnection);
    }
}

TEST(Resync, AServerThatGoesAwayMeanwhileIsALostConnection) {
    test::ScriptedServer server(
        [](int fd) { test::read_exactly(fd, handshake().size() + bytes_of(wire::op::Wait{{"/k"}}).size() + 1); });
    Store store("127.0.0.1", server.port(), kPatient);
    EXPECT_EQ(error_of([&] { store.wait({"k"}, 10ms); }).code(), StoreErrc::kConnection);
}

TEST(Resync, BytesThatNobodyAskedForAreFoundBeforeTheNextRequest) {
    test::ScriptedServer server([](int fd) {
        test::read_exactly(fd, handshake().size() + bytes_of(wire::op::NumKeys{}).size());
        test::write_all(fd, std::string(8, '\0') + "surplus");
        test::read_exactly(fd, 1000);
    });
    Store store("127.0.0.1", server.port(), kPatient);
    EXPECT_EQ(store.num_keys(), 0);
    const StoreError error = error_of([&] { static_cast<void>(store.num_keys()); });
    EXPECT_EQ(error.code(), StoreErrc::kProtocol);
    EXPECT_THAT(error.what(), HasSubstr("the server had sent more than was asked for"));
}

// ---- words --------------------------------------------------------------------------------------------------------

class StoreWords : public testing::Test {
protected:
    [[nodiscard]] Store connect(StoreOptions options = kPatient) const {
        return {"127.0.0.1", server_.port(), options};
    }
    std::string name() const {
        return "store 127.0.0.1:" + std::to_string(server_.port());
    }
    test::LoopbackStore server_;
};

TEST_F(StoreWords, AMissedDeadlineNamesCallServerAndKeys) {
    Store store = connect();
    EXPECT_EQ(error_of([&] { static_cast<void>(store.get("a", 1ms)); }).what(),
              name() + ": get(a): nobody set all of these in time: /a");
    EXPECT_EQ(error_of([&] {
                  static_cast<void>(store.multi_get({"a", "b"}, 1ms));
              }).what(),
              name() + ": multi_get(a, …): nobody set all of these in time: /a, /b");
    EXPECT_THAT(error_of([&] { store.prefixed("p").wait({"a"}, 1ms); }).what(), HasSubstr("in time: /p/a"));
    std::vector<std::string> many(100, "key");
    const std::string text = error_of([&] { store.wait(many, 1ms); }).what();
    EXPECT_LT(text.size(), 500U) << text;
}

TEST_F(StoreWords, LimitsSayHowMuchWasAndMayBe) {
    Store store = connect();
    const std::string key(9000, 'k');
    EXPECT_THAT(error_of([&] { store.set(key, ""); }).what(),
                StartsWith("store: a key of 9001 bytes with its prefixes, at most 8192 are possible: /kkk"));
    const std::string value((8U << 20U) + 1, 'v');
    EXPECT_STREQ(error_of([&] { store.set("big", value); }).what(),
                 "store: the value of big has 8388609 bytes, at most 8388608 are possible");
    EXPECT_STREQ(error_of([&] { store.wait(std::vector<std::string>(131073, "k")); }).what(),
                 "store: 131073 keys in one call, at most 131072 are possible");
    const std::vector<std::pair<std::string, std::string>> pairs(17, {"k", std::string(8U << 20U, 'v')});
    EXPECT_THAT(error_of([&] { store.multi_set(pairs); }).what(), HasSubstr("bytes in one call"));
    EXPECT_THAT(error_of([&] { store.multi_set(pairs); }).what(), HasSubstr("split it"));
    EXPECT_EQ(store.num_keys(), 0) << "nothing was sent, and the connection is as good as ever";
}

TEST_F(StoreWords, NoDeadlineMeansThatOfTheOptions) {
    Store store = connect({10s, 20ms, false});
    for (const auto timeout : {Store::kDefault, Store::Timeout(-5)}) {
        const auto begun = std::chrono::steady_clock::now();
        EXPECT_EQ(error_of([&] { store.wait({"never"}, timeout); }).code(), StoreErrc::kTimeout);
        EXPECT_GE(std::chrono::steady_clock::now() - begun, 20ms);
    }
    EXPECT_EQ(store.add("n", 1), 1) << "calls that are answered at once fit into it";
}

TEST_F(StoreWords, CopiesAndViewsShareTheFateOfTheirConnection) {
    Store store = connect();
    Store copy = store;
    Store view = store.prefixed("p");
    Store apart = store.clone();
    store.set("n", "text");
    EXPECT_EQ(error_of([&] { store.add("n", 1); }).code(), StoreErrc::kConnection);
    EXPECT_EQ(error_of([&] { static_cast<void>(copy.num_keys()); }).code(), StoreErrc::kConnection);
    EXPECT_THAT(error_of([&] { static_cast<void>(view.num_keys()); }).what(), HasSubstr("open a new Store"));
    EXPECT_EQ(apart.num_keys(), 1);
    EXPECT_EQ(store.clone().num_keys(), 1) << "the server is still there";
}

TEST_F(StoreWords, ABarrierIsForOneUse) {
    Store store = connect();
    store.barrier("b", 1);
    store.barrier("b", 1);  // everybody has come: passes at once
    EXPECT_EQ(error_of([&] { store.barrier("other", 2, 5ms); }).code(), StoreErrc::kTimeout);
    connect().barrier("other", 2);  // the one that gave up had come, though
}

TEST_F(StoreWords, QueuesKeepTheirOrderAcrossATimeout) {
    Store store = connect();
    EXPECT_EQ(error_of([&] { static_cast<void>(store.queue_pop("q", 2ms)); }).code(), StoreErrc::kTimeout);
    Store other = connect();
    other.queue_push("q", "1");
    other.queue_push("q", "2");
    EXPECT_EQ(store.queue_pop("q"), "1") << "who gave up waiting takes nothing away";
    EXPECT_EQ(store.queue_pop("q", 0ms), "2");
    EXPECT_EQ(store.queue_len("q"), 0);
}

}  // namespace
}  // namespace ddlaunch
