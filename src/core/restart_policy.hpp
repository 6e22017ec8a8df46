// What follows from a failure: another round, or the end of the job and its exit code.
//
// Pure and table-driven: one row per kind of death (see verdict()). Also decides which of several deaths was the first
// cause. Called by the coordinator once every node has reported.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "wire/agent_message.hpp"

namespace ddl::core {

// Exit codes that the launcher itself decides (docs/OPERATING.md).
inline constexpr int kExitUsage = 2;
inline constexpr int kExitJoinTimeout = 64;
inline constexpr int kExitTooFewNodes = 65;
inline constexpr int kExitStopped = 66;
inline constexpr int kExitInternal = 68;
inline constexpr int kExitSignalBase = 128;

struct DatedDeath {
    wire::Death death;
    Instant at{};  // on the coordinator's clock
};

// A lost host is noticed later than what it does to its peers: a loss within this time after the death of another
// node's worker comes first. What the lost node itself had reported before stays before.
inline constexpr Duration kLossLag = std::chrono::seconds(1);

// A process that is killed closes its sockets before its death can be noticed, so a peer's exit may be noticed sooner.
inline constexpr Duration kSuddenDeathLag = std::chrono::milliseconds(50);

// First cause first.
[[nodiscard]] std::vector<wire::Death> in_causal_order(std::vector<DatedDeath> deaths);

// "rank 3 on n1 (pid 411) was killed by SIGKILL", "node n1 was lost".
[[nodiscard]] std::string describe(const wire::Death& death);

// nullopt: start another round. Otherwise how the job ends. `first` is the first cause.
[[nodiscard]] std::optional<wire::JobOver> verdict(const wire::Death& first, int restarts_used, int max_restarts);

}  // namespace ddl::core
