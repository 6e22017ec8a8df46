// What the table of agent_table_test cannot show: contents of messages, sequences, deadlines, texts.

#include "core/agent.hpp"

#include <csignal>

#include <gmock/gmock.h>

#include "unit/core/agent_harness.hpp"

namespace ddl::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// ---- hello and ready --------------------------------------------------------------------------------------------

TEST(Agent, IntroducesItselfAsANewcomer) {
    AgentHarness agent;
    agent.join();
    const auto hello = agent.last_message<wire::Hello>();
    EXPECT_EQ(hello.protocol, wire::kProtocolVersion);
    EXPECT_EQ(hello.terms, agent_settings().terms);
    EXPECT_EQ(hello.node.name, "n1");
    EXPECT_EQ(hello.node.connection_address, "10.0.0.2");
    EXPECT_EQ(hello.last, (Generation{0, 0}));
    EXPECT_EQ(hello.last_group_rank, -1);
    EXPECT_EQ(hello.restart_count, 0);
}

TEST(Agent, TellsAReturnedCoordinatorWhatItKnows) {
    AgentHarness agent;
    agent.seek_again();
    agent.step(SessionUp{"10.0.0.9"});
    const auto hello = agent.last_message<wire::Hello>();
    EXPECT_EQ(hello.last, (Generation{0, 1}));
    EXPECT_EQ(hello.last_group_rank, 1);
    EXPECT_EQ(hello.restart_count, 0) << "the loss is for the coordinator to count";
    EXPECT_EQ(hello.node.connection_address, "10.0.0.9");
}

TEST(Agent, CountsNoRestartForARoundThatWasOnlyChanged) {
    AgentHarness agent;
    agent.run();
    agent.hear(wire::Stop{{0, 1}, wire::StopReason::kMembership, "growth"});
    agent.step(SessionDown{"reset"});
    agent.step(AgentHarness::ended(0, 0, true));
    agent.step(AgentHarness::ended(1, 0, true));
    agent.step(Swept{0, true, ""});
    agent.step(SessionUp{"10.0.0.2"});
    EXPECT_EQ(agent.last_message<wire::Hello>().restart_count, 0);
}

TEST(Agent, IsReadyWithItsStorePort) {
    AgentHarness agent;
    agent.wait();
    const auto ready = agent.last_message<wire::Ready>();
    EXPECT_EQ(ready.ended, (Generation{0, 0}));
    EXPECT_EQ(ready.store_port, 40101);
    EXPECT_THAT(ready.deaths, SizeIs(0));
}

TEST(Agent, DatesItsDeathsInReady) {
    AgentHarness agent;
    agent.run();
    agent.step(AgentHarness::ended(0, 5));
    agent.advance(milliseconds(300));
    agent.hear(wire::Stop{{0, 1}, wire::StopReason::kFailure, "rank 2 died"});
    agent.advance(milliseconds(200));
    agent.step(AgentHarness::ended(1, 6));  // by itself: the launcher's signal had not reached it
    agent.step(Swept{0, true, ""});
    agent.advance(milliseconds(100));
    agent.step(StorePrepared{40102});
    const auto ready = agent.last_message<wire::Ready>();
    ASSERT_THAT(ready.deaths, SizeIs(2));
    EXPECT_EQ(ready.ended, (Generation{0, 1}));
    EXPECT_EQ(ready.deaths[0].rank, 2);
    EXPECT_EQ(ready.deaths[0].age, milliseconds(600));
    EXPECT_EQ(ready.deaths[1].rank, 3);
    EXPECT_EQ(ready.deaths[1].age, milliseconds(100));
}

TEST(Agent, ForgetsTheDeathsOfARoundThatIsOver) {
    AgentHarness agent;
    agent.run();
    agent.step(AgentHarness::ended(0, 5));
    agent.hear(wire::Stop{{0, 1}, wire::StopReason::kFailure, ""});
    agent.step(AgentHarness::ended(1, 0, true));
    agent.step(Swept{0, true, ""});
    agent.step(StorePrepared{40102});
    agent.hear(AgentHarness::assignment(2));
    agent.step(WorkerStarted{0, 200});
    agent.step(WorkerStarted{1, 201});
    agent.hear(wire::Stop{{0, 2}, wire::StopReason::kMembership, ""});
    agent.step(AgentHarness::ended(0, 0, true));
    agent.step(AgentHarness::ended(1, 0, true));
    agent.step(Swept{0, true, ""});
    agent.step(StorePrepared{40103});
    EXPECT_THAT(agent.last_message<wire::Ready>().deaths, SizeIs(0));
}

