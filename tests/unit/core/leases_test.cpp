// Leases from both ends: how an agent fences itself, whom a coordinator holds for lost, and for how long it may act.
#include <gmock/gmock.h>

#include "unit/core/agent_harness.hpp"
#include "unit/core/coordinator_harness.hpp"

namespace ddl::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

// ---- the agent --------------------------------------------------------------------------------------------------

class LeasedAgent : public AgentHarness {
public:
    LeasedAgent() : AgentHarness(settings()) {
    }

    static AgentSettings settings() {
        AgentSettings result = agent_settings();
        result.terms.lease = seconds(5);
        return result;
    }
    std::string lease(std::uint64_t number, Duration limit = seconds(4)) {
        return hear(wire::Lease{number, limit});
    }
    void run_with_lease() {
        wait();
        lease(1);
        wire::Assignment round = assignment(1);
        round.lease_beat = 2;
        round.lease_limit = seconds(4);
        hear(round);
        step(WorkerStarted{0, 100});
        step(WorkerStarted{1, 101});
        lease(2);
    }
};

TEST(AgentLease, BeatsTwiceAtOnceAndThenFiveTimesInALease) {
    LeasedAgent agent;
    agent.join();
    EXPECT_THAT(agent.hear(wire::Welcome{"job", 0, {}}), HasSubstr("beat 1"));
    agent.step(StorePrepared{40101});
    EXPECT_EQ(agent.lease(1), "beat 2") << "which tells the coordinator that the first lease has arrived";
    EXPECT_EQ(agent.lease(2), "-");
    const Instant answered = agent.now();
    EXPECT_EQ(agent.time(), "beat 3");
    EXPECT_EQ(agent.now() - answered, seconds(1));
    EXPECT_EQ(agent.lease(2), "-") << "an answer to an older beat";
}

TEST(AgentLease, KillsItsWorkersWhenNoLeaseIsLeft) {
    LeasedAgent agent;
    agent.run_with_lease();
    agent.advance(seconds(1));
    agent.step(AgentTime{});
    agent.advance(milliseconds(2900));
    EXPECT_THAT(agent.text(AgentTime{}), Not(HasSubstr("KILL")));
    agent.advance(milliseconds(100));
    EXPECT_EQ(agent.text(AgentTime{}), "say, drop session, say, KILL to 0+1") << "4 s after the beat was sent";
}

TEST(AgentLease, CountsFromTheBeatHoweverLateTheAnswer) {
    LeasedAgent agent;
    agent.run_with_lease();
    agent.advance(seconds(1));
    agent.step(AgentTime{});
    agent.advance(seconds(2));
    agent.lease(3);
    agent.advance(milliseconds(1500));
    EXPECT_THAT(agent.text(AgentTime{}), Not(HasSubstr("KILL"))) << "beat 3 was sent at 1 s";
    agent.advance(milliseconds(600));
    EXPECT_THAT(agent.text(AgentTime{}), HasSubstr("KILL to 0+1"));
}

TEST(AgentLease, ALeaseOfNothingKeepsTheSessionButNotTheWorkers) {
    LeasedAgent agent;
    agent.run_with_lease();
    for (std::uint64_t number = 3; number < 7; ++number) {
        agent.advance(seconds(1));
        EXPECT_THAT(agent.text(AgentTime{}), number < 6 ? HasSubstr("beat") : HasSubstr("KILL to 0+1"));
        agent.lease(number, seconds(0));
    }
}

TEST(AgentLease, DoesNotBeginARoundWhoseAssignmentIsTooOld) {
    LeasedAgent agent;
    agent.wait();
    agent.lease(1);
    agent.advance(milliseconds(4500));
    wire::Assignment round = LeasedAgent::assignment(1);
    round.lease_beat = 2;
    round.lease_limit = seconds(4);
    EXPECT_EQ(agent.hear(round), "drop session, say, close");
}

TEST(AgentLease, ALostSessionLeavesTheWorkersNoGrace) {
    LeasedAgent agent;
    agent.run_with_lease();
    EXPECT_EQ(agent.text(SessionDown{"reset"}), "say, KILL to 0+1");
}

TEST(AgentLease, TheCoordinatorInThisProcessMayTakeALeaseBack) {
    LeasedAgent agent;
    agent.step(SessionUp{"", true});
    agent.hear(wire::Welcome{"job", 0, {}});
    agent.step(StorePrepared{40101});
    agent.lease(1, std::chrono::hours(1));
    wire::Assignment round = LeasedAgent::assignment(1);
    round.lease_beat = 2;
    round.lease_limit = std::chrono::hours(1);
    agent.hear(round);
    agent.step(WorkerStarted{0, 100});
    agent.lease(2, seconds(1));
    agent.advance(seconds(1));
    EXPECT_THAT(agent.text(AgentTime{}), HasSubstr("KILL to 0")) << "and it stays in its session";
    EXPECT_EQ(agent.text(AgentHarness::ended(0, 9, true)).find("drop session"), std::string::npos);
}

TEST(AgentLease, LooksElsewhereWhenNobodyWelcomesIt) {
    LeasedAgent agent;
    agent.join();
    agent.advance(seconds(5));
    EXPECT_EQ(agent.text(AgentTime{}), "say, drop session") << "the notice of a seeking agent, and another try";
}

// ---- the coordinator --------------------------------------------------------------------------------------------

using C = CoordinatorHarness;

CoordinatorSettings leased(bool takeover = false) {
    CoordinatorSettings settings = coordinator_settings();
    settings.terms.lease = seconds(5);
    settings.terms.takeover = takeover;
    settings.self = {"n0", "process of n0", "10.0.0.1", 29400};
    return settings;
}

