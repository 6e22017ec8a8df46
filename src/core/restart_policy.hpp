// What follows from a failure: another round, now or after a pause, or the end of the job and its exit code.
//
// Table-driven, one row per kind of death: every kind is answered by another round until one of the rules below says
// otherwise, in this order: an exit code that is never restarted; a budget that is used up; a crash loop. Also decides
// which of several deaths was the first cause. RestartPolicy is owned and called by the coordinator, once every node
// has reported; it keeps the job's restarts and reads no clock.
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
inline constexpr int kExitDontRetry = 67;
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

// The exit code that a death gives its job when nothing else decides it: the worker's own, 128+n for a signal, a
// shell's for a program that cannot be started, kExitTooFewNodes for a lost node.
[[nodiscard]] int exit_code_of(const wire::Death& death);

struct RestartRules {
    int max_restarts = 0;
    std::optional<Duration> window;     // max_restarts count within this time; unset: in the whole job
    std::vector<int> no_restart_codes;  // exit codes of workers, 128+n for signals
    Duration backoff{};                 // before the second restart in a row, doubled from there up to kLongestBackoff
    Duration crash_loop_window{};       // zero: a crash loop is not looked for
    bool free_node_loss = false;
};

inline constexpr Duration kLongestBackoff = std::chrono::seconds(60);
inline constexpr Duration kSteadyRound = std::chrono::minutes(10);  // after one that lasted longer, no back-off

class RestartPolicy {
public:
    explicit RestartPolicy(RestartRules rules) : rules_(std::move(rules)) {
    }

    struct Decision {
        std::optional<wire::JobOver> over;  // unset: another round, counted if it is to be counted
        Duration delay{};                   // before that round
        std::string text;                   // "restart 2 of 3 within 1 h", "not counted (--free-node-loss)"
    };

    // A round has ended by failure. `deaths`: the first cause first, not empty. `round_age`: since its workers were
    // started.
    [[nodiscard]] Decision judge(const std::vector<wire::Death>& deaths, Duration round_age, Instant now);

    // Rounds of the job that were ended by a counted failure: TORCHELASTIC_RESTART_COUNT.
    [[nodiscard]] int restart_count() const {
        return restart_count_;
    }
    // Of the failures that a budget per time window still counts, the latest first; for the agents to keep.
    [[nodiscard]] std::vector<Duration> ages(Instant now) const;
    // What an agent has kept, for a coordinator that took over. Whichever of both knows of more restarts is right.
    void adopt(int restart_count, const std::vector<Duration>& ages, Instant now);

private:
    [[nodiscard]] int used(Instant now) const;
    [[nodiscard]] bool may_begin_loop(const wire::Death& first, Duration round_age) const;
    [[nodiscard]] bool is_crash_loop(const wire::Death& first, Duration round_age) const;
    [[nodiscard]] std::optional<wire::JobOver> end_of_job(const wire::Death& first, Duration round_age,
                                                          Instant now) const;
    [[nodiscard]] Duration next_delay(Duration round_age);
    void count_restart(Instant now);

    RestartRules rules_;
    int restart_count_ = 0;
    int in_a_row_ = 0;                      // failures of workers, none of them after a steady round
    std::vector<Instant> counted_;          // with a window: the latest first
    std::vector<wire::Death> last_deaths_;  // of the round before, if that was ended by a failure soon after its start
};

}  // namespace ddl::core
