// What will be done about failures and signals: budget, classes of failure, graces, which signals stop or pass through.
//
// Decides LaunchPlan's supervision, and the variable by which workers learn of the signals. Called by make_plan() only,
// after the rendezvous' derivation.
#pragma once

#include "plan/asked.hpp"
#include "plan/host_facts.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::plan {

void derive_supervision(Asked& asked, const HostFacts& host, LaunchPlan& plan);

}  // namespace ddl::plan
