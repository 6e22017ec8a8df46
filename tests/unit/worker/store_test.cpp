// The store client against a real server in this process, and against ones that misbehave.
#include "ddlaunch/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "unit/worker/loopback.hpp"

namespace ddlaunch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
namespace test = ddl::test;

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

class StoreClient : public testing::Test {
protected:
    [[nodiscard]] Store connect() const {
        return {"127.0.0.1", server_.port(), kPatient};
    }

    test::LoopbackStore server_;
};

TEST_F(StoreClient, ValuesOfAnyBytes) {
    Store store = connect();
    const std::string key("k\0\n\xFF", 4);
    const std::string value("\0\1\2", 3);
    store.set(key, value);
    EXPECT_EQ(store.get(key), value);
    store.set("", "");
    EXPECT_EQ(store.get(""), "");
}

TEST_F(StoreClient, TheLargestValue) {
    Store store = connect();
    const std::string value(8U << 20U, 'v');
    store.set("k", value);
    EXPECT_EQ(store.get("k"), value);
    store.append("k", value);
    EXPECT_EQ(store.get("k").size(), 2 * value.size());
}

TEST_F(StoreClient, TryGetNeverWaits) {
    Store store = connect();
    EXPECT_EQ(store.try_get("k"), std::nullopt);
    store.set("k", "");
    EXPECT_EQ(store.try_get("k"), "");
}

TEST_F(StoreClient, CountersAndComparisons) {
    Store store = connect();
    EXPECT_EQ(store.add("n", 5), 5);
    EXPECT_EQ(store.add("n", -7), -2);
    EXPECT_EQ(store.get("n"), "-2");
    EXPECT_EQ(store.compare_set("c", "", "1"), "1");
    EXPECT_EQ(store.compare_set("c", "x", "2"), "1");
    EXPECT_EQ(store.compare_set("absent", "x", "2"), "x");
    EXPECT_TRUE(store.check({"n", "c"}));
    EXPECT_FALSE(store.check({"n", "absent"}));
}

TEST_F(StoreClient, ManyAtOnce) {
    Store store = connect();
    store.multi_set({{"a", "1"}, {"b", ""}});
    EXPECT_EQ(store.multi_get({"b", "a"}), (std::vector<std::string>{"", "1"}));
    EXPECT_TRUE(store.multi_get({}).empty());
    EXPECT_EQ(store.num_keys(), 2);
    EXPECT_TRUE(store.delete_key("a"));
    EXPECT_FALSE(store.delete_key("a"));
}

TEST_F(StoreClient, PrefixesNestAndKeepDoubledSlashes) {
    Store store = connect();
    Store inner = store.prefixed("b").prefixed("a/");
    inner.set("k", "v");
    EXPECT_EQ(store.get("b/a//k"), "v");
    store.set("bat", "other");
    EXPECT_THAT(store.list_keys(), UnorderedElementsAre("b/a//k", "bat"));
    EXPECT_THAT(store.prefixed("b").list_keys(), UnorderedElementsAre("a//k"));
    EXPECT_THAT(inner.list_keys(), UnorderedElementsAre("k"));
}

TEST_F(StoreClient, Queues) {
    Store store = connect();
    EXPECT_EQ(store.try_queue_pop("q"), std::nullopt);
    store.queue_push("q", "first");
    store.queue_push("q", "second");
    EXPECT_EQ(store.queue_len("q"), 2);
    EXPECT_EQ(store.queue_pop("q"), "first");
    EXPECT_EQ(store.try_queue_pop("q"), "second");
}

TEST_F(StoreClient, AWaitEndsWhenAnotherClientSets) {
    Store store = connect();
    auto value = std::async(std::launch::async, [other = connect()]() mutable { return other.get("k"); });
    store.set("k", "v");
    EXPECT_EQ(value.get(), "v");
}

TEST_F(StoreClient, AQueueIsSharedWithoutLossOrDoubles) {
    constexpr int kItems = 60;
    std::vector<std::future<int>> takers;
    for (int taker = 0; taker < 3; ++taker) {
        takers.push_back(std::async(std::launch::async, [store = connect()]() mutable {
            int sum = 0;
            for (int i = 0; i < kItems / 3; ++i) {
                sum += std::stoi(store.queue_pop("q"));
            }
            return sum;
        }));
    }
    Store store = connect();
    for (int i = 1; i <= kItems; ++i) {
        store.queue_push("q", std::to_string(i));
    }
    int sum = 0;
    for (auto& taker : takers) {
        sum += taker.get();
    }
    EXPECT_EQ(sum, kItems * (kItems + 1) / 2);
}

TEST_F(StoreClient, ABarrierHoldsUntilAllHaveCome) {
    std::vector<std::future<std::int64_t>> others;
    for (int i = 0; i < 3; ++i) {
        others.push_back(std::async(std::launch::async, [store = connect()]() mutable {
            store.barrier("bar", 4);
            return store.add("after", 1);
        }));
    }
    Store store = connect();
    EXPECT_EQ(store.try_get("after"), std::nullopt);
    store.barrier("bar", 4);
    for (auto& other : others) {
        EXPECT_GT(other.get(), 0);
    }
    EXPECT_EQ(store.get("after"), "3");
}

