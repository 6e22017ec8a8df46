// What a job's rounds have come to, as it is kept outside of the agents (core/etcd_election.hpp).
#pragma once

#include <vector>

#include "base/ids.hpp"
#include "core/placement.hpp"

namespace ddl::core {

struct RoundRecord {
    Generation generation;
    int restart_count = 0;
    std::vector<FormerPlace> places;  // by group rank

    friend bool operator==(const RoundRecord&, const RoundRecord&) = default;
};

}  // namespace ddl::core
