// The state x event table at the top of core/agent.hpp, pair by pair. A pair that a state doesn't list has no effect.

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "unit/core/agent_harness.hpp"

namespace ddl::core {
namespace {

using Happen = std::function<std::string(AgentHarness&)>;
using wire::StopReason;

const std::vector<std::pair<std::string, Happen>>& events() {
    const auto event = [](AgentEvent what) -> Happen {
        return [what](AgentHarness& agent) {
            return agent.text(what);
        };
    };
    const auto message = [](wire::Message what) -> Happen {
        return [what](AgentHarness& agent) {
            return agent.hear(what);
        };
    };
    static const std::vector<std::pair<std::string, Happen>> kEvents = {
        {"up", event(SessionUp{"10.0.0.2"})},
        {"down", event(SessionDown{"reset"})},
        {"retry", event(SessionRetry{"refused"})},
        {"welcome", message(wire::Welcome{"job", 0})},
        {"refused", message(wire::Refused{"no"})},
        {"notice", message(wire::Notice{"hear"})},
        {"assignment", message(AgentHarness::assignment(2))},
        {"old assignment", message(AgentHarness::assignment(0))},
        {"stop", message(wire::Stop{{0, 1}, StopReason::kFailure, "why"})},
        {"stop for growth", message(wire::Stop{{0, 1}, StopReason::kMembership, "why"})},
        {"old stop", message(wire::Stop{{0, 0}, StopReason::kFailure, "why"})},
        {"job over", message(wire::JobOver{7, wire::ExitOrigin::kWorker, "why", {}, 0})},
        {"agents' message", message(wire::Finished{{0, 1}})},
        {"port", event(StorePrepared{40105})},
        {"started", event(WorkerStarted{0, 500})},
        {"start failed", event(StartFailed{0, "exec", 2})},
        {"exit 0", event(AgentHarness::ended(0, 0))},
        {"exit 1", event(AgentHarness::ended(0, 1))},
        {"stopped", event(AgentHarness::ended(0, 0, true))},
        {"swept clean", event(Swept{0, true, ""})},
        {"swept nothing", event(Swept{0, false, ""})},
        {"swept some", event(Swept{1, false, "x"})},
        {"system failed", event(SystemFailed{"no memory"})},
        {"signal", event(SignalCame{SIGTERM})},
        {"time",
         [](AgentHarness& agent) {
             return agent.time();
         }},
    };
    return kEvents;
}

struct State {
    const char* name;
    std::function<void(AgentHarness&)> reach;
    std::map<std::string, std::string> effects;  // by event
};

const std::vector<State>& states() {
    static const std::vector<State> kStates = {
        {"seeking",
         [](AgentHarness&) {},
         {{"up", "hello"},
          {"refused", "report, finish 2"},
          {"notice", "say"},
          {"job over", "report, finish 7"},
          {"agents' message", "report, finish 68"},
          {"system failed", "report, finish 68"},
          {"signal", "say, report, finish 143"},
          {"time", "say"}}},
        {"joining",
         [](AgentHarness& a) { a.join(); },
         {{"down", "say, close"},
          {"welcome", "prepare"},
          {"refused", "report, finish 2"},
          {"notice", "say"},
          {"job over", "report, finish 7"},
          {"agents' message", "report, finish 68"},
          {"system failed", "report, finish 68"},
          {"signal", "leaving 15, say, report, finish 143"},
          {"time", "say"}}},
        {"preparing",
         [](AgentHarness& a) { a.welcome(); },
         {{"down", "say, close"},
          {"refused", "report, finish 2"},
          {"notice", "say"},
          {"job over", "report, finish 7"},
          {"agents' message", "report, finish 68"},
          {"port", "ready 0"},
          {"system failed", "report, finish 68"},
          {"signal", "leaving 15, say, report, finish 143"}}},
        {"waiting",
         [](AgentHarness& a) { a.wait(); },
         {{"down", "say, close"},
          {"refused", "report, finish 2"},
          {"notice", "say"},
          {"assignment", "start 2"},
          {"job over", "report, finish 7"},
          {"agents' message", "report, finish 68"},
          {"system failed", "report, finish 68"},
          {"signal", "leaving 15, say, report, finish 143"}}},
        {"starting",
         [](AgentHarness& a) { a.begin(); },
         {{"down", "say, sweep KILL"},
          {"refused", "sweep KILL"},
          {"notice", "say"},
          {"stop", "say, sweep KILL"},
          {"stop for growth", "say, sweep KILL"},
          {"job over", "sweep KILL"},
          {"agents' message", "sweep KILL"},
          {"start failed", "failed 2"},
          {"system failed", "sweep KILL"},
          {"signal", "leaving 15, say, sweep KILL"}}},
        {"running",
         [](AgentHarness& a) { a.run(); },
         {{"down", "say, TERM to 0+1"},
          {"refused", "TERM to 0+1"},
          {"notice", "say"},
          {"stop", "say, TERM to 0+1"},
          {"stop for growth", "say, TERM to 0+1"},
          {"job over", "TERM to 0+1"},
          {"agents' message", "TERM to 0+1"},
          {"exit 0", "first_exit"},
          {"exit 1", "failed 2"},
          {"system failed", "TERM to 0+1"},
          {"signal", "leaving 15, say, TERM to 0+1"}}},
        {"finished",
         [](AgentHarness& a) { a.finish_workers(); },
         {{"down", "say, sweep KILL"},
          {"refused", "sweep TERM"},
          {"notice", "say"},
          {"stop", "say, sweep KILL"},
          {"stop for growth", "say, sweep KILL"},
          {"job over", "sweep TERM"},
          {"agents' message", "sweep TERM"},
          {"system failed", "sweep TERM"},
          {"signal", "leaving 15, say, sweep TERM"},
          {"time", "say"}}},
        {"ending",
         [](AgentHarness& a) { a.stop(); },
         {{"down", "say"},
          {"notice", "say"},
          {"started", "TERM to 0"},
          {"signal", "leaving 15, say"},
          {"time", "KILL to 0+1"}}},
        {"sweeping",
         [](AgentHarness& a) { a.sweep(); },
         {{"down", "say"},
          {"notice", "say"},
          {"swept clean", "close, prepare"},
          {"signal", "leaving 15, say"},
          {"time", "report, finish 68"}}},
        {"waiting again",
         [](AgentHarness& a) { a.wait_again(); },
         {{"down", "say, close"},
          {"refused", "report, finish 2"},
          {"notice", "say"},
          {"assignment", "start 2"},
          {"job over", "report, finish 7"},
          {"agents' message", "report, finish 68"},
          {"system failed", "report, finish 68"},
          {"signal", "leaving 15, say, report, finish 66"}}},
        {"seeking again",
         [](AgentHarness& a) { a.seek_again(); },
         {{"up", "hello"},
          {"refused", "report, finish 2"},
          {"notice", "say"},
          {"job over", "report, finish 7"},
          {"agents' message", "report, finish 68"},
          {"system failed", "report, finish 68"},
          {"signal", "say, report, finish 66"},
          {"time", "say"}}},
        {"leaving",
         [](AgentHarness& a) { a.leave(); },
         {{"notice", "say"}, {"started", "TERM to 0"}, {"signal", "KILL to 0+1"}, {"time", "KILL to 0+1"}}},
        {"over", [](AgentHarness& a) { a.be_over(); }, {}},
    };
    return kStates;
}

TEST(AgentTable, HoldsForEachPair) {
    for (const State& state : states()) {
        for (const auto& [name, happen] : events()) {
            AgentHarness agent;
            state.reach(agent);
            const auto expected = state.effects.find(name);
            EXPECT_EQ(happen(agent), expected == state.effects.end() ? "-" : expected->second)
                << "state " << state.name << ", event " << name;
        }
    }
}

TEST(AgentTable, NamesOnlyEventsThatExist) {
    for (const State& state : states()) {
        for (const auto& [name, effects] : state.effects) {
            EXPECT_TRUE(
                std::any_of(events().begin(), events().end(), [&](const auto& event) { return event.first == name; }))
                << state.name << ": " << name;
        }
    }
}

}  // namespace
}  // namespace ddl::core
