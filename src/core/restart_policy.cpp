#include "core/restart_policy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string_view>

#include "base/text.hpp"

namespace ddl::core {
namespace {

// Exit codes of a shell for a program that cannot be started.
constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;

enum class ExitRule : std::uint8_t { kOwn, kSignal, kShell, kTooFewNodes };

// Whether the same failure again, soon after the start, would come a third time. What is done to a worker from outside
// (by an operator, the kernel, another node) tells nothing about the next try.
enum class LoopRule : std::uint8_t { kNever, kAlways, kUnlessSentByOthers };

struct FailureClass {
    wire::DeathKind kind{};
    bool of_worker = true;  // else --free-node-loss can make it free, and no pause helps against it
    ExitRule exit = ExitRule::kOwn;
    LoopRule loop = LoopRule::kNever;
};

constexpr std::array<FailureClass, 6> kClasses = {{
    {wire::DeathKind::kExited, true, ExitRule::kOwn, LoopRule::kAlways},
    {wire::DeathKind::kSignalled, true, ExitRule::kSignal, LoopRule::kUnlessSentByOthers},
    {wire::DeathKind::kStartFailed, true, ExitRule::kShell, LoopRule::kAlways},
    {wire::DeathKind::kOutOfMemory, true, ExitRule::kSignal, LoopRule::kNever},
    {wire::DeathKind::kHung, true, ExitRule::kSignal, LoopRule::kNever},
    {wire::DeathKind::kNodeLost, false, ExitRule::kTooFewNodes, LoopRule::kNever},
}};

const FailureClass& class_of(const wire::Death& death) {
    return *std::find_if(kClasses.begin(), kClasses.end() - 1,
                         [&death](const FailureClass& row) { return row.kind == death.kind; });
}

bool may_loop(const wire::Death& death) {
    constexpr std::array kSentByOthers = {SIGKILL, SIGTERM, SIGINT};
    const LoopRule rule = class_of(death).loop;
    return rule == LoopRule::kAlways ||
           (rule == LoopRule::kUnlessSentByOthers &&
            std::find(kSentByOthers.begin(), kSentByOthers.end(), death.status) == kSentByOthers.end());
}

std::string_view last_words(const wire::Death& death) {
    if (!death.message.empty() || death.stderr_tail.empty()) {
        return death.message;
    }
    return death.stderr_tail.back();
}

bool is_same_failure(const wire::Death& a, const wire::Death& b) {
    return a.kind == b.kind && a.status == b.status && a.rank == b.rank && last_words(a) == last_words(b);
}

std::string budget_text(int used, int max) {
    if (max == 0) {
        return "no restarts are allowed (--max-restarts 0)";
    }
    return "all " + std::to_string(max) + " restarts are used up (" + std::to_string(used) + " of " +
           std::to_string(max) + ")";
}

// "1 h", "90 s", "0.5 s".
std::string duration_text(Duration duration) {
    using namespace std::chrono;
    if (duration >= hours(1) && duration % hours(1) == Duration::zero()) {
        return std::to_string(duration / hours(1)) + " h";
    }
    if (duration >= minutes(1) && duration % minutes(1) == Duration::zero()) {
        return std::to_string(duration / minutes(1)) + " min";
    }
    const auto tenths = (duration % std::chrono::seconds(1)) / milliseconds(100);
    return std::to_string(duration / std::chrono::seconds(1)) + (tenths == 0 ? "" : "." + std::to_string(tenths)) +
           " s";
}

wire::JobOver over_by_launcher(int exit_code, std::string why) {
    wire::JobOver over;
    over.exit_code = exit_code;
    over.origin = wire::ExitOrigin::kLauncher;
    over.why = std::move(why);
    return over;
}

wire::JobOver over_by_death(const wire::Death& first, const std::string& because) {
    wire::JobOver over = over_by_launcher(exit_code_of(first), describe(first) + "; " + because);
    over.origin = class_of(first).of_worker ? wire::ExitOrigin::kWorker : wire::ExitOrigin::kLauncher;
    return over;
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
    const std::string message = death.message.empty() ? "" : " (" + death.message + ")";
    const std::string who = "rank " + std::to_string(death.rank) + " on " + death.node;
    const std::string process = who + " (pid " + std::to_string(death.pid) + ")";
    switch (death.kind) {
        case wire::DeathKind::kExited:
            return process + " exited with code " + std::to_string(death.status);
        case wire::DeathKind::kSignalled:
            return process + " was killed by " + signal_name(death.status);
        case wire::DeathKind::kStartFailed:
            return who + " could not be started: " + death.message;
        case wire::DeathKind::kOutOfMemory:
            return process + " was killed because memory ran out" + message;
        case wire::DeathKind::kHung:
            return process + " hung" + message;
        case wire::DeathKind::kNodeLost:
            break;
    }
    return "node " + death.node + " was lost" + message;
}

int exit_code_of(const wire::Death& death) {
    switch (class_of(death).exit) {
        case ExitRule::kOwn:
            return death.status;
        case ExitRule::kSignal:
            return kExitSignalBase + death.status;
        case ExitRule::kShell:
            return death.status == ENOENT ? kExitNotFound : kExitNotExecutable;
        case ExitRule::kTooFewNodes:
            break;
    }
    return kExitTooFewNodes;
}

RestartPolicy::Decision RestartPolicy::judge(const std::vector<wire::Death>& deaths, Duration round_age, Instant now) {
    const wire::Death& first = deaths.front();
    Decision decision;
    decision.over = end_of_job(first, round_age, now);
    last_deaths_ = may_begin_loop(first, round_age) ? deaths : std::vector<wire::Death>{};
    if (decision.over) {
        decision.text = decision.over->why;
        return decision;
    }
    if (!class_of(first).of_worker && rules_.free_node_loss) {
        decision.text = "not counted (--free-node-loss)";
        return decision;
    }
    count_restart(now);
    decision.text = "restart " + std::to_string(used(now)) + " of " + std::to_string(rules_.max_restarts);
    if (rules_.window) {
        decision.text += " within " + duration_text(*rules_.window);
    }
    if (class_of(first).of_worker) {
        decision.delay = next_delay(round_age);
    }
    if (decision.delay > Duration::zero()) {
        decision.text += ", in " + duration_text(decision.delay) + " (--restart-backoff)";
    }
    return decision;
}

std::optional<wire::JobOver> RestartPolicy::end_of_job(const wire::Death& first, Duration round_age,
                                                       Instant now) const {
    const bool of_worker = class_of(first).of_worker;
    const int code = exit_code_of(first);
    const auto& never = rules_.no_restart_codes;
    std::optional<wire::JobOver> over;
    if (of_worker && std::find(never.begin(), never.end(), code) != never.end()) {
        over = over_by_launcher(kExitDontRetry, describe(first) + "; code " + std::to_string(code) +
                                                    " is not restarted (--no-restart-exit-codes)");
    } else if ((of_worker || !rules_.free_node_loss) && used(now) >= rules_.max_restarts) {
        const std::string within = rules_.window ? " within " + duration_text(*rules_.window) : "";
        over = over_by_death(first, budget_text(used(now), rules_.max_restarts) + within);
    } else if (is_crash_loop(first, round_age)) {
        over = over_by_launcher(kExitDontRetry, describe(first) + "; a crash loop: the same failure twice, within " +
                                                    duration_text(rules_.crash_loop_window) +
                                                    " of the start; to restart all the same: --crash-loop-window 0");
    }
    if (over) {
        over->restart_count = restart_count_;
    }
    return over;
}

bool RestartPolicy::may_begin_loop(const wire::Death& first, Duration round_age) const {
    return rules_.crash_loop_window > Duration::zero() && round_age <= rules_.crash_loop_window && may_loop(first);
}

// A failure that all ranks share may begin with another rank each time, so all deaths of the round before are looked
// at.
bool RestartPolicy::is_crash_loop(const wire::Death& first, Duration round_age) const {
    return may_begin_loop(first, round_age) &&
           std::any_of(last_deaths_.begin(), last_deaths_.end(),
                       [&first](const wire::Death& before) { return is_same_failure(first, before); });
}

Duration RestartPolicy::next_delay(Duration round_age) {
    if (round_age > kSteadyRound) {
        in_a_row_ = 0;
    }
    Duration delay = in_a_row_ == 0 ? Duration::zero() : rules_.backoff;
    for (int i = 1; i < in_a_row_ && delay < kLongestBackoff; ++i) {
        delay = std::min(2 * delay, kLongestBackoff);
    }
    ++in_a_row_;
    return delay;
}

int RestartPolicy::used(Instant now) const {
    return rules_.window ? static_cast<int>(ages(now).size()) : restart_count_;
}

void RestartPolicy::count_restart(Instant now) {
    ++restart_count_;
    if (rules_.window) {
        counted_.insert(counted_.begin(), now);
        counted_.resize(ages(now).size());
    }
}

std::vector<Duration> RestartPolicy::ages(Instant now) const {
    std::vector<Duration> ages;
    for (const Instant at : counted_) {
        if (rules_.window && now - at <= *rules_.window && ages.size() < wire::kMaxRestartAges) {
            ages.push_back(std::max(now - at, Duration::zero()));
        }
    }
    return ages;
}

// Both lists are parts of one truth, so its k-th latest restart is at least as late as the k-th of either.
void RestartPolicy::adopt(int restart_count, const std::vector<Duration>& ages, Instant now) {
    restart_count_ = std::max(restart_count_, restart_count);
    std::vector<Instant> theirs;
    for (const Duration age : ages) {
        theirs.push_back(now - age);
    }
    std::sort(theirs.begin(), theirs.end(), std::greater<>());
    if (theirs.size() > counted_.size()) {
        counted_.swap(theirs);
    }
    for (std::size_t i = 0; i < theirs.size(); ++i) {
        counted_[i] = std::max(counted_[i], theirs[i]);
    }
    counted_.resize(std::min(counted_.size(), wire::kMaxRestartAges));
}

}  // namespace ddl::core