TEST_F(StoreClient, AMissedDeadlineLeavesTheConnectionUsable) {
    Store store = connect();
    for (int i = 0; i < 5; ++i) {
        const StoreError error = error_of([&] { store.wait({"never", "neither"}, 1ms); });
        EXPECT_EQ(error.code(), StoreErrc::kTimeout);
        EXPECT_THAT(error.what(), HasSubstr("/never, /neither"));
        EXPECT_EQ(store.add("n", 1), i + 1);
    }
    EXPECT_EQ(error_of([&] { static_cast<void>(store.get("never", 0ms)); }).code(), StoreErrc::kTimeout);
    EXPECT_EQ(error_of([&] { static_cast<void>(store.queue_pop("never", 1ms)); }).code(), StoreErrc::kTimeout);
    EXPECT_EQ(error_of([&] { store.barrier("never", 2, 1ms); }).code(), StoreErrc::kTimeout);
    store.set("never", "now");
    EXPECT_EQ(store.get("never"), "now");
}

TEST_F(StoreClient, AZeroTimeoutFindsWhatIsThere) {
    Store store = connect();
    store.set("k", "v");
    EXPECT_EQ(store.get("k", 0ms), "v");
    store.wait({"k"}, 0ms);
}

TEST_F(StoreClient, LimitsAreCheckedBeforeAnythingIsSent) {
    Store store = connect();
    const std::string long_key(8192, 'k');
    const std::string large(std::size_t{8 << 20} + 1, 'v');
    EXPECT_EQ(error_of([&] { store.set(long_key, ""); }).code(), StoreErrc::kInvalid);
    EXPECT_EQ(error_of([&] { store.prefixed("p").set(long_key.substr(2), ""); }).code(), StoreErrc::kInvalid);
    EXPECT_EQ(error_of([&] { store.set("k", large); }).code(), StoreErrc::kInvalid);
    EXPECT_EQ(error_of([&] { store.append("k", large); }).code(), StoreErrc::kInvalid);
    EXPECT_EQ(error_of([&] { store.queue_push("k", large); }).code(), StoreErrc::kInvalid);
    EXPECT_EQ(error_of([&] { store.compare_set("k", large, ""); }).code(), StoreErrc::kInvalid);
    EXPECT_EQ(error_of([&] { store.multi_set({{"k", large}}); }).code(), StoreErrc::kInvalid);
    EXPECT_EQ(error_of([&] { store.wait(std::vector<std::string>(131073, "k")); }).code(), StoreErrc::kInvalid);
    EXPECT_EQ(error_of([&] { store.barrier("b", 0); }).code(), StoreErrc::kInvalid);
    store.set(long_key.substr(1), "fits");
    EXPECT_EQ(store.get(long_key.substr(1)), "fits");
}

TEST_F(StoreClient, ACloneHasItsOwnConnection) {
    Store store = connect().prefixed("p");
    auto waiting = std::async(std::launch::async, [&] { return store.get("k"); });
    Store other = store.clone();
    other.set("k", "v");
    EXPECT_EQ(waiting.get(), "v");
}

TEST_F(StoreClient, ThreadsTakeTurns) {
    Store store = connect();
    std::vector<std::future<void>> threads;
    for (int i = 0; i < 4; ++i) {
        threads.push_back(std::async(std::launch::async, [store]() mutable {
            for (int n = 0; n < 50; ++n) {
                store.add("n", 1);
            }
        }));
    }
    for (auto& thread : threads) {
        thread.get();
    }
    EXPECT_EQ(store.add("n", 0), 200);
}

TEST_F(StoreClient, WaitingForATurnCountsAgainstTheDeadline) {
    Store store = connect();
    std::promise<void> begun;
    auto waiting = std::async(std::launch::async, [&] {
        begun.set_value();
        return store.get("k", 10s);
    });
    begun.get_future().wait();
    StoreError error{StoreErrc::kProtocol, ""};
    do {  // until the other thread holds the turn
        try {
            store.set("unrelated", "", 5ms);
        } catch (const StoreError& thrown) {
            error = thrown;
        }
    } while (error.code() == StoreErrc::kProtocol);
    EXPECT_EQ(error.code(), StoreErrc::kTimeout);
    EXPECT_THAT(error.what(), HasSubstr("clone()"));
    connect().set("k", "v");
    EXPECT_EQ(waiting.get(), "v");
}

TEST_F(StoreClient, AServerThatClosesIsReportedOnceAndForAll) {
    Store store = connect();
    store.set("n", "text");
    const StoreError first = error_of([&] { store.add("n", 1); });
    EXPECT_EQ(first.code(), StoreErrc::kConnection);
    EXPECT_THAT(first.what(), HasSubstr("add(n): the server closed the connection"));
    const StoreError second = error_of([&] { static_cast<void>(store.num_keys()); });
    EXPECT_EQ(second.code(), StoreErrc::kConnection);
    EXPECT_THAT(second.what(), HasSubstr("was lost before (add(n)"));
}

