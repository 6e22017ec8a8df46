// From the plan to what the parts of a node are told at their start.
#pragma once

#include <string>

#include "core/node.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::run {

// Looks up interface addresses unless the job stays on loopback.
[[nodiscard]] core::AgentSettings agent_settings(const plan::LaunchPlan& plan, const std::string& nonce);
[[nodiscard]] core::CoordinatorSettings coordinator_settings(const plan::LaunchPlan& plan, const std::string& nonce);
[[nodiscard]] core::TakeoverSettings takeover_settings(const plan::LaunchPlan& plan, const std::string& nonce);
[[nodiscard]] core::NodeSettings node_settings(const plan::LaunchPlan& plan, const std::string& nonce);

// --exit-code=class: 0 success, 65 worth another try, 67 not, 2 usage.
[[nodiscard]] int exit_code_class(const wire::JobOver& over);

}  // namespace ddl::run