// ---- workers ----------------------------------------------------------------------------------------------------

TEST(Agent, StartsWorkersWithTheCoordinatorsJobId) {
    AgentHarness agent;
    agent.wait();
    agent.hear(AgentHarness::assignment(1));
    const auto start = agent.last<StartWorkers>();
    EXPECT_EQ(start.job_id, "job");
    EXPECT_EQ(start.assignment, AgentHarness::assignment(1));
}

TEST(Agent, TellsAllOfADeath) {
    AgentHarness agent;
    agent.run();
    WorkerEnded ended = AgentHarness::ended(1, SIGKILL);
    ended.signalled = true;
    ended.message = "from the error file";
    ended.stderr_tail = {"a", "b"};
    ended.error_file = "error.json";
    agent.step(ended);
    const auto failed = agent.last_message<wire::Failed>();
    EXPECT_EQ(failed.generation, (Generation{0, 1}));
    EXPECT_EQ(failed.death.kind, wire::DeathKind::kSignalled);
    EXPECT_EQ(failed.death.rank, 3);
    EXPECT_EQ(failed.death.local_rank, 1);
    EXPECT_EQ(failed.death.node, "n1");
    EXPECT_EQ(failed.death.pid, 101);
    EXPECT_EQ(failed.death.status, SIGKILL);
    EXPECT_EQ(failed.death.message, "from the error file");
    EXPECT_EQ(failed.death.error_file, "error.json");
    EXPECT_THAT(failed.death.stderr_tail, ElementsAre("a", "b"));
}

TEST(Agent, TellsOfAFailedStart) {
    AgentHarness agent;
    agent.begin();
    agent.step(StartFailed{1, "exec ./train: No such file or directory", 2});
    const auto failed = agent.last_message<wire::Failed>();
    EXPECT_EQ(failed.death.kind, wire::DeathKind::kStartFailed);
    EXPECT_EQ(failed.death.rank, 3);
    EXPECT_EQ(failed.death.status, 2);
    EXPECT_EQ(failed.death.message, "exec ./train: No such file or directory");
}

TEST(Agent, TellsOfADeathOnce) {
    AgentHarness agent;
    agent.run();
    EXPECT_EQ(agent.text(AgentHarness::ended(0, 1)), "failed 2");
    EXPECT_EQ(agent.text(AgentHarness::ended(0, 1)), "-");
    EXPECT_EQ(agent.text(AgentHarness::ended(7, 1)), "-");
    EXPECT_EQ(agent.text(AgentHarness::ended(-1, 1)), "-");
}

TEST(Agent, TellsTheFirstExitAndTheLast) {
    AgentHarness agent;
    agent.run();
    EXPECT_EQ(agent.text(AgentHarness::ended(0, 0)), "first_exit");
    EXPECT_EQ(agent.text(AgentHarness::ended(1, 0)), "finished");
}

TEST(Agent, DoesNotFinishWhenOneHasFailed) {
    AgentHarness agent;
    agent.run();
    EXPECT_EQ(agent.text(AgentHarness::ended(0, 1)), "failed 2");
    EXPECT_EQ(agent.text(AgentHarness::ended(1, 0)), "first_exit");
}

TEST(Agent, EndsAWorkerThatCameUpAfterTheEndWasDecided) {
    AgentHarness agent;
    agent.begin();
    agent.step(WorkerStarted{0, 100});
    EXPECT_EQ(agent.text(SignalCame{SIGTERM}), "leaving 15, say, TERM to 0");
    EXPECT_EQ(agent.text(WorkerStarted{1, 101}), "TERM to 1");
    EXPECT_EQ(agent.text(AgentHarness::ended(0, 0, true)), "-");
    EXPECT_EQ(agent.text(AgentHarness::ended(1, 0, true)), "sweep KILL");
}

TEST(Agent, EndsAWorkerThatCameUpWhileFamiliesWereSwept) {
    AgentHarness agent;
    agent.begin();
    EXPECT_EQ(agent.text(SignalCame{SIGTERM}), "leaving 15, say, sweep KILL");
    EXPECT_EQ(agent.text(WorkerStarted{0, 100}), "KILL to 0");
    EXPECT_EQ(agent.text(Swept{0, true, ""}), "-");
    EXPECT_EQ(agent.text(AgentHarness::ended(0, 9, true)), "sweep KILL");
    EXPECT_EQ(agent.text(Swept{0, true, ""}), "report, finish 66");
}

// ---- graces -----------------------------------------------------------------------------------------------------

