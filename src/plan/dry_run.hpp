// --dry-run: the plan and each worker's environment as readable lines, with the source of each value.
//
// Pure. Called by main, which prints the text to stdout and exits 0. Values that only a rendezvous can decide are shown
// as such; secrets as ***.
#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"

namespace ddl::plan {

// `inherited` is the agent's environment as NAME=VALUE texts.
[[nodiscard]] std::string describe(const LaunchPlan& plan, const std::vector<std::string>& inherited);

}  // namespace ddl::plan
