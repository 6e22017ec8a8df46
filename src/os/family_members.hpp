// Which of the processes seen in one look at /proc belong to the families asked for. Pure; used by sweep() alone.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "os/family.hpp"
#include "os/procfs.hpp"

namespace ddl::os {

struct Candidate {
    ProcessFacts facts;
    std::optional<int> serial;  // of the job's spawn id in its environment
};

// Members in the order of `candidates`, ended ones included. `self` is the process that asks.
[[nodiscard]] std::vector<ProcessFacts> select_family(const std::vector<Candidate>& candidates,
                                                      const FamilyQuery& query, pid_t self);

}  // namespace ddl::os
