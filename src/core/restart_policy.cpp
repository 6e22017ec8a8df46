#include "core/restart_policy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/text.hpp"

namespace ddl::core {
namespace {

// Exit codes of a shell for a program that cannot be started.
constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;

int exit_code_of(const wire::Death& death) {
    switch (death.kind) {
        case wire::DeathKind::kExited:
            return death.status;
        case wire::DeathKind::kSignalled:
        case wire::DeathKind::kOutOfMemory:
        case wire::DeathKind::kHung:
            return kExitSignalBase + death.status;
        case wire::DeathKind::kStartFailed:
            return death.status == ENOENT ? kExitNotFound : kExitNotExecutable;
        case wire::DeathKind::kNodeLost:
            return kExitTooFewNodes;
    }
    return kExitInternal;
}

std::string budget_text(int used, int max) {
    if (max == 0) {
        return "no restarts are allowed (--max-restarts 0)";
    }
    return "all " + std::to_string(max) + " restarts are used up (" + std::to_string(used) + " of " +
           std::to_string(max) + ")";
}

Instant loss_began(const DatedDeath& loss, const std::vector<DatedDeath>& reported) {
    Instant began = loss.at - kLossLag;
    for (const DatedDeath& other : reported) {
        const bool own = other.death.kind != wire::DeathKind::kNodeLost && other.death.node == loss.death.node;
        if (own && other.at <= loss.at) {
            began = std::max(began, other.at);
        }
    }
    return began;
}

// Deaths that no program chooses as its answer to a peer's death.
bool is_sudden(const wire::Death& death) {
    constexpr std::array kSudden = {SIGKILL, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    return death.kind == wire::DeathKind::kSignalled &&
           std::find(kSudden.begin(), kSudden.end(), death.status) != kSudden.end();
}

}  // namespace

std::vector<wire::Death> in_causal_order(std::vector<DatedDeath> deaths) {
    const std::vector<DatedDeath> reported = deaths;
    for (DatedDeath& dated : deaths) {
        if (dated.death.kind == wire::DeathKind::kNodeLost) {
            dated.at = loss_began(dated, reported);
        } else if (is_sudden(dated.death)) {
            dated.at -= kSuddenDeathLag;
        }
    }
    std::stable_sort(deaths.begin(), deaths.end(),
                     [](const DatedDeath& a, const DatedDeath& b) { return a.at < b.at; });
    std::vector<wire::Death> order;
    for (DatedDeath& dated_death : deaths) {
        order.push_back(std::move(dated_death.death));
    }
    return order;
}

std::string describe(const wire::Death& death) {
    if (death.kind == wire::DeathKind::kNodeLost) {
        return "node " + death.node + " was lost" + (death.message.empty() ? "" : " (" + death.message + ")");
    }
    const std::string who = "rank " + std::to_string(death.rank) + " on " + death.node;
    switch (death.kind) {
        case wire::DeathKind::kExited:
            return who + " (pid " + std::to_string(death.pid) + ") exited with code " + std::to_string(death.status);
        case wire::DeathKind::kSignalled:
            return who + " (pid " + std::to_string(death.pid) + ") was killed by " + signal_name(death.status);
        default:
            return who + " could not be started: " + death.message;
    }
}

std::optional<wire::JobOver> verdict(const wire::Death& first, int restarts_used, int max_restarts) {
    if (restarts_used < max_restarts) {
        return std::nullopt;
    }
    wire::JobOver over;
    over.exit_code = exit_code_of(first);
    over.origin = first.kind == wire::DeathKind::kNodeLost ? wire::ExitOrigin::kLauncher : wire::ExitOrigin::kWorker;
    over.why = describe(first) + "; " + budget_text(restarts_used, max_restarts);
    over.restart_count = restarts_used;
    return over;
}

}  // namespace ddl::core
