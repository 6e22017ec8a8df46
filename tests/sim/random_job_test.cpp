// Random histories: nodes come, go, flap, are signalled; workers die, finish, ignore signals. After each step the
// cluster's own invariants hold (one world at a time, one Finish per agent, no deadline that stays due); after each
// history, once the faults stop and workers finish, every agent ends.
//
// A failure names its seed: random_job_test --gtest_filter='*' with DDLAUNCH_SIM_SEED=<seed> replays that one alone.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/text.hpp"
#include "scenario/cluster.hpp"

namespace ddl::scenario {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSeeds = 400;
constexpr int kSteps = 80;

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {
    }
    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31U);
    }
    int below(int limit) {
        return static_cast<int>(next() % static_cast<std::uint64_t>(limit));
    }
    bool one_in(int chances) {
        return below(chances) == 0;
    }

private:
    std::uint64_t state_;
};

class History {
public:
    explicit History(std::uint64_t seed) : random_(seed), settings_(settings()), cluster_(settings_) {
        for (int i = 0; i < settings_.agent.terms.max_nodes + random_.below(2); ++i) {
            names_.push_back("n" + std::to_string(i));
        }
    }

    // Empty when all went well.
    std::string run() {
        for (int step = 0; step < kSteps; ++step) {
            act();
            if (!cluster_.violation().empty()) {
                return describe(cluster_.violation());
            }
        }
        calm();
        return end();
    }

private:
    Settings settings() {
        Settings result;
        core::AgentSettings& agent = result.agent;
        const int max = 1 + random_.below(4);
        agent.terms = {"job", false, 1 + random_.below(max), max, random_.below(6), "c10d", "digest"};
        agent.endpoint_text = result.coordinator.endpoint_text = "h0:29400";
        agent.join_timeout = result.coordinator.join_timeout = seconds(600);
        agent.rejoin_timeout = result.coordinator.rejoin_timeout = seconds(60);
        agent.restart_grace = seconds(random_.below(3));
        agent.shutdown_timeout = seconds(30);
        result.coordinator.last_call_timeout = seconds(random_.below(10));
        result.coordinator.farewell_timeout = seconds(45);
        result.coordinator.endpoint_host = "h0";
        return result;
    }

    void note(const std::string& what) {
        said_.push_back(what);
        if (std::getenv("DDLAUNCH_SIM_SEED") != nullptr) {
            for (const Entry& entry : cluster_.entries()) {
                said_.push_back("    " + entry.node + ": " + entry.text);
            }
            for (const Entry& entry : cluster_.said()) {
                said_.push_back("    " + entry.node + " says: " + entry.text);
            }
            cluster_.entries().clear();
            cluster_.said().clear();
        }
    }

    void act() {
        const std::string& name = names_[static_cast<std::size_t>(random_.below(static_cast<int>(names_.size())))];
        if (!cluster_.alive(name)) {
            if (random_.one_in(2)) {
                start(name);
            }
            return;
        }
        switch (random_.below(12)) {
            case 0:
            case 1:
            case 2:
                return end_a_worker(name);
            case 3:
                return name != "n0" ? cut(name) : void();
            case 4:
                return random_.one_in(3) ? (note("kill " + name), cluster_.kill(name)) : void();
            case 5:
                return random_.one_in(4) ? (note("signal " + name), cluster_.signal(name, 15)) : void();
            case 6:
                return name != "n0" && random_.one_in(2) ? (note("hold " + name), cluster_.hold(name)) : void();
            case 7:
                return (note("release " + name), cluster_.release(name));
            case 8:
                return (note("ignore " + name), cluster_.ignore_term(name));
            case 9:
                return (note("families " + name), cluster_.leave_families(name, {2, 0, 1, 0, 0}));
            case 10:
                return repair(name);
            default:
                return pass_time();
        }
    }

    void start(const std::string& name) {
        note("start " + name);
        if (name == "n0" && cluster_.hosted()) {
            cluster_.kill(name);  // its former process was only waiting for others to leave
        }
        NodeOptions options;
        options.name = name;
        options.host = name == "n0";
        options.agent = settings_.agent;
        options.agent.node.workers = 1 + random_.below(3);
        options.agent.keep_children = random_.one_in(4);
        cluster_.start(options);
    }

    void end_a_worker(const std::string& name) {
        const std::vector<int> ranks = cluster_.running(name);
        if (ranks.empty()) {
            return;
        }
        const int rank = ranks[static_cast<std::size_t>(random_.below(static_cast<int>(ranks.size())))];
        const int how = random_.below(6);
        note("end rank " + std::to_string(rank) + " on " + name + " how " + std::to_string(how));
        cluster_.end_worker(name, rank, how == 0, how == 0 ? 9 : how == 1 ? 3 : 0);
    }

    void cut(const std::string& name) {
        const bool noticed = random_.one_in(2);
        note((noticed ? "cut " : "cut unnoticed ") + name);
        noticed ? cluster_.cut(name) : cluster_.cut_unnoticed(name);
    }

    void repair(const std::string& name) {
        note("link " + name);
        cluster_.link(name);
        if (random_.one_in(2)) {
            note("notice");
            cluster_.notice_broken_links();
        }
    }

    void pass_time() {
        static constexpr milliseconds kTimes[] = {milliseconds(1), milliseconds(100), milliseconds(2000),
                                                  milliseconds(35'000)};
        const milliseconds time = kTimes[random_.below(4)];
        note("advance " + std::to_string(time.count()) + "ms");
        cluster_.advance(time);
    }

    void calm() {
        note("calm");
        for (const std::string& name : names_) {
            if (cluster_.alive(name)) {
                cluster_.link(name);
                cluster_.release(name);
            }
        }
        cluster_.notice_broken_links();
    }

    std::string end() {
        constexpr int kPatience = 60;
        for (int i = 0; i < kPatience; ++i) {
            for (const std::string& name : names_) {
                if (cluster_.alive(name)) {
                    cluster_.exit_all(name);
                }
            }
            note(i == 0 ? "all exit, advance 35s, and so on" : "");
            cluster_.advance(seconds(35));
        }
        if (!cluster_.violation().empty()) {
            return describe(cluster_.violation());
        }
        for (const std::string& name : names_) {
            if (cluster_.alive(name)) {
                return describe(name + " never ends");
            }
        }
        return cluster_.hosted() && !cluster_.coordination_ended() ? describe("the coordinator never ends") : "";
    }

    std::string describe(const std::string& wrong) {
        const wire::JobTerms& terms = settings_.agent.terms;
        note("");
        return wrong + "\nnodes " + std::to_string(terms.min_nodes) + ":" + std::to_string(terms.max_nodes) +
               " max_restarts " + std::to_string(terms.max_restarts) + "\n" + join(said_, "\n");
    }

    Random random_;
    Settings settings_;
    Cluster cluster_;
    std::vector<std::string> names_;
    std::vector<std::string> said_;
};

TEST(RandomJob, AlwaysEndsAndNeverRunsTwoWorlds) {
    const char* only = std::getenv("DDLAUNCH_SIM_SEED");
    const std::uint64_t first = only != nullptr ? static_cast<std::uint64_t>(parse_integer(only).value_or(0)) : 0;
    const std::uint64_t count = only != nullptr ? 1 : kSeeds;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const std::string wrong = History(seed).run();
        ASSERT_EQ(wrong, "") << "DDLAUNCH_SIM_SEED=" << seed;
    }
}

}  // namespace
}  // namespace ddl::scenario
