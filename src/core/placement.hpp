// Who gets which place in a round: the order of nodes, and from it all ranks.
//
// Pure. Called by the coordinator when it opens a round. In the job's first round: asked-for ranks where they are free,
// else the endpoint's owner first, then the scheduler's order, then names as people sort them (n2 before n10). Later:
// survivors keep their order, a returning or new node takes the hole that fits it best, unfilled holes close up.
#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"
#include "wire/agent_message.hpp"

namespace ddl::core {

struct Candidate {
    PeerId peer{};
    wire::NodeFacts facts;
    bool owns_endpoint = false;
    bool reachable = true;  // false: behind address translation, so it must not serve the store
    int survivor_of = -1;   // its group rank in the last round, when it is the same process; else -1
};

// What stood at each group rank of the last round; empty before the first.
struct FormerPlace {
    std::string name;
    int workers = 1;

    friend bool operator==(const FormerPlace&, const FormerPlace&) = default;
};

// At most `limit` candidates, in group-rank order.
[[nodiscard]] std::vector<Candidate> place(std::vector<Candidate> candidates, const std::vector<FormerPlace>& former,
                                           std::size_t limit);

// The assignments of nodes in that order: contiguous ranks per node, role ranks counted within each role. Leaves
// generation, restart count and store fields to the coordinator.
[[nodiscard]] std::vector<wire::Assignment> assign_ranks(const std::vector<Candidate>& order);

}  // namespace ddl::core