TEST(Agent, HasTheShortGraceAfterAFailureAndTheLongOneOtherwise) {
    for (const auto reason : {wire::StopReason::kFailure, wire::StopReason::kMembership}) {
        AgentHarness agent;
        agent.run();
        agent.hear(wire::Stop{{0, 1}, reason, ""});
        const Duration grace = reason == wire::StopReason::kFailure ? seconds(2) : seconds(30);
        EXPECT_EQ(agent.next_deadline(), Instant(grace));
        agent.advance(grace - milliseconds(1));
        EXPECT_EQ(agent.text(AgentTime{}), "-");
        agent.advance(milliseconds(1));
        EXPECT_EQ(agent.text(AgentTime{}), "KILL to 0+1");
    }
}

TEST(Agent, KillsOnlyWhoStillRuns) {
    AgentHarness agent;
    agent.stop();
    agent.step(AgentHarness::ended(0, 0, true));
    EXPECT_EQ(agent.time(), "KILL to 1");
}

TEST(Agent, GivesUpTenSecondsAfterTheKill) {
    AgentHarness agent;
    agent.stop();
    agent.time();
    EXPECT_EQ(agent.next_deadline(), Instant(seconds(12)));
    EXPECT_EQ(agent.time(), "report, finish 68");
    EXPECT_THAT(agent.last<Report>().over.why, HasSubstr("rank 2 (pid 100) does not end although it was killed"));
    EXPECT_EQ(agent.last<Report>().over.origin, wire::ExitOrigin::kLauncher);
}

TEST(Agent, PassesTheSignalOn) {
    AgentHarness agent;
    agent.run();
    EXPECT_EQ(agent.text(SignalCame{SIGINT}), "leaving 2, say, INT to 0+1");
    EXPECT_THAT(agent.last<Say>().text, HasSubstr("SIGINT: ending 2 workers, 30 s grace"));
}

TEST(Agent, ThirdSignalChangesNothing) {
    AgentHarness agent;
    agent.leave();
    EXPECT_EQ(agent.text(SignalCame{SIGTERM}), "KILL to 0+1");
    EXPECT_EQ(agent.text(SignalCame{SIGTERM}), "-");
}

TEST(Agent, ExitsWithTheJobsCodeRatherThanItsOwn) {
    AgentHarness agent;
    agent.leave();
    EXPECT_EQ(agent.hear(wire::JobOver{137, wire::ExitOrigin::kWorker, "rank 0 was killed", {}, 2}), "-");
    agent.step(AgentHarness::ended(0, 0, true));
    agent.step(AgentHarness::ended(1, 0, true));
    EXPECT_EQ(agent.text(Swept{0, true, ""}), "report, finish 137");
    EXPECT_EQ(agent.last<Report>().over.why, "rank 0 was killed");
}

// ---- sweeps -----------------------------------------------------------------------------------------------------

TEST(Agent, NeedsTwoLooksThatFoundNothing) {
    AgentHarness agent;
    agent.sweep();
    EXPECT_EQ(agent.text(Swept{0, false, ""}), "-");
    EXPECT_EQ(agent.time(), "sweep KILL");
    EXPECT_EQ(agent.text(Swept{1, false, "late"}), "-");
    EXPECT_EQ(agent.time(), "sweep KILL");
    EXPECT_EQ(agent.text(Swept{0, false, ""}), "-");
    EXPECT_EQ(agent.time(), "sweep KILL");
    EXPECT_EQ(agent.text(Swept{0, false, ""}), "close, prepare");
}

TEST(Agent, SweepsLessAndLessOften) {
    AgentHarness agent;
    agent.sweep();
    Duration pause{};
    for (int i = 0; i < 10; ++i) {
        agent.step(Swept{1, false, "helper (pid 9)"});
        pause = *agent.next_deadline() - agent.now();
        EXPECT_EQ(pause, std::min<Duration>(milliseconds(2) * (1 << i), milliseconds(100)));
        agent.time();
    }
}

TEST(Agent, ForwardsASignalThatStopsNothing) {
    AgentSettings settings = agent_settings();
    settings.forward_signals = {SIGUSR1};
    AgentHarness agent(settings);
    EXPECT_EQ(agent.text(SignalCame{SIGUSR1}), "-") << "nobody is there to hear it";
    agent.run();
    EXPECT_EQ(agent.text(SignalCame{SIGUSR1}), "USR1 to 0+1");
    EXPECT_TRUE(agent.last<SignalWorkers>().forwarded);
    EXPECT_THAT(agent.text(AgentHarness::ended(0, 1)), HasSubstr("failed")) << "its death is its own";
    EXPECT_THAT(agent.text(SignalCame{SIGTERM}), HasSubstr("TERM to 1")) << "the first that stops is polite";
}

