// What main does with a validated plan, and the facts about this machine that a plan is made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "plan/host_facts.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::run {

// `invoked_as` is argv[0].
[[nodiscard]] plan::HostFacts host_facts(const std::string& invoked_as);

// Runs this node's part of the job and blocks until it is over; returns the process's exit code. Must be called on the
// main thread while it is the only one: it forks the guard first.
[[nodiscard]] int launch(const plan::LaunchPlan& plan);

struct BareStore {
    std::uint16_t port = 0;  // 0: a free one
    bool everywhere = false;
    std::string compat;
    std::vector<std::string> allow;  // empty: everybody that can reach it
};

// Serves a store without a job until SIGINT or SIGTERM; prints "listening on port N" on stdout.
[[nodiscard]] Result<void> serve_store(const BareStore& store);

}  // namespace ddl::run
