#include "plan/supervision_derivation.hpp"

#include "plan/grammar.hpp"

namespace ddl::plan {

namespace {

using std::chrono_literals::operator""s;

constexpr double kLongestGrace = 7 * 86'400;
constexpr double kLongestPause = 86'400;
constexpr char kDefaultSignals[] = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";

Result<Duration> parse_grace(std::string_view text) {
    return parse_duration(text, 0, kLongestGrace);
}

Result<Duration> parse_pause(std::string_view text) {
    return parse_duration(text, 0, kLongestPause);
}

void plan_restarts(Asked& asked, Supervision& supervision) {
    const RestartBudget budget = asked.value(Flag::kMaxRestarts, RestartBudget{}, parse_restart_budget);
    supervision.max_restarts = budget.restarts;
    supervision.restart_window = budget.window;
    supervision.no_restart_codes = asked.value(Flag::kNoRestartExitCodes, std::vector<int>(), parse_exit_codes);
    supervision.free_node_loss = asked.on(Flag::kFreeNodeLoss);
    supervision.restart_backoff = asked.value(Flag::kRestartBackoff, Duration(0s), parse_pause);
    supervision.crash_loop_window = asked.value(Flag::kCrashLoopWindow, Duration(5s), parse_pause);
}

void plan_graces(Asked& asked, const HostFacts& host, Supervision& supervision) {
    supervision.restart_grace = asked.value(Flag::kRestartGrace, Duration(2s), parse_grace);
    Duration shutdown = 30s;
    const Lookup inherited = lookup(host.environment, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
    if (!asked.given(Flag::kShutdownTimeout) && !inherited.value.empty()) {
        const Result<Duration> value = parse_grace(inherited.value);
        if (!value) {
            asked.refuse("TORCH_ELASTIC_SHUTDOWN_TIMEOUT: " + value.error().message);
        }
        shutdown = value.value_or(shutdown);
    }
    supervision.shutdown_timeout = asked.value(Flag::kShutdownTimeout, shutdown, parse_grace);
}

void plan_signals(Asked& asked, LaunchPlan& plan) {
    Supervision& supervision = plan.supervision;
    supervision.signals = asked.value(Flag::kSignalsToHandle, *parse_signals(kDefaultSignals), parse_signals);
    supervision.forward_signals = asked.value(
        Flag::kForwardSignals, std::vector<int>(),
        [&supervision](std::string_view text) { return parse_forwarded_signals(text, supervision.signals); });
    const bool given = asked.given(Flag::kSignalsToHandle);
    plan.fixed_environment.push_back({"TORCHELASTIC_SIGNALS_TO_HANDLE",
                                      given ? asked.text(Flag::kSignalsToHandle) : kDefaultSignals,
                                      given ? asked.origin(Flag::kSignalsToHandle) : "default"});
}

}  // namespace

void derive_supervision(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    plan_restarts(asked, plan.supervision);
    plan_graces(asked, host, plan.supervision);
    plan_signals(asked, plan);
    plan.supervision.signal_ranks_only = asked.on(Flag::kSignalRanksOnly);
    plan.supervision.keep_children = asked.on(Flag::kKeepChildren);
}

}  // namespace ddl::plan