TEST(Agent, NamesAFamilyMemberThatDoesNotEnd) {
    AgentHarness agent;
    agent.sweep();
    agent.step(Swept{1, false, "helper (pid 9) in nfs_wait"});
    agent.advance(milliseconds(10500));
    EXPECT_THAT(agent.text(AgentTime{}), HasSubstr("report, finish 68"));
    EXPECT_THAT(agent.last<Report>().over.why, HasSubstr("helper (pid 9) in nfs_wait does not end"));
}

TEST(Agent, LooksOnceMoreWhenItWasStoppedItself) {
    AgentHarness agent;
    agent.sweep();
    agent.step(Swept{1, false, "helper (pid 9)"});
    agent.advance(seconds(60));
    EXPECT_EQ(agent.text(AgentTime{}), "sweep KILL") << "what ended meanwhile has not been heard of yet";
    EXPECT_EQ(agent.text(Swept{0, true, ""}), "close, prepare");
}

TEST(Agent, SweepsOnceWhenNothingRanSince) {
    AgentHarness agent;
    agent.wait_again();
    EXPECT_EQ(agent.hear(wire::JobOver{1, wire::ExitOrigin::kWorker, "", {}, 1}), "report, finish 1");
}

// ---- seeking ----------------------------------------------------------------------------------------------------

TEST(Agent, WaitsForTheCoordinatorUntilTheJoinTimeout) {
    AgentHarness agent;
    agent.step(SessionRetry{"connection refused"});
    int notices = 0;
    while (agent.next_deadline() && *agent.next_deadline() < Instant(seconds(600))) {
        ASSERT_EQ(agent.time(), "say");
        ++notices;
    }
    EXPECT_EQ(notices, 60);
    EXPECT_EQ(agent.time(), "report, finish 64");
    EXPECT_EQ(agent.now(), Instant(seconds(600)));
    EXPECT_EQ(agent.last<Report>().over.why, "no coordinator at h0:29400 within 600 s: connection refused");
}

TEST(Agent, WaitsForALostCoordinatorUntilTheRejoinTimeout) {
    AgentHarness agent;
    agent.seek_again();
    agent.advance(seconds(60));
    EXPECT_EQ(agent.text(AgentTime{}), "report, finish 65");
    EXPECT_EQ(agent.last<Report>().over.why, "no coordinator at h0:29400 within 60 s: no answer");
}

TEST(Agent, WaitsForNoLongerThanTheJoinTimeoutIfItIsConnectedButNotWelcomed) {
    AgentHarness agent;
    const auto limit = agent_settings().join_timeout;
    agent.advance(limit / 2);
    agent.join();
    EXPECT_EQ(agent.text(AgentTime{}), "say");
    EXPECT_THAT(agent.last<Say>().text, HasSubstr("connected, but no answer"));
    agent.step(SessionDown{"reset"});
    agent.join();
    agent.advance(limit / 2);
    EXPECT_EQ(agent.text(AgentTime{}), "report, finish 64") << "a new session is no new limit";
    EXPECT_THAT(agent.last<Report>().over.why, HasSubstr("connected, but no answer"));
}

TEST(Agent, ThatHostsDoesNotWaitForItself) {
    AgentSettings settings = agent_settings();
    settings.hosts = true;
    AgentHarness agent(settings);
    EXPECT_EQ(agent.next_deadline(), std::nullopt);
}

TEST(Agent, SaysHelloWhenWorkersHaveEndedThoughTheLinkIsBackBefore) {
    AgentHarness agent;
    agent.run();
    agent.step(SessionDown{"reset"});
    EXPECT_EQ(agent.text(SessionUp{"10.0.0.2"}), "-");
    agent.step(AgentHarness::ended(0, 0, true));
    agent.step(AgentHarness::ended(1, 0, true));
    EXPECT_EQ(agent.text(Swept{0, true, ""}), "close, hello");
}

TEST(Agent, HasNoDeadlineWhereItOnlyWaits) {
    AgentHarness agent;
    agent.wait();
    EXPECT_EQ(agent.next_deadline(), std::nullopt);
    AgentHarness running;
    running.run();
    EXPECT_EQ(running.next_deadline(), std::nullopt);
    AgentHarness over;
    over.be_over();
    EXPECT_EQ(over.next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace ddl::core