TEST(CoordinatorLease, GrantsFourFifths) {
    C coordinator(leased());
    coordinator.join(0);
    coordinator.join(1);
    EXPECT_EQ(coordinator.say(1, wire::Beat{1}), "1:lease 1 for 4s");
}

TEST(CoordinatorLease, ASilentNodeIsLostAfterTheLeaseTimeout) {
    C coordinator(leased());
    coordinator.run();
    coordinator.say(1, wire::Beat{1});
    const Instant heard = coordinator.now();
    std::string text;
    while (text.find("drop 1") == std::string::npos && coordinator.now() < heard + seconds(10)) {
        text = coordinator.time();
    }
    EXPECT_THAT(text, HasSubstr("drop 1"));
    EXPECT_GE(coordinator.now(), heard + seconds(5));
    EXPECT_LE(coordinator.now(), heard + milliseconds(5500));
}

TEST(CoordinatorLease, ItsOwnAbsenceIsNobodysSilence) {
    C coordinator(leased());
    coordinator.run();
    coordinator.say(1, wire::Beat{1});
    coordinator.advance(seconds(60));
    EXPECT_THAT(coordinator.text(TimePassed{}), Not(HasSubstr("drop 1")));
}

// Three nodes of which n0 coordinates, and agree on rounds.
class VotingCoordinator : public C {
public:
    VotingCoordinator() : C(leased(true)) {
        for (const int peer : {0, 1, 2}) {
            arrive(peer);
            wire::Hello greeting = hello(peer);
            greeting.node.hub_port = 1;
            say(peer, greeting);
            say(peer, ready(peer));
        }
    }
};

TEST(CoordinatorQuorum, TellsEachMemberWhoVotes) {
    const VotingCoordinator coordinator;
    const wire::RoundConfig config = coordinator.sent<wire::Assignment>(1).config;
    ASSERT_EQ(config.voters.size(), 3U);
    EXPECT_EQ(config.voters[0].name, "n0") << "the coordinator first";
    EXPECT_EQ(config.voters[2].address, "10.0.0.3");
    EXPECT_EQ(config.nodes, 3);
}

TEST(CoordinatorQuorum, ProposesARoundBeforeItOpensIt) {
    VotingCoordinator coordinator;
    coordinator.say(1, C::failed(2, 1));
    for (const int peer : {0, 1}) {
        coordinator.say(peer, C::ready(peer, 1));
    }
    EXPECT_THAT(coordinator.say(2, C::ready(2, 1)), HasSubstr("1:propose 2, 2:propose 2"));
    EXPECT_THAT(coordinator.say(2, wire::Accepted{{0, 2}, true, 0}), HasSubstr("0:assignment 2"))
        << "itself and one other are half of three";
}

TEST(CoordinatorQuorum, EndsWhenAVoterFollowsALaterTerm) {
    VotingCoordinator coordinator;
    EXPECT_THAT(coordinator.say(1, wire::Accepted{{0, 2}, false, 4}), HasSubstr("term lost"));
}

TEST(CoordinatorQuorum, AVoterThatRefusesIsDropped) {
    VotingCoordinator coordinator;
    coordinator.say(1, C::failed(2, 1));
    for (const int peer : {0, 1, 2}) {
        coordinator.say(peer, C::ready(peer, 1));
    }
    EXPECT_THAT(coordinator.say(2, wire::Accepted{{0, 2}, false, 0}), HasSubstr("drop 2"));
}

TEST(CoordinatorQuorum, GrantsNothingWithoutVoters) {
    VotingCoordinator coordinator;
    coordinator.gone(1);
    coordinator.gone(2);
    EXPECT_EQ(coordinator.say(0, wire::Beat{1}), "0:lease 1 for 0s");
}

TEST(CoordinatorQuorum, HandsOverOnceNothingRunsAnyMore) {
    VotingCoordinator coordinator;
    EXPECT_THAT(coordinator.say(0, wire::Leaving{SIGTERM}), HasSubstr("1:stop membership, 2:stop membership"));
    coordinator.say(1, C::ready(1, 1));
    coordinator.say(2, C::ready(2, 1));
    const std::string text = coordinator.gone(0);
    EXPECT_THAT(text, HasSubstr("1:retire for n1, drop 1, 2:retire for n1, drop 2, handed over"));
}

TEST(CoordinatorQuorum, GrowsAtACheckpointWhenToldTo) {
    CoordinatorSettings settings = leased();
    settings.scale_up = plan::ScaleUp::kAtCheckpoint;
    settings.scale_up_deadline = seconds(600);
    C coordinator(settings);
    coordinator.run();
    coordinator.join(2);
    EXPECT_THAT(coordinator.sent<wire::Notice>(2).text, HasSubstr("600 s at the latest"));
    coordinator.say(1, wire::CheckpointDone{{0, 1}});
    EXPECT_THAT(coordinator.text(TimePassed{}), HasSubstr("0:stop membership, 1:stop membership"));
}

TEST(CoordinatorQuorum, NeverGrowsWhenToldSo) {
    CoordinatorSettings settings = leased();
    settings.scale_up = plan::ScaleUp::kNever;
    C coordinator(settings);
    coordinator.run();
    coordinator.join(2);
    coordinator.advance(seconds(1));
    EXPECT_THAT(coordinator.text(TimePassed{}), Not(HasSubstr("stop")));
}

}  // namespace
}  // namespace ddl::core
