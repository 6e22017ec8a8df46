// Numbers that must not be mixed up: generations of a job, and the coordinator's peers.
#pragma once

#include <compare>
#include <cstdint>

namespace ddl {

// One agreed membership of the job. Ordered: a later round compares greater. `term` rises with every change of
// coordinator, `counter` with every round and is carried over by a change of coordinator. {0, 0} means "no round yet".
struct Generation {
    std::uint32_t term = 0;
    std::uint32_t counter = 0;

    friend auto operator<=>(const Generation&, const Generation&) = default;

    // The one growing number that users see (DDLAUNCH_GENERATION, log directories, checkpoints).
    [[nodiscard]] constexpr std::uint64_t number() const {
        return std::uint64_t{term} * 1'000'000U + counter;
    }
};

// A connected agent as the coordinator numbers it; 0 is the agent in the coordinator's own process. Never reused.
enum class PeerId : std::uint32_t { kLocal = 0 };

}  // namespace ddl
