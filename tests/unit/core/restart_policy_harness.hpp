// Deaths, and a job that dies of them, for the tests of restart_policy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/restart_policy.hpp"

namespace ddl::core {

inline wire::Death death(wire::DeathKind kind, int status, const std::string& message = "") {
    wire::Death result;
    result.kind = kind;
    result.rank = kind == wire::DeathKind::kNodeLost ? -1 : 3;
    result.node = "n1";
    result.pid = 411;
    result.status = status;
    result.message = message;
    return result;
}

inline constexpr Instant kStart = Instant(std::chrono::hours(5));
inline constexpr Duration kShort = std::chrono::milliseconds(400);
inline constexpr Duration kLong = std::chrono::minutes(2);

inline RestartRules allow(int restarts) {
    RestartRules rules;
    rules.max_restarts = restarts;
    rules.crash_loop_window = std::chrono::seconds(5);
    return rules;
}

// A policy and a clock: each round lasts as long as said, and ends with this death.
class Job {
public:
    explicit Job(RestartRules rules) : policy(std::move(rules)) {
    }

    RestartPolicy::Decision fails(const wire::Death& first, Duration age = kLong) {
        return fails(std::vector<wire::Death>{first}, age);
    }
    RestartPolicy::Decision fails(const std::vector<wire::Death>& deaths, Duration age = kLong) {
        now += age;
        return policy.judge(deaths, age, now);
    }

    RestartPolicy policy;
    Instant now = kStart;
};

inline const wire::Death& any() {
    static const wire::Death kDeath = death(wire::DeathKind::kExited, 1);
    return kDeath;
}

inline const wire::Death& lost() {
    static const wire::Death kDeath = death(wire::DeathKind::kNodeLost, 0);
    return kDeath;
}

}  // namespace ddl::core
