// Who is woken when: waits, cancels, barriers, queues and watches of KvTable.
#include <gtest/gtest.h>

#include <string>

#include "core/kv_table.hpp"

namespace ddl::core {
namespace {

namespace op = wire::op;
namespace reply = wire::reply;

constexpr ConnectionId kA{1};
constexpr ConnectionId kB{2};
constexpr ConnectionId kC{3};
constexpr ConnectionId kSetter{9};

using Replies = std::vector<KvReply>;

const wire::Reply kStop = reply::Byte{reply::kStopWaiting};
const wire::Reply kCancelled = reply::Byte{reply::kWaitCancelled};

class Waits : public testing::Test {
protected:
    Replies apply(ConnectionId who, wire::Request request) {
        KvResult result = table_.apply(who, std::move(request));
        EXPECT_FALSE(result.close) << *result.close;
        return std::move(result.replies);
    }
    Replies set(const std::string& key) {
        return apply(kSetter, op::Set{key, "v"});
    }

    KvTable table_;
};

TEST_F(Waits, PresentKeysAnswerAtOnce) {
    set("/a");
    apply(kSetter, op::QueuePush{"/q", "item"});
    EXPECT_EQ(apply(kA, op::Wait{{"/a", "/q", "/a"}}), (Replies{{kA, kStop}}));
    EXPECT_EQ(apply(kA, op::Wait{}), (Replies{{kA, kStop}}));
    EXPECT_EQ(table_.waiting(), 0U);
}

TEST_F(Waits, TheLastKeyWakesOnce) {
    EXPECT_EQ(apply(kA, op::Wait{{"/a", "/b", "/b"}}), Replies{});
    EXPECT_EQ(set("/b"), Replies{});
    EXPECT_EQ(set("/b"), Replies{});
    EXPECT_EQ(set("/a"), (Replies{{kA, kStop}}));
    EXPECT_EQ(set("/a"), Replies{});
}

TEST_F(Waits, EveryKindOfWriteWakes) {
    const std::vector<wire::Request> writes = {op::Set{"/k", ""},           op::Add{"/k", 0},
                                               op::Append{"/k", ""},        op::CompareSet{"/k", "", "v"},
                                               op::MultiSet{{{"/k", "v"}}}, op::QueuePush{"/k", "item"}};
    for (const wire::Request& write : writes) {
        table_.clear();
        apply(kA, op::Wait{{"/k"}});
        const Replies replies = apply(kSetter, write);
        ASSERT_FALSE(replies.empty()) << write.index();
        EXPECT_EQ(replies.back(), (KvReply{kA, kStop})) << write.index();
    }
}

TEST_F(Waits, WritersAreAnsweredBeforeTheWokenOnes) {
    apply(kA, op::Wait{{"/k"}});
    EXPECT_EQ(apply(kSetter, op::Add{"/k", 2}), (Replies{{kSetter, reply::Integer{2}}, {kA, kStop}}));
}

TEST_F(Waits, AllWaitersWakeInOrderOfRegistration) {
    for (const ConnectionId who : {kC, kA, kB}) {
        apply(who, op::Wait{{"/k"}});
    }
    EXPECT_EQ(set("/k"), (Replies{{kC, kStop}, {kA, kStop}, {kB, kStop}}));
}

TEST_F(Waits, SetAndDeletedCountsAsSet) {
    apply(kA, op::Wait{{"/a", "/b"}});
    set("/a");
    apply(kSetter, op::DeleteKey{"/a"});
    EXPECT_EQ(set("/b"), (Replies{{kA, kStop}}));
}

TEST_F(Waits, WhatWasDeletedBeforeDoesNotCount) {
    set("/a");
    apply(kSetter, op::DeleteKey{"/a"});
    EXPECT_EQ(apply(kA, op::Wait{{"/a"}}), Replies{});
}

TEST_F(Waits, CancelIsAlwaysAnswered) {
    EXPECT_EQ(apply(kA, op::CancelWait{}), (Replies{{kA, kCancelled}}));
    apply(kA, op::Wait{{"/a"}});
    EXPECT_EQ(apply(kA, op::CancelWait{}), (Replies{{kA, kCancelled}}));
    EXPECT_EQ(set("/a"), Replies{});
    EXPECT_EQ(table_.waiting(), 0U);
}

TEST_F(Waits, CancelAfterTheReleaseIsAnsweredToo) {
    apply(kA, op::Wait{{"/a"}});
    EXPECT_EQ(set("/a"), (Replies{{kA, kStop}}));
    EXPECT_EQ(apply(kA, op::CancelWait{}), (Replies{{kA, kCancelled}}));
}

TEST_F(Waits, AnyFurtherRequestEndsTheWait) {
    for (const wire::Request& further :
         std::vector<wire::Request>{op::NumKeys{}, op::Get{"/x"}, op::Ping{1}, op::Check{{"/x"}}, op::Wait{{"/other"}},
                                    op::QueueLen{"/q"}, op::Barrier{"/bar", 1}}) {
        table_.clear();
        apply(kA, op::Wait{{"/k"}});
        apply(kA, further);
        EXPECT_EQ(set("/k"), Replies{}) << further.index();
    }
}

TEST_F(Waits, TheConnectionsOwnSetEndsItsWaitSilently) {
    apply(kA, op::Wait{{"/k"}});
    EXPECT_EQ(apply(kA, op::Set{"/k", "v"}), Replies{});
}

TEST_F(Waits, ASecondWaitReplacesTheFirst) {
    apply(kA, op::Wait{{"/a"}});
    apply(kA, op::Wait{{"/b"}});
    EXPECT_EQ(set("/a"), Replies{});
    EXPECT_EQ(set("/b"), (Replies{{kA, kStop}}));
}

TEST_F(Waits, AClosedConnectionIsForgotten) {
    const std::size_t before = table_.bytes();
    apply(kA, op::Wait{{"/a", "/b"}});
    EXPECT_GT(table_.bytes(), before);
    table_.connection_closed(kA);
    table_.connection_closed(kA);
    EXPECT_EQ(table_.bytes(), before);
    EXPECT_EQ(set("/a"), Replies{});
    EXPECT_EQ(set("/b"), Replies{});
}

TEST_F(Waits, OneItemReleasesOneWaiter) {
    apply(kA, op::Wait{{"/q"}});
    apply(kB, op::Wait{{"/q"}});
    EXPECT_EQ(apply(kSetter, op::QueuePush{"/q", "1"}), (Replies{{kA, kStop}}));
    EXPECT_EQ(apply(kSetter, op::QueuePush{"/q", "2"}), (Replies{{kB, kStop}}));
    EXPECT_EQ(apply(kSetter, op::QueuePush{"/q", "3"}), Replies{});
}

TEST_F(Waits, ASetOnTheQueuesNameReleasesAll) {
    apply(kA, op::Wait{{"/q"}});
    apply(kB, op::Wait{{"/q"}});
    EXPECT_EQ(set("/q"), (Replies{{kA, kStop}, {kB, kStop}}));
}

// The original releases the client's next, unrelated wait.
TEST_F(Waits, APushNeverReleasesAnUnrelatedWait) {
    apply(kA, op::Wait{{"/q"}});
    apply(kSetter, op::QueuePush{"/q", "1"});
    apply(kA, op::QueuePop{"/q"});
    apply(kA, op::Wait{{"/other"}});
    EXPECT_EQ(apply(kSetter, op::QueuePush{"/q", "2"}), Replies{});
}

// The original counts two pushes to one queue as both keys.
TEST_F(Waits, TwoItemsInOneQueueAreNotTwoQueues) {
    apply(kA, op::Wait{{"/q1", "/q2"}});
    EXPECT_EQ(apply(kSetter, op::QueuePush{"/q1", "1"}), Replies{});
    EXPECT_EQ(apply(kSetter, op::QueuePush{"/q1", "2"}), Replies{});
    EXPECT_EQ(apply(kSetter, op::QueuePush{"/q2", "3"}), (Replies{{kA, kStop}}));
}

// The original isn't released by the missing key alone.
TEST_F(Waits, AQueueThatHasItemsNeedsNoFurtherOne) {
    apply(kSetter, op::QueuePush{"/q", "1"});
    apply(kA, op::Wait{{"/q", "/k"}});
    EXPECT_EQ(set("/k"), (Replies{{kA, kStop}}));
}

TEST_F(Waits, AnItemIsNotLostOnAWaiterThatLacksOtherKeys) {
    apply(kA, op::Wait{{"/q", "/k"}});
    apply(kB, op::Wait{{"/q"}});
    EXPECT_EQ(apply(kSetter, op::QueuePush{"/q", "1"}), (Replies{{kB, kStop}}));
    EXPECT_EQ(set("/k"), (Replies{{kA, kStop}}));
}

TEST_F(Waits, TheLastOfABarrierReleasesAll) {
    EXPECT_EQ(apply(kA, op::Barrier{"/b", 3}), Replies{});
    EXPECT_EQ(apply(kB, op::Barrier{"/b", 3}), Replies{});
    EXPECT_EQ(apply(kC, op::Barrier{"/b", 3}), (Replies{{kC, kStop}, {kA, kStop}, {kB, kStop}}));
}

TEST_F(Waits, ABarriersKeyIsGoodForOneBarrier) {
    apply(kA, op::Barrier{"/b", 1});
    EXPECT_EQ(apply(kB, op::Barrier{"/b", 2}), (Replies{{kB, kStop}}));
    EXPECT_EQ(apply(kC, op::Barrier{"/b", 2}), (Replies{{kC, kStop}}));
    EXPECT_EQ(apply(kA, op::Get{"/b"}), (Replies{{kA, reply::Blob{"3"}}}));
}

TEST_F(Waits, ABarrierOfNobodyReleasesAtOnce) {
    EXPECT_EQ(apply(kA, op::Barrier{"/b", 0}), (Replies{{kA, kStop}}));
    EXPECT_EQ(apply(kA, op::Barrier{"/c", -1}), (Replies{{kA, kStop}}));
}

TEST_F(Waits, CancellingABarrierKeepsTheCount) {
    apply(kA, op::Barrier{"/b", 2});
    EXPECT_EQ(apply(kA, op::CancelWait{}), (Replies{{kA, kCancelled}}));
    EXPECT_EQ(apply(kB, op::Barrier{"/b", 2}), (Replies{{kB, kStop}}));
}

TEST_F(Waits, AWriteToABarriersKeyReleasesIt) {
    for (const wire::Request& write :
         std::vector<wire::Request>{op::Set{"/b", "0"}, op::Add{"/b", 0}, op::Append{"/b", ""}}) {
        table_.clear();
        apply(kA, op::Barrier{"/b", 2});
        EXPECT_EQ(apply(kSetter, write).back(), (KvReply{kA, kStop})) << write.index();
    }
}

TEST_F(Waits, AnArrivalThatIsNotTheLastWakesNoWaiter) {
    apply(kA, op::Wait{{"/b"}});
    EXPECT_EQ(apply(kB, op::Barrier{"/b", 2}), Replies{});
    EXPECT_EQ(apply(kC, op::Barrier{"/b", 2}), (Replies{{kC, kStop}, {kA, kStop}, {kB, kStop}}));
}

TEST_F(Waits, ItemsDoNotReleaseBarriers) {
    apply(kA, op::Barrier{"/b", 2});
    EXPECT_EQ(apply(kSetter, op::QueuePush{"/b", "item"}), Replies{});
    EXPECT_EQ(apply(kB, op::Barrier{"/b", 2}), (Replies{{kB, kStop}, {kA, kStop}}));
}

TEST_F(Waits, ABarrierOnWhatIsNoNumberCloses) {
    apply(kSetter, op::Set{"/b", "text"});
    EXPECT_TRUE(table_.apply(kA, op::Barrier{"/b", 2}).close);
    EXPECT_EQ(table_.waiting(), 0U);
}

TEST_F(Waits, WatchersAreToldOfEveryChange) {
    using reply::ChangeKind;
    const wire::Reply registered = reply::Byte{reply::kWatchRegistered};
    EXPECT_EQ(apply(kA, op::WatchKey{"/k"}), (Replies{{kA, registered}}));
    EXPECT_EQ(apply(kA, op::WatchKey{"/k"}), (Replies{{kA, registered}}));
    EXPECT_EQ(apply(kB, op::Set{"/k", "1"}), (Replies{{kA, reply::Change{ChangeKind::kCreated, "/k", "", "1"}}}));
    EXPECT_EQ(apply(kB, op::Add{"/k", 1}),
              (Replies{{kA, reply::Change{ChangeKind::kUpdated, "/k", "1", "2"}}, {kB, reply::Integer{2}}}));
    EXPECT_EQ(apply(kB, op::DeleteKey{"/k"}),
              (Replies{{kA, reply::Change{ChangeKind::kDeleted, "/k", "2", ""}}, {kB, reply::Integer{1}}}));
    EXPECT_EQ(apply(kB, op::Set{"/other", "1"}), Replies{});
    table_.connection_closed(kA);
    EXPECT_EQ(apply(kB, op::Set{"/k", "1"}), Replies{});
}

}  // namespace
}  // namespace ddl::core
