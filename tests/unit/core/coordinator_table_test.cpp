// The phase x event table at the top of core/coordinator.hpp, pair by pair. A pair that a phase doesn't list has no
// effect. Peers: 0 is the coordinator's own agent, 1 a guest, 2 one that has only connected, 3 one that was welcomed.

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "unit/core/coordinator_harness.hpp"

namespace ddl::core {
namespace {

using Happen = std::function<std::string(CoordinatorHarness&)>;
using C = CoordinatorHarness;

const std::vector<std::pair<std::string, Happen>>& events() {
    const auto from = [](int peer, wire::Message message) -> Happen {
        return [=](C& c) {
            return c.say(peer, message);
        };
    };
    static const std::vector<std::pair<std::string, Happen>> kEvents = {
        {"arrived",
         [](C& c) {
             return c.text(PeerArrived{C::id(9), "10.0.0.10"});
         }},
        {"hello",
         [](C& c) {
             return c.say(2, c.hello(2));
         }},
        {"hello of another job",
         [](C& c) {
             wire::Hello hello = c.hello(2);
             hello.terms.max_nodes = 7;
             return c.say(2, hello);
         }},
        {"hello again",
         [](C& c) {
             return c.say(3, c.hello(3));
         }},
        {"hello of the guest's next session",
         [](C& c) {
             return c.say(2, c.hello(1));
         }},
        {"no hello", from(2, C::ready(2))},
        {"unknown peer", from(77, C::ready(2))},
        {"ready of a newcomer", from(3, C::ready(3))},
        {"ready of the round", from(1, C::ready(1, 1))},
        {"ready of another round", from(1, C::ready(1, 0))},
        {"failed", from(1, C::failed(1, 1))},
        {"failed in another round", from(1, C::failed(1, 7))},
        {"failed elsewhere", from(3, C::failed(1, 1))},
        {"first exit", from(1, wire::FirstExit{{0, 1}})},
        {"finished", from(1, wire::Finished{{0, 1}})},
        {"finished another round", from(1, wire::Finished{{0, 7}})},
        {"local leaves", from(0, wire::Leaving{SIGTERM})},
        {"guest leaves", from(1, wire::Leaving{SIGTERM})},
        {"newcomer leaves", from(3, wire::Leaving{SIGTERM})},
        {"coordinators' message", from(3, wire::Welcome{"job", 0})},
        {"local gone",
         [](C& c) {
             return c.gone(0);
         }},
        {"guest gone",
         [](C& c) {
             return c.gone(1);
         }},
        {"newcomer gone",
         [](C& c) {
             return c.gone(3);
         }},
        {"silent peer gone",
         [](C& c) {
             return c.gone(2);
         }},
        {"unknown peer gone",
         [](C& c) {
             return c.gone(77);
         }},
        {"time",
         [](C& c) {
             return c.time();
         }},
    };
    return kEvents;
}

struct PhaseRow {
    const char* name;
    std::function<void(C&)> reach;
    std::map<std::string, std::string> effects;  // by event
};

const std::vector<PhaseRow>& phases() {
    static const std::vector<PhaseRow> kPhases = {
        {"gathering",
         [](C& c) { c.gather(); },
         {{"hello", "2:welcome, say"},
          {"hello of another job", "say, 2:refused, drop 2"},
          {"hello again", "say, 3:refused, drop 3, say"},
          {"hello of the guest's next session", "2:welcome, say"},
          {"no hello", "say, 2:refused, drop 2"},
          {"local leaves", "0:job_over 143, 2:job_over 143, 3:job_over 143"},
          {"newcomer leaves", "say"},
          {"coordinators' message", "say, 3:refused, drop 3, say"},
          {"local gone", "2:job_over 68, 3:job_over 68"},
          {"newcomer gone", "say"},
          {"time", "0:notice, 3:notice"}}},
        {"running",
         [](C& c) { c.run(); },
         {{"hello", "2:welcome"},
          {"hello of another job", "say, 2:refused, drop 2"},
          {"hello again", "say, 3:refused, drop 3"},
          {"hello of the guest's next session", "drop 1, 0:stop failure, 2:welcome"},
          {"no hello", "say, 2:refused, drop 2"},
          {"ready of a newcomer", "3:notice"},
          {"ready of the round", "0:stop failure, 1:stop failure"},
          {"failed", "0:stop failure, 1:stop failure"},
          {"local leaves", "0:job_over 66, 1:job_over 66, 2:job_over 66, 3:job_over 66"},
          {"guest leaves", "say, 0:stop membership"},
          {"newcomer leaves", "say"},
          {"coordinators' message", "say, 3:refused, drop 3"},
          {"local gone", "1:job_over 68, 2:job_over 68, 3:job_over 68"},
          {"guest gone", "0:stop failure"}}},
        {"stopping",
         [](C& c) { c.stop(); },
         {{"hello", "2:welcome"},
          {"hello of another job", "say, 2:refused, drop 2"},
          {"hello again", "say, 3:refused, drop 3"},
          {"hello of the guest's next session", "drop 1, 2:welcome"},
          {"no hello", "say, 2:refused, drop 2"},
          {"local leaves", "0:job_over 66, 1:job_over 66, 2:job_over 66, 3:job_over 66"},
          {"guest leaves", "say"},
          {"newcomer leaves", "say"},
          {"coordinators' message", "say, 3:refused, drop 3"},
          {"local gone", "1:job_over 68, 2:job_over 68, 3:job_over 68"},
          {"time", "0:notice, 1:notice, 3:notice"}}},
        {"stopping, n0 is ready",
         [](C& c) { c.stop_with_one_ready(); },
         {{"hello", "2:welcome"},
          {"hello of another job", "say, 2:refused, drop 2"},
          {"hello again", "say, 3:refused, drop 3"},
          {"hello of the guest's next session", "drop 1, 0:notice, 3:notice, 2:welcome, say"},
          {"no hello", "say, 2:refused, drop 2"},
          {"ready of the round", "0:notice, 1:notice, 3:notice"},
          {"local leaves", "0:job_over 66, 1:job_over 66, 2:job_over 66, 3:job_over 66"},
          {"guest leaves", "say"},
          {"newcomer leaves", "say"},
          {"coordinators' message", "say, 3:refused, drop 3"},
          {"local gone", "1:job_over 68, 2:job_over 68, 3:job_over 68"},
          {"guest gone", "0:notice, 3:notice"},
          {"time", "0:notice, 1:notice, 3:notice"}}},
        {"gathering again",
         [](C& c) { c.gather_again(); },
         {{"hello", "2:welcome, say"},
          {"hello of another job", "say, 2:refused, drop 2"},
          {"hello again", "say, 3:refused, drop 3, say"},
          {"hello of the guest's next session", "2:welcome, say"},
          {"no hello", "say, 2:refused, drop 2"},
          {"ready of a newcomer", "0:assignment 2, 3:assignment 2"},
          {"local leaves", "0:job_over 66, 2:job_over 66, 3:job_over 66"},
          {"newcomer leaves", "say"},
          {"coordinators' message", "say, 3:refused, drop 3, say"},
          {"local gone", "2:job_over 68, 3:job_over 68"},
          {"newcomer gone", "say"},
          {"time", "0:notice, 3:notice"}}},
        {"growing",
         [](C& c) { c.grow(); },
         {{"hello", "2:welcome"},
          {"hello of another job", "say, 2:refused, drop 2"},
          {"hello again", "say, 3:refused, drop 3"},
          {"hello of the guest's next session", "drop 1, 0:stop failure, 2:welcome"},
          {"no hello", "say, 2:refused, drop 2"},
          {"ready of a newcomer", "3:notice"},
          {"ready of the round", "0:stop failure, 1:stop failure"},
          {"failed", "0:stop failure, 1:stop failure"},
          {"local leaves", "0:job_over 66, 1:job_over 66, 2:job_over 66, 3:job_over 66, 4:job_over 66"},
          {"guest leaves", "say, 0:stop membership"},
          {"newcomer leaves", "say"},
          {"coordinators' message", "say, 3:refused, drop 3"},
          {"local gone", "1:job_over 68, 2:job_over 68, 3:job_over 68, 4:job_over 68"},
          {"guest gone", "0:stop failure"},
          {"time", "0:stop membership, 1:stop membership"}}},
        {"over",
         [](C& c) { c.be_over(); },
         {{"hello", "2:job_over 0"},
          {"hello of another job", "2:job_over 0"},
          {"hello again", "3:job_over 0"},
          {"hello of the guest's next session", "2:job_over 0"},
          {"no hello", "say, 2:refused, drop 2"},
          {"coordinators' message", "say, 3:refused, drop 3"},
          {"time", "say, drop 1, say, drop 2, say, drop 3, ended"}}},
    };
    return kPhases;
}

std::string after(const PhaseRow& phase, const Happen& happen) {
    C coordinator;
    phase.reach(coordinator);
    coordinator.arrive(2);
    coordinator.greet(3);
    return happen(coordinator);
}

TEST(CoordinatorTable, HoldsForEachPair) {
    for (const PhaseRow& phase : phases()) {
        for (const auto& [name, happen] : events()) {
            const auto expected = phase.effects.find(name);
            EXPECT_EQ(after(phase, happen), expected == phase.effects.end() ? "-" : expected->second)
                << "phase " << phase.name << ", event " << name;
        }
    }
}

TEST(CoordinatorTable, NamesOnlyEventsThatExist) {
    for (const PhaseRow& phase : phases()) {
        for (const auto& [name, effects] : phase.effects) {
            EXPECT_TRUE(
                std::any_of(events().begin(), events().end(), [&](const auto& event) { return event.first == name; }))
                << phase.name << ": " << name;
        }
    }
}

}  // namespace
}  // namespace ddl::core
