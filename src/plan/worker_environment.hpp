// The environment of one worker: torchrun's variables, byte for byte, plus ours.
//
// Pure: the inherited environment comes in as a value. Called by run::Driver for every start of a worker and by
// --dry-run with a made-up place. The job token never gets in.
#pragma once

#include <vector>

#include "plan/launch_plan.hpp"

namespace ddl::plan {

// `inherited` is the agent's environment as NAME=VALUE texts. Later sources replace earlier ones; the result has each
// name once, inherited ones first in their own order. (source: reference of torchrun 2.15, worker environment)
[[nodiscard]] std::vector<Variable> worker_environment(const LaunchPlan& plan, const RankPlace& place,
                                                       const std::vector<std::string>& inherited);

// The worker's argument vector with ${local_rank} replaced.
[[nodiscard]] std::vector<std::string> worker_arguments(const LaunchPlan& plan, int local_rank);

}  // namespace ddl::plan
