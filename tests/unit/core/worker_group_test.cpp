#include "core/worker_group.hpp"

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace ddl::core {
namespace {

using State = WorkerGroup::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- the table at the top of worker_group.hpp -------------------------------------------------------------------

struct Event {
    const char* name;
    std::function<void(WorkerGroup&)> happen;
};

const std::vector<Event>& events() {
    static const std::vector<Event> kEvents = {
        {"started",
         [](WorkerGroup& group) {
             group.started(0, 7);
         }},
        {"start failed",
         [](WorkerGroup& group) {
             group.start_failed(0);
         }},
        {"ended with 0",
         [](WorkerGroup& group) {
             group.ended(0, true, false);
         }},
        {"ended otherwise",
         [](WorkerGroup& group) {
             group.ended(0, false, false);
         }},
        {"ended with 0, stopped",
         [](WorkerGroup& group) {
             group.ended(0, true, true);
         }},
        {"ended otherwise, stopped",
         [](WorkerGroup& group) {
             group.ended(0, false, true);
         }},
    };
    return kEvents;
}

WorkerGroup in_state(State state) {
    WorkerGroup group(1);
    if (state == State::kNotStarted) {
        return group;
    }
    group.started(0, 42);
    if (state != State::kRunning) {
        group.ended(0, state == State::kSucceeded, state == State::kStopped);
    }
    return group;
}

struct Row {
    State before;
    std::vector<State> after;  // by event
};

TEST(WorkerGroup, FollowsItsTable) {
    using enum State;
    const Row kRows[] = {
        {kNotStarted, {kRunning, kFailed, kNotStarted, kNotStarted, kNotStarted, kNotStarted}},
        {kRunning, {kRunning, kRunning, kSucceeded, kFailed, kStopped, kStopped}},
        {kSucceeded, {kSucceeded, kSucceeded, kSucceeded, kSucceeded, kSucceeded, kSucceeded}},
        {kFailed, {kFailed, kFailed, kFailed, kFailed, kFailed, kFailed}},
        {kStopped, {kStopped, kStopped, kStopped, kStopped, kStopped, kStopped}},
    };
    for (const Row& row : kRows) {
        for (std::size_t i = 0; i < events().size(); ++i) {
            WorkerGroup group = in_state(row.before);
            ASSERT_EQ(group.state(0), row.before);
            events()[i].happen(group);
            EXPECT_EQ(group.state(0), row.after[i])
                << "state " << static_cast<int>(row.before) << ", " << events()[i].name;
        }
    }
}

TEST(WorkerGroup, AnswersWithTheStateThatHolds) {
    WorkerGroup group(1);
    EXPECT_EQ(group.ended(0, true, false), State::kNotStarted);
    group.started(0, 7);
    EXPECT_EQ(group.start_failed(0), State::kRunning);
    EXPECT_EQ(group.ended(0, false, false), State::kFailed);
    EXPECT_EQ(group.ended(0, true, true), State::kFailed);
}

TEST(WorkerGroup, KeepsTheFirstPid) {
    WorkerGroup group(2);
    EXPECT_EQ(group.pid(0), 0);
    group.started(0, 7);
    group.started(0, 8);
    EXPECT_EQ(group.pid(0), 7);
    group.ended(0, true, false);
    EXPECT_EQ(group.pid(0), 7);
    EXPECT_EQ(group.pid(1), 0);
}

// ---- questions --------------------------------------------------------------------------------------------------

TEST(WorkerGroup, NamesTheRunning) {
    WorkerGroup group(4);
    EXPECT_FALSE(group.any_running());
    for (const int rank : {0, 1, 3}) {
        group.started(rank, 10 + rank);
    }
    group.ended(1, true, false);
    EXPECT_THAT(group.running(), ElementsAre(0, 3));
    EXPECT_TRUE(group.any_running());
    group.ended(0, false, false);
    group.ended(3, false, true);
    EXPECT_THAT(group.running(), IsEmpty());
    EXPECT_FALSE(group.any_running());
}

TEST(WorkerGroup, SucceedsOnlyWhenAllDid) {
    WorkerGroup group(2);
    group.started(0, 1);
    group.started(1, 2);
    EXPECT_EQ(group.succeeded(), 0);
    group.ended(0, true, false);
    EXPECT_EQ(group.succeeded(), 1);
    EXPECT_FALSE(group.all_succeeded());
    group.ended(1, true, false);
    EXPECT_EQ(group.succeeded(), 2);
    EXPECT_TRUE(group.all_succeeded());
}

TEST(WorkerGroup, DoesNotCountAStoppedWorkerAsSuccess) {
    WorkerGroup group(1);
    group.started(0, 1);
    group.ended(0, true, true);
    EXPECT_FALSE(group.all_succeeded());
    EXPECT_EQ(group.succeeded(), 0);
}

TEST(WorkerGroup, IgnoresRanksOfOtherNodes) {
    WorkerGroup group(1);
    for (const int rank : {-1, 1, 1000}) {
        group.started(rank, 5);
        EXPECT_EQ(group.ended(rank, true, false), State::kNotStarted);
        EXPECT_EQ(group.start_failed(rank), State::kNotStarted);
        EXPECT_EQ(group.state(rank), State::kNotStarted);
        EXPECT_EQ(group.pid(rank), 0);
    }
    EXPECT_EQ(group.state(0), State::kNotStarted);
}

TEST(WorkerGroup, OfNoRoundHasNobody) {
    const WorkerGroup group;
    EXPECT_FALSE(group.any_running());
    EXPECT_THAT(group.running(), IsEmpty());
}

}  // namespace
}  // namespace ddl::core
