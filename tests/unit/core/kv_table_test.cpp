// The store's rules, request by request.
#include "core/kv_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

namespace ddl::core {
namespace {

namespace op = wire::op;
namespace reply = wire::reply;

constexpr ConnectionId kA{1};
constexpr ConnectionId kB{2};
constexpr ConnectionId kC{3};

class Table : public testing::Test {
protected:
    // Applies a request that must be answered to the asking connection only.
    wire::Reply ask(wire::Request request, ConnectionId who = kA) {
        const KvResult result = table_.apply(who, std::move(request));
        EXPECT_FALSE(result.close);
        EXPECT_EQ(result.replies.size(), 1U);
        if (result.replies.size() != 1) {
            return reply::Byte{255};
        }
        EXPECT_EQ(result.replies.front().connection, who);
        return result.replies.front().reply;
    }

    // Applies a request that has no answer, and returns whom it woke.
    std::vector<ConnectionId> tell(wire::Request request, ConnectionId who = kA) {
        const KvResult result = table_.apply(who, std::move(request));
        EXPECT_FALSE(result.close);
        return woken(result);
    }

    static std::vector<ConnectionId> woken(const KvResult& result) {
        std::vector<ConnectionId> who;
        for (const KvReply& reply : result.replies) {
            if (reply.reply == wire::Reply(reply::Byte{reply::kStopWaiting})) {
                who.push_back(reply.connection);
            }
        }
        return who;
    }

    std::string value(const std::string& key) {
        return std::get<reply::Blob>(ask(op::Get{key})).value;
    }

