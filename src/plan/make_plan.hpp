// From what was asked for and what the machine is to the validated LaunchPlan.
//
// Pure: decides defaults, derivations (standalone, single node, static, c10d), contradictions and refusals. Called once
// by main. Every error is one line that begins with the flag or variable to blame and is the user's to mend: exit
// code kUsageError.
#pragma once

#include "base/result.hpp"
#include "plan/host_facts.hpp"
#include "plan/launch_plan.hpp"
#include "plan/requested.hpp"

namespace ddl::plan {

inline constexpr int kUsageError = 2;

[[nodiscard]] Result<LaunchPlan> make_plan(const Requested& requested, const HostFacts& host);

}  // namespace ddl::plan
