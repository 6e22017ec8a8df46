// --dry-run: the plan and each worker's environment as readable lines, with the source of each value.
//
// Called by main, which prints the text to stdout and exits 0. Looks at nothing but its arguments, and asks for the
// Python's version by HostFacts::version_of. Values that only a rendezvous can decide are shown as such; secrets as
// ***.
#pragma once

#include <string>

#include "plan/host_facts.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::plan {

// `host.environment` is what workers inherit.
[[nodiscard]] std::string describe(const LaunchPlan& plan, const HostFacts& host);

}  // namespace ddl::plan