    KvTable table_;
};

using Ids = std::vector<ConnectionId>;

TEST_F(Table, SetOverwrites) {
    tell(op::Set{"/k", "old"});
    tell(op::Set{"/k", "new"});
    EXPECT_EQ(value("/k"), "new");
    EXPECT_EQ(ask(op::NumKeys{}), wire::Reply(reply::Integer{1}));
}

TEST_F(Table, GetOfAMissingKeyIsEmpty) {
    EXPECT_EQ(value("/none"), "");
    EXPECT_EQ(table_.keys(), 0U);
}

TEST_F(Table, EmptyKeysAndValuesAreOrdinary) {
    tell(op::Set{"", ""});
    EXPECT_EQ(ask(op::Check{{""}}), wire::Reply(reply::Byte{reply::kReady}));
    EXPECT_EQ(ask(op::DeleteKey{""}), wire::Reply(reply::Integer{1}));
}

struct CompareSetCase {
    const char* name;
    std::optional<std::string> before;
    const char* expected;
    std::optional<std::string> after;
    const char* answer;
};

class CompareSets : public Table, public testing::WithParamInterface<CompareSetCase> {};

TEST_P(CompareSets, Table) {
    const CompareSetCase& test = GetParam();
    if (test.before) {
        tell(op::Set{"/k", *test.before});
    }
    EXPECT_EQ(ask(op::CompareSet{"/k", test.expected, "new"}), wire::Reply(reply::Blob{test.answer}));
    EXPECT_EQ(table_.keys(), test.after ? 1U : 0U);
    EXPECT_EQ(value("/k"), test.after.value_or(""));
}

INSTANTIATE_TEST_SUITE_P(Rules, CompareSets,
                         testing::Values(CompareSetCase{"absent_expected_empty", std::nullopt, "", "new", "new"},
                                         CompareSetCase{"absent_expected_text", std::nullopt, "text", std::nullopt,
                                                        "text"},
                                         CompareSetCase{"equal", "old", "old", "new", "new"},
                                         CompareSetCase{"different", "old", "text", "old", "old"},
                                         CompareSetCase{"empty_equals_empty", "", "", "new", "new"},
                                         CompareSetCase{"text_is_not_empty", "old", "", "old", "old"}),
                         [](const auto& tested) { return tested.param.name; });

TEST_F(Table, CompareSetWakesExactlyWhenTheKeyComesIntoExistence) {
    tell(op::Wait{{"/k"}}, kB);
    EXPECT_EQ(tell(op::CompareSet{"/k", "text", "new"}), Ids{});
    EXPECT_EQ(table_.waiting(), 1U);
    EXPECT_EQ(tell(op::CompareSet{"/k", "", "new"}), Ids{kB});
    EXPECT_EQ(table_.waiting(), 0U);
}

struct CounterCase {
    const char* name;
    const char* before;
    std::int64_t delta;
    std::int64_t after;
};

class Counters : public Table, public testing::WithParamInterface<CounterCase> {};

TEST_P(Counters, Add) {
    const CounterCase& test = GetParam();
    tell(op::Set{"/n", test.before});
    EXPECT_EQ(ask(op::Add{"/n", test.delta}), wire::Reply(reply::Integer{test.after}));
    EXPECT_EQ(value("/n"), std::to_string(test.after));
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

INSTANTIATE_TEST_SUITE_P(Texts, Counters,
                         testing::Values(CounterCase{"number", "5", -7, -2},
                                         CounterCase{"trailing_garbage", "12abc", 1, 13},
                                         CounterCase{"fraction", "3.9", 1, 4}, CounterCase{"hexadecimal", "0x10", 1, 1},
                                         CounterCase{"plus", "+3", 1, 4}, CounterCase{"blanks", " \t\n 7", 1, 8},
                                         CounterCase{"minus", "-4", 1, -3},
                                         CounterCase{"wraps_up", "9223372036854775807", 1, kLeast},
                                         CounterCase{"wraps_down", "-9223372036854775808", -1, kMost},
                                         CounterCase{"leading_zeros", "007", 0, 7}),
                         [](const auto& tested) { return tested.param.name; });

TEST_F(Table, AddToAMissingKeyBeginsAtZero) {
    EXPECT_EQ(ask(op::Add{"/n", 0}), wire::Reply(reply::Integer{0}));
    EXPECT_EQ(value("/n"), "0");
}

TEST_F(Table, AddToWhatIsNoNumberClosesAndChangesNothing) {
    for (const char* text : {"", "abc", "-", "+", "+-1", "--1", " ", "9223372036854775808", "-9223372036854775809"}) {
        tell(op::Set{"/n", text});
        const KvResult result = table_.apply(kA, op::Add{"/n", 1});
        EXPECT_TRUE(result.close) << text;
        EXPECT_TRUE(result.replies.empty()) << text;
        EXPECT_EQ(value("/n"), text);
    }
}

TEST_F(Table, DeleteSaysWhetherThereWasOne) {
    tell(op::Set{"/k", "v"});
    EXPECT_EQ(ask(op::DeleteKey{"/k"}), wire::Reply(reply::Integer{1}));
    EXPECT_EQ(ask(op::DeleteKey{"/k"}), wire::Reply(reply::Integer{0}));
    EXPECT_EQ(table_.keys(), 0U);
}

TEST_F(Table, DeleteLeavesQueuesAlone) {
    tell(op::QueuePush{"/q", "item"});
    EXPECT_EQ(ask(op::DeleteKey{"/q"}), wire::Reply(reply::Integer{0}));
    EXPECT_EQ(ask(op::QueueLen{"/q"}), wire::Reply(reply::Integer{1}));
}

TEST_F(Table, AppendCreatesAndGrows) {
    tell(op::Append{"/k", "ab"});
    tell(op::Append{"/k", "cd"});
    EXPECT_EQ(value("/k"), "abcd");
}

TEST_F(Table, AppendMayPassTheLimitOfRequestsButNotItsOwn) {
    const std::string part(wire::kMaxValueBytes, 'x');
    for (std::size_t size = 0; size < kMaxGrownValueBytes; size += part.size()) {
        ASSERT_EQ(tell(op::Append{"/k", part}), Ids{});
    }
    EXPECT_TRUE(table_.apply(kA, op::Append{"/k", "1"}).close);
    EXPECT_EQ(value("/k").size(), kMaxGrownValueBytes);
}

TEST_F(Table, MultiGetAnswersInTheOrderAsked) {
    tell(op::MultiSet{{{"/a", "1"}, {"/b", "2"}}});
    EXPECT_EQ(ask(op::MultiGet{{"/b", "/none", "/a", "/b"}}), wire::Reply(reply::Blobs{{"2", "", "1", "2"}}));
    EXPECT_EQ(ask(op::MultiGet{}), wire::Reply(reply::Blobs{}));
}

TEST_F(Table, RepliesAreLimited) {
    tell(op::Set{"/k", std::string(wire::kMaxValueBytes, 'v')});
    op::MultiGet request;
    request.keys.assign(31, "/k");
    EXPECT_FALSE(table_.apply(kA, request).close);
    request.keys.assign(32, "/k");
    EXPECT_TRUE(table_.apply(kA, request).close);
}

TEST_F(Table, MultiSetIsAtomic) {
    tell(op::Wait{{"/a", "/b"}}, kB);
    tell(op::Wait{{"/a"}}, kC);
    const KvResult result = table_.apply(kA, op::MultiSet{{{"/a", "1"}, {"/a", "2"}, {"/b", "3"}}});
    auto who = woken(result);
    std::sort(who.begin(), who.end());
    EXPECT_EQ(who, (Ids{kB, kC}));
    EXPECT_EQ(value("/a"), "2");
}

TEST_F(Table, ListKeysHasEveryKeyAndNoQueue) {
    EXPECT_EQ(ask(op::ListKeys{}), wire::Reply(reply::Keys{}));
    tell(op::MultiSet{{{"/a", ""}, {"init/", "1"}}});
    tell(op::QueuePush{"/q", "item"});
    auto keys = std::get<reply::Keys>(ask(op::ListKeys{})).keys;
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(keys, (std::vector<std::string>{"/a", "init/"}));
    EXPECT_EQ(ask(op::NumKeys{}), wire::Reply(reply::Integer{2}));
}

TEST_F(Table, CheckNeedsAllKeys) {
    tell(op::Set{"/a", ""});
    EXPECT_EQ(ask(op::Check{{"/a"}}), wire::Reply(reply::Byte{reply::kReady}));
    EXPECT_EQ(ask(op::Check{{"/a", "/b"}}), wire::Reply(reply::Byte{reply::kNotReady}));
    EXPECT_EQ(ask(op::Check{}), wire::Reply(reply::Byte{reply::kReady}));
    tell(op::QueuePush{"/b", "item"});
    EXPECT_EQ(ask(op::Check{{"/a", "/b"}}), wire::Reply(reply::Byte{reply::kReady}));
}

TEST_F(Table, PingEchoes) {
    EXPECT_EQ(ask(op::Ping{0xFFFFFFFF}), wire::Reply(reply::Nonce{0xFFFFFFFF}));
}

TEST_F(Table, QueuesAreFirstInFirstOut) {
    EXPECT_EQ(ask(op::QueuePop{"/q"}), wire::Reply(reply::Popped{}));
    EXPECT_EQ(ask(op::QueueLen{"/q"}), wire::Reply(reply::Integer{0}));
    tell(op::QueuePush{"/q", "first"});
    tell(op::QueuePush{"/q", ""});
    EXPECT_EQ(ask(op::QueueLen{"/q"}), wire::Reply(reply::Integer{2}));
    EXPECT_EQ(ask(op::QueuePop{"/q"}), wire::Reply(reply::Popped{2, "first"}));
    EXPECT_EQ(ask(op::QueuePop{"/q"}), wire::Reply(reply::Popped{1, ""}));
    EXPECT_EQ(ask(op::QueuePop{"/q"}), wire::Reply(reply::Popped{}));
}

TEST_F(Table, AQueueAndAKeyMayShareAName) {
    tell(op::Set{"/x", "value"});
    tell(op::QueuePush{"/x", "item"});
    EXPECT_EQ(value("/x"), "value");
    EXPECT_EQ(ask(op::QueuePop{"/x"}), wire::Reply(reply::Popped{1, "item"}));
    EXPECT_EQ(value("/x"), "value");
}

TEST_F(Table, ClearForgetsEverything) {
    tell(op::Set{"/k", "v"});
    tell(op::QueuePush{"/q", "i"});
    tell(op::Wait{{"/w"}}, kB);
    table_.clear();
    EXPECT_EQ(table_.keys(), 0U);
    EXPECT_EQ(table_.waiting(), 0U);
    EXPECT_EQ(table_.bytes(), 0U);
    EXPECT_EQ(tell(op::Set{"/w", "v"}), Ids{});
}

TEST(KvLimits, MemoryIsBounded) {
    KvTable table(KvLimits{4000, 1024});
    std::optional<std::string> close;
    int stored = 0;
    for (; stored < 100 && !close; ++stored) {
        close = table.apply(kA, op::Set{"/" + std::to_string(stored), std::string(100, 'v')}).close;
    }
    ASSERT_TRUE(close);
    EXPECT_NE(close->find("4000 bytes"), std::string::npos) << *close;
    EXPECT_LE(table.bytes(), 4000U);
    EXPECT_LT(stored, 30);
    for (const wire::Request& request : std::vector<wire::Request>{
             op::QueuePush{"/q", std::string(200, 'i')}, op::MultiSet{{{"/x", ""}, {"/y", std::string(200, 'v')}}},
             op::Append{"/0", std::string(200, 'v')}, op::Wait{{"/w" + std::string(200, 'w')}},
             op::CompareSet{"/c", "", std::string(200, 'v')}}) {
        EXPECT_TRUE(table.apply(kA, request).close) << request.index();
    }
    EXPECT_EQ(table.waiting(), 0U);
    EXPECT_TRUE(table.apply(kA, op::DeleteKey{"/0"}).replies == (std::vector<KvReply>{{kA, reply::Integer{1}}}));
    EXPECT_FALSE(table.apply(kA, op::Set{"/0", "small"}).close);
}

TEST(KvLimits, WatchesAreBounded) {
    KvTable table(KvLimits{1U << 20U, 2});
    EXPECT_FALSE(table.apply(kA, op::WatchKey{"/a"}).close);
    EXPECT_FALSE(table.apply(kA, op::WatchKey{"/b"}).close);
    EXPECT_TRUE(table.apply(kA, op::WatchKey{"/c"}).close);
    EXPECT_FALSE(table.apply(kB, op::WatchKey{"/c"}).close);
}

}  // namespace
}  // namespace ddl::core