TEST_F(StoreClient, PingAndJoin) {
    Store store("localhost", server_.port(), {10s, 10s, true});
    EXPECT_EQ(store.join(), 1);
    EXPECT_EQ(store.join(), 2);
    EXPECT_EQ(store.num_keys(), 1);
    EXPECT_TRUE(store.list_keys().empty());
}

TEST(StoreConnect, NobodyListens) {
    std::uint16_t port = 0;
    {
        const test::Listener gone;
        port = gone.port();
    }
    const StoreError error = error_of([&] { Store("127.0.0.1", port, {30ms, 1s, false}); });
    EXPECT_EQ(error.code(), StoreErrc::kTimeout);
    EXPECT_THAT(error.what(), HasSubstr("127.0.0.1: Connection refused"));
}

TEST(StoreConnect, NoSuchName) {
    const StoreError error = error_of([&] { Store("no-such-host.invalid", 1, {0ms, 1s, false}); });
    EXPECT_EQ(error.code(), StoreErrc::kTimeout);
    EXPECT_THAT(error.what(), HasSubstr("look-up"));
}

TEST(StoreConnect, ASilentServerMissesTheDeadline) {
    test::ScriptedServer server([](int fd) { test::read_exactly(fd, 1000); });
    Store store("127.0.0.1", server.port(), kPatient);
    EXPECT_EQ(error_of([&] { static_cast<void>(store.num_keys(20ms)); }).code(), StoreErrc::kTimeout);
    EXPECT_EQ(error_of([&] { static_cast<void>(store.num_keys()); }).code(), StoreErrc::kConnection);
}

TEST(StoreConnect, AServerThatDoesNotReadMissesTheDeadline) {
    std::promise<void> done;
    test::ScriptedServer server([&](int) { done.get_future().wait(); });
    Store store("127.0.0.1", server.port(), kPatient);
    const std::string value(8U << 20U, 'v');
    const StoreError error = error_of([&] {
        for (int i = 0; i < 10; ++i) {
            store.set("k", value, 50ms);
        }
    });
    EXPECT_EQ(error.code(), StoreErrc::kTimeout);
    done.set_value();
}

struct BadAnswer {
    const char* name;
    std::string bytes;
    StoreErrc code;
    std::function<void(Store&)> call;
};

class BadServers : public testing::TestWithParam<BadAnswer> {};

TEST_P(BadServers, AreReported) {
    test::ScriptedServer server([](int fd) {
        test::read_exactly(fd, 5);
        test::read_exactly(fd, 1);
        test::write_all(fd, GetParam().bytes);
        ::shutdown(fd, SHUT_WR);
        test::read_exactly(fd, 1U << 20U);
    });
    Store store("127.0.0.1", server.port(), {10s, 2s, false});
    EXPECT_EQ(error_of([&] { GetParam().call(store); }).code(), GetParam().code);
}

INSTANTIATE_TEST_SUITE_P(Table, BadServers,
                         testing::Values(BadAnswer{"wait_byte", "\7", StoreErrc::kProtocol,
                                                   [](Store& s) {
                                                       s.wait({"k"});
                                                   }},
                                         BadAnswer{"too_much", std::string(9, '\0'), StoreErrc::kProtocol,
                                                   [](Store& s) {
                                                       static_cast<void>(s.num_keys());
                                                       static_cast<void>(s.num_keys());
                                                   }},
                                         BadAnswer{"huge_value", std::string(1, '\0') + std::string(8, '\xFF'),
                                                   StoreErrc::kProtocol,
                                                   [](Store& s) {
                                                       static_cast<void>(s.get("k"));
                                                   }},
                                         BadAnswer{"half_an_answer", std::string(3, '\0'), StoreErrc::kConnection,
                                                   [](Store& s) {
                                                       static_cast<void>(s.num_keys());
                                                   }},
                                         BadAnswer{"old_server_list", "", StoreErrc::kUnsupported,
                                                   [](Store& s) {
                                                       static_cast<void>(s.list_keys());
                                                   }},
                                         BadAnswer{"old_server_queue", "", StoreErrc::kUnsupported,
                                                   [](Store& s) {
                                                       static_cast<void>(s.queue_len("q"));
                                                   }}),
                         [](const auto& tested) { return tested.param.name; });

TEST(BadPing, AWrongNonceIsAnError) {
    test::ScriptedServer server([](int fd) {
        test::read_exactly(fd, 10);
        test::write_all(fd, "????");
    });
    EXPECT_EQ(error_of([&] { Store("127.0.0.1", server.port(), {10s, 1s, true}); }).code(), StoreErrc::kProtocol);
}

}  // namespace
}  // namespace ddlaunch
