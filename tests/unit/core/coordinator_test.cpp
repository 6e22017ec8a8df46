// What the table of coordinator_table_test cannot show: contents of messages, sequences, deadlines, texts.

#include "core/coordinator.hpp"

#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "unit/core/coordinator_harness.hpp"

namespace ddl::core {
namespace {

using C = CoordinatorHarness;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

CoordinatorSettings for_nodes(int min, int max, int max_restarts = 3) {
    CoordinatorSettings settings = coordinator_settings();
    settings.terms.min_nodes = min;
    settings.terms.max_nodes = max;
    settings.terms.max_restarts = max_restarts;
    settings.restart_rules.max_restarts = max_restarts;
    return settings;
}

// ---- hello ------------------------------------------------------------------------------------------------------

TEST(Coordinator, WelcomesWithTheJobsId) {
    C coordinator;
    coordinator.gather();
    coordinator.arrive(1);
    wire::Hello hello = coordinator.hello(1);
    hello.terms.job_id = "";  // not typed: takes the job's
    EXPECT_EQ(coordinator.say(1, hello), "1:welcome, say");
    EXPECT_EQ(coordinator.sent<wire::Welcome>(1).job_id, "job");
}

struct Mismatch {
    void (*change)(wire::Hello&);
    const char* reason;
};

TEST(Coordinator, RefusesEachMismatchWithBothValues) {
    const Mismatch kCases[] = {
        {[](wire::Hello& h) { h.protocol = 2; },
         "the agent protocol is 2 on this node but 1 in the running job: run the same ddlaunch release on all nodes"},
        {[](wire::Hello& h) { h.terms.job_id = "x", h.terms.job_id_typed = true; },
         "--rdzv-id is x on this node but job in the running job"},
        {[](wire::Hello& h) { h.terms.min_nodes = 1; }, "--nnodes is 1:3 on this node but 2:3 in the running job"},
        {[](wire::Hello& h) { h.terms.max_nodes = 2; }, "--nnodes is 2 on this node but 2:3 in the running job"},
        {[](wire::Hello& h) { h.terms.max_restarts = 0; }, "--max-restarts is 0 on this node but 3 in the running job"},
        {[](wire::Hello& h) { h.terms.backend = "static"; },
         "--rdzv-backend is static on this node but c10d in the running job"},
        {[](wire::Hello& h) { h.terms.command_digest = "other"; },
         "the program or its arguments differ from those of the running job (digest other, job digest)"},
        {[](wire::Hello& h) { h.node.workers = 0; }, "--nproc-per-node is 0; possible are 1 to 4096"},
        {[](wire::Hello& h) { h.node.workers = 2'000'000'000; },
         "--nproc-per-node is 2000000000; possible are 1 to 4096"},
    };
    for (const Mismatch& mismatch : kCases) {
        C coordinator;
        coordinator.gather();
        coordinator.arrive(1);
        wire::Hello hello = coordinator.hello(1);
        mismatch.change(hello);
        EXPECT_EQ(coordinator.say(1, hello), "say, 1:refused, drop 1");
        EXPECT_EQ(coordinator.sent<wire::Refused>(1).reason, std::string("node n1: ") + mismatch.reason);
        EXPECT_THAT(coordinator.said(), HasSubstr("refused the agent at 10.0.0.2: node n1: "));
    }
}

TEST(Coordinator, AcceptsTheSameIdTyped) {
    C coordinator;
    coordinator.gather();
    coordinator.arrive(1);
    wire::Hello hello = coordinator.hello(1);
    hello.terms.job_id_typed = true;
    EXPECT_EQ(coordinator.say(1, hello), "1:welcome, say");
}

TEST(Coordinator, RefusesARankThatIsTakenButNotOneWhoseNodeIsLeaving) {
    C coordinator(for_nodes(3, 3));
    coordinator.gather();
    for (const int peer : {1, 2}) {
        coordinator.arrive(peer);
    }
    wire::Hello first = coordinator.hello(1);
    first.node.requested_rank = 1;
    wire::Hello second = coordinator.hello(2);
    second.node.requested_rank = 1;
    coordinator.say(1, first);
    coordinator.say(2, second);
    EXPECT_EQ(coordinator.sent<wire::Refused>(2).reason, "node n2: --node-rank 1 is taken by node n1");
    coordinator.say(1, wire::Leaving{SIGTERM});
    coordinator.arrive(2);
    EXPECT_EQ(coordinator.say(2, second), "2:welcome, say");
}

TEST(Coordinator, ReplacesTheSessionOfTheSameProcessOnly) {
    C coordinator(for_nodes(3, 3));
    coordinator.gather();
    coordinator.join(1);
    coordinator.arrive(5);
    EXPECT_EQ(coordinator.say(5, coordinator.hello(1)), "drop 1, say, 5:welcome, say");
    coordinator.arrive(6);
    wire::Hello other_process = coordinator.hello(1);
    other_process.node.incarnation = "another process of n1";
    EXPECT_EQ(coordinator.say(6, other_process), "6:welcome, say") << "two agents on one host are two nodes";
}

// ---- opening ----------------------------------------------------------------------------------------------------

TEST(Coordinator, FillsInAssignments) {
    C coordinator(for_nodes(2, 2));
    coordinator.join(0);
    coordinator.greet(1);
    coordinator.say(1, C::ready(1));
    const auto first = coordinator.sent<wire::Assignment>(0);
    EXPECT_EQ(first.generation, (Generation{0, 1}));
    EXPECT_EQ(first.master_addr, "h0");
    EXPECT_EQ(first.master_port, C::port(0));
    EXPECT_TRUE(first.serves_store);
    EXPECT_THAT(first.store_clients, ElementsAre("10.0.0.2"));
    const auto second = coordinator.sent<wire::Assignment>(1);
    EXPECT_EQ(second.group_rank, 1);
    EXPECT_EQ(second.master_addr, "h0");
    EXPECT_EQ(second.master_port, C::port(0));
    EXPECT_FALSE(second.serves_store);
    EXPECT_THAT(second.store_clients, IsEmpty());
}

TEST(Coordinator, ListsEveryAddressOfTheRoundsNodesOnce) {
    C coordinator(for_nodes(2, 2));
    coordinator.join(0);
    coordinator.arrive(1);
    wire::Hello hello = coordinator.hello(1);
    hello.node.addresses = {"fd00::2", "10.0.0.2", "192.168.0.9"};
    coordinator.say(1, hello);
    coordinator.say(1, C::ready(1));
    EXPECT_THAT(coordinator.sent<wire::Assignment>(0).store_clients, ElementsAre("10.0.0.2", "192.168.0.9", "fd00::2"));
}

TEST(Coordinator, KeepsTheAssignmentOfAHugeJobWithinOneMessage) {
    constexpr int kNodes = 2000;
    C coordinator(for_nodes(kNodes, kNodes));
    coordinator.join(0);
    for (int peer = 1; peer < kNodes; ++peer) {
        const std::string number = std::to_string(1000 + peer);
        coordinator.step(PeerArrived{C::id(peer), "fd00:1111:2222:3333:4444:5555:6666:" + number});
        wire::Hello hello = coordinator.hello(peer);
        hello.node.connection_address = "fd00:1111:2222:3333:4444:5555:6666:" + number;
        hello.node.addresses.assign(4, "fd01:1111:2222:3333:4444:5555:6666:" + number);
        hello.node.addresses[1] = "fd02:1111:2222:3333:4444:5555:6666:" + number;
        coordinator.say(peer, hello);
        coordinator.say(peer, C::ready(peer));
    }
    const auto assignment = coordinator.sent<wire::Assignment>(0);
    EXPECT_THAT(wire::encode(assignment), SizeIs(Le(wire::kMaxMessageBytes)));
    int connections = 0;
    for (const std::string& address : assignment.store_clients) {
        connections += address.starts_with("fd00") ? 1 : 0;
    }
    EXPECT_EQ(connections, kNodes - 1) << "the addresses that agents were seen at go first";
}

TEST(Coordinator, NumbersRoundsWithItsTerm) {
    CoordinatorSettings settings = for_nodes(1, 1);
    settings.term = 3;
    C coordinator(settings);
    coordinator.greet(0);
    coordinator.say(0, C::ready(0));
    EXPECT_EQ(coordinator.sent<wire::Assignment>(0).generation, (Generation{3, 1}));
}

TEST(Coordinator, WaitsForWhoIsHereButNotReadyInLaterRounds) {
    C coordinator;
    coordinator.gather_again();
    coordinator.greet(1);
    coordinator.greet(2);
    EXPECT_EQ(coordinator.say(1, C::ready(1)), "-") << "n2 is on its way";
    EXPECT_EQ(coordinator.say(2, C::ready(2)), "0:assignment 2, 1:assignment 2, 2:assignment 2");
}

TEST(Coordinator, DoesNotFailForOneThatNeverGetsReady) {
    C coordinator;
    coordinator.gather_again();
    coordinator.greet(1);
    coordinator.greet(2);
    coordinator.say(1, C::ready(1));
    coordinator.advance(seconds(60));
    EXPECT_THAT(coordinator.text(TimePassed{}), HasSubstr("0:assignment 2, 1:assignment 2"));
}

// ---- failures ---------------------------------------------------------------------------------------------------

TEST(Coordinator, SettlesOnlyWhenAllHaveReported) {
    C coordinator;
    coordinator.stop();
    EXPECT_EQ(coordinator.say(0, C::ready(0, 1)), "-");
    EXPECT_EQ(coordinator.say(1, C::ready(1, 1)), "0:notice, 1:notice, 0:assignment 2, 1:assignment 2");
    EXPECT_EQ(coordinator.sent<wire::Assignment>(1).restart_count, 1);
    EXPECT_EQ(coordinator.sent<wire::Notice>(1).text, "rank 0 on n0 (pid 0) exited with code 1; restart 1 of 3");
}

TEST(Coordinator, DropsWhatIsSaidOfAnOlderRound) {
    C coordinator;
    coordinator.stop();
    coordinator.say(0, C::ready(0, 1));
    coordinator.say(1, C::ready(1, 1));
    EXPECT_EQ(coordinator.say(1, C::failed(1, 1)), "-");
    EXPECT_EQ(coordinator.say(1, wire::Finished{{0, 1}}), "-");
    EXPECT_EQ(coordinator.say(0, wire::Finished{{0, 2}}), "-") << "n1 has not finished round 2";
    EXPECT_EQ(coordinator.say(1, C::ready(1, 1)), "-");
    EXPECT_EQ(coordinator.say(1, wire::Finished{{0, 2}}), "0:job_over 0, 1:job_over 0");
}

TEST(Coordinator, DropsDeathsOfARoundThatHasBeenSettled) {
    C coordinator(for_nodes(2, 2, 1));
    coordinator.join(0);
    coordinator.join(1);
    coordinator.gone(1);
    coordinator.say(0, C::ready(0, 1));
    coordinator.arrive(5);
    wire::Hello back = coordinator.hello(1);
    back.last = {0, 1};
    back.last_group_rank = 1;
    coordinator.say(5, back);
    wire::Ready late = C::ready(5, 1);
    late.deaths = {C::failed(1, 1, 99).death};
    EXPECT_EQ(coordinator.say(5, late), "0:assignment 2, 5:assignment 2");
    coordinator.say(0, C::failed(0, 2, 7));
    coordinator.say(0, C::ready(0, 2));
    coordinator.say(5, C::ready(5, 2));
    const auto over = coordinator.sent<wire::JobOver>(5);
    EXPECT_EQ(over.exit_code, 7);
    EXPECT_THAT(over.deaths, SizeIs(1));
}

TEST(Coordinator, NamesTheEarliestDeathWhateverArrivesFirst) {
    C coordinator(for_nodes(2, 2, 0));
    coordinator.join(0);
    coordinator.join(1);
    coordinator.advance(seconds(10));
    coordinator.say(0, C::failed(0, 1, 5));
    wire::Ready ready = C::ready(1, 1);
    ready.deaths = {C::failed(1, 1, 6).death};
    ready.deaths[0].age = milliseconds(40);
    coordinator.advance(milliseconds(30));
    coordinator.say(1, ready);
    coordinator.say(0, C::ready(0, 1));
    const auto over = coordinator.sent<wire::JobOver>(0);
    EXPECT_EQ(over.exit_code, 6);
    EXPECT_THAT(over.deaths, SizeIs(2));
    EXPECT_EQ(over.deaths[0].rank, 1);
    EXPECT_EQ(coordinator.sent<wire::JobOver>(1), over);
}

TEST(Coordinator, CountsADeathThatIsToldTwiceOnce) {
    C coordinator(for_nodes(1, 1, 0));
    coordinator.join(0);
    coordinator.say(0, C::failed(0, 1, 5));
    wire::Ready ready = C::ready(0, 1);
    ready.deaths = {C::failed(0, 1, 5).death};
    coordinator.say(0, ready);
    EXPECT_THAT(coordinator.sent<wire::JobOver>(0).deaths, SizeIs(1));
}

TEST(Coordinator, SurvivesAgesThatCannotBe) {
    for (const Duration age : {Duration::min(), Duration::max(), Duration(-1)}) {
        C coordinator(for_nodes(1, 1, 0));
        coordinator.join(0);
        wire::Failed failed = C::failed(0, 1, 5);
        failed.death.age = age;
        EXPECT_EQ(coordinator.say(0, failed), "0:stop failure");
        coordinator.say(0, C::ready(0, 1));
        EXPECT_EQ(coordinator.sent<wire::JobOver>(0).exit_code, 5);
    }
}

TEST(Coordinator, LosesAllNodesButItsOwn) {
    C coordinator(for_nodes(3, 3));
    for (const int peer : {0, 1, 2}) {
        coordinator.join(peer);
    }
    EXPECT_EQ(coordinator.gone(1), "0:stop failure, 2:stop failure");
    EXPECT_EQ(coordinator.gone(2), "-");
    EXPECT_EQ(coordinator.say(0, C::ready(0, 1)), "0:notice");
    coordinator.advance(seconds(59));
    EXPECT_THAT(coordinator.text(TimePassed{}), Not(HasSubstr("job_over")));
    coordinator.advance(seconds(1));
    EXPECT_EQ(coordinator.text(TimePassed{}), "0:job_over 65, ended");
}

// ---- leaving ----------------------------------------------------------------------------------------------------

TEST(Coordinator, WaitsForALeavingMembersWorkersBeforeTheNextRound) {
    C coordinator(for_nodes(1, 2));
    coordinator.join(0);
    coordinator.join(1);
    EXPECT_EQ(coordinator.say(1, wire::Leaving{SIGTERM}), "say, 0:stop membership");
    EXPECT_EQ(coordinator.say(0, C::ready(0, 1)), "-");
    EXPECT_EQ(coordinator.gone(1), "0:assignment 2");
    EXPECT_EQ(coordinator.sent<wire::Assignment>(0).restart_count, 0);
}

TEST(Coordinator, IgnoresReadyOfOneThatLeaves) {
    C coordinator(for_nodes(2, 3));
    coordinator.join(0);
    coordinator.greet(1);
    coordinator.say(1, wire::Leaving{SIGTERM});
    EXPECT_EQ(coordinator.say(1, C::ready(1)), "-");
    coordinator.advance(seconds(100));
    EXPECT_THAT(coordinator.text(TimePassed{}), Not(HasSubstr("assignment")));
}

// ---- growth -----------------------------------------------------------------------------------------------------

TEST(Coordinator, GrowsASecondAfterTheLastNewcomer) {
    C coordinator;
    coordinator.run();
    const Instant started = coordinator.now();
    coordinator.join(2);
    EXPECT_EQ(coordinator.next_deadline(), started + seconds(1));
    EXPECT_EQ(coordinator.time(), "0:stop membership, 1:stop membership");
    coordinator.say(0, C::ready(0, 1));
    EXPECT_EQ(coordinator.say(1, C::ready(1, 1)), "0:assignment 2, 1:assignment 2, 2:assignment 2");
    EXPECT_EQ(coordinator.sent<wire::Assignment>(2).restart_count, 0);
}

TEST(Coordinator, ForgivesDeathsWhileARoundIsChanged) {
    C coordinator(for_nodes(1, 2, 0));
    coordinator.join(0);
    coordinator.advance(seconds(30));
    coordinator.time();
    coordinator.join(1);
    coordinator.time();
    EXPECT_EQ(coordinator.say(0, C::failed(0, 1, 1)), "-");
    EXPECT_EQ(coordinator.say(0, C::ready(0, 1)), "0:assignment 2, 1:assignment 2");
}

TEST(Coordinator, DoesNotGrowBeyondMax) {
    C coordinator(for_nodes(1, 2));
    coordinator.join(0);
    coordinator.join(1);
    coordinator.greet(2);
    EXPECT_EQ(coordinator.say(2, C::ready(2)), "2:notice");
    EXPECT_EQ(coordinator.next_deadline(), std::nullopt);
}

// ---- a coordinator that was started again -----------------------------------------------------------------------

wire::Hello survivor(const C& coordinator, int peer, std::uint32_t round, int place, int restarts) {
    wire::Hello hello = coordinator.hello(peer);
    hello.last = {0, round};
    hello.last_group_rank = place;
    hello.restart_count = restarts;
    return hello;
}

TEST(Coordinator, GoesOnWithTheNumbersThatSurvivorsKnow) {
    C coordinator(for_nodes(3, 3));
    coordinator.join(0);
    for (const int peer : {1, 2}) {
        coordinator.arrive(peer);
        coordinator.say(peer, survivor(coordinator, peer, 6, peer == 1 ? 0 : 2, 1));
    }
    coordinator.say(1, C::ready(1, 6));
    EXPECT_EQ(coordinator.say(2, C::ready(2, 6)), "1:assignment 7, 0:assignment 7, 2:assignment 7");
    EXPECT_EQ(coordinator.sent<wire::Assignment>(0).restart_count, 2);
}

TEST(Coordinator, NumbersALaterRoundAboveALateSurvivorsLast) {
    C coordinator(for_nodes(1, 2));
    coordinator.join(0);
    coordinator.advance(seconds(30));
    EXPECT_EQ(coordinator.time(), "0:assignment 1");
    coordinator.arrive(1);
    coordinator.say(1, survivor(coordinator, 1, 6, 1, 1));
    coordinator.say(1, C::ready(1, 6));
    coordinator.time();
    EXPECT_EQ(coordinator.say(0, C::ready(0, 1)), "0:assignment 7, 1:assignment 7");
}

TEST(Coordinator, EndsAJobWhoseBudgetTheLostCoordinatorHasUsedUp) {
    C coordinator(for_nodes(2, 2, 1));
    coordinator.join(0);
    coordinator.arrive(1);
    EXPECT_EQ(coordinator.say(1, survivor(coordinator, 1, 6, 1, 1)), "0:job_over 65, 1:job_over 65");
    EXPECT_EQ(coordinator.sent<wire::JobOver>(1).why,
              "node n0 was lost (it had the coordinator); all 1 restarts are used up (1 of 1)");
}

TEST(Coordinator, IgnoresPlacesThatCannotBe) {
    C coordinator(for_nodes(2, 2));
    coordinator.join(0);
    for (const int place : {-7, 2, 2'000'000'000}) {
        coordinator.arrive(1);
        coordinator.say(1, survivor(coordinator, 1, 6, place, 0));
        coordinator.gone(1);
    }
    coordinator.join(1);
    EXPECT_EQ(coordinator.sent<wire::Assignment>(0).generation, (Generation{0, 7}));
}

// ---- the end ----------------------------------------------------------------------------------------------------

TEST(Coordinator, EndsWhenTheLastGuestHasLeft) {
    C coordinator(for_nodes(3, 3));
    for (const int peer : {0, 1, 2}) {
        coordinator.join(peer);
    }
    for (const int peer : {0, 1, 2}) {
        coordinator.say(peer, wire::Finished{{0, 1}});
    }
    EXPECT_EQ(coordinator.gone(2), "-");
    EXPECT_EQ(coordinator.gone(0), "-");
    EXPECT_EQ(coordinator.gone(1), "ended");
    EXPECT_EQ(coordinator.next_deadline(), std::nullopt);
}

TEST(Coordinator, EndsAtOnceWhenItIsAlone) {
    C coordinator(for_nodes(1, 1));
    coordinator.join(0);
    EXPECT_EQ(coordinator.say(0, wire::Finished{{0, 1}}), "0:job_over 0, ended");
    EXPECT_EQ(coordinator.gone(0), "-");
}

TEST(Coordinator, GivesUpOnGuestsThatDoNotLeave) {
    C coordinator;
    coordinator.be_over();
    const Instant over = coordinator.now();
    EXPECT_EQ(coordinator.next_deadline(), over + seconds(45));
    EXPECT_EQ(coordinator.time(), "say, drop 1, ended");
    EXPECT_EQ(coordinator.text(TimePassed{}), "-");
}

// ---- texts ------------------------------------------------------------------------------------------------------

TEST(Coordinator, ShowsNoMoreThanSixteenNames) {
    C coordinator(for_nodes(40, 40));
    for (int peer = 0; peer < 20; ++peer) {
        coordinator.join(peer);
    }
    coordinator.time();
    const std::string text = coordinator.sent<wire::Notice>(0).text;
    EXPECT_THAT(text, HasSubstr("20 of 40 nodes here: n0, n1 (10.0.0.2), "));
    EXPECT_THAT(text, HasSubstr(", n15 (10.0.0.16) and 4 more; missing 20; 590 s left"));
}

TEST(Coordinator, TellsHowLongItStillWaits) {
    C coordinator;
    coordinator.gather();
    coordinator.advance(milliseconds(10'001));
    coordinator.text(TimePassed{});
    EXPECT_EQ(coordinator.sent<wire::Notice>(0).text,
              "waiting for nodes at h0:29400: 1 of 2 to 3 nodes here: n0; missing 1; 590 s left");
}

}  // namespace
}  // namespace ddl::core
