#include "plan/make_plan.hpp"

#include <algorithm>
#include <array>

#include "base/path_component.hpp"
#include "base/text.hpp"
#include "plan/asked.hpp"
#include "plan/program_choice.hpp"
#include "plan/quoted.hpp"
#include "plan/rendezvous_derivation.hpp"
#include "plan/supervision_derivation.hpp"

namespace ddl::plan {

namespace {

void refuse_unavailable(Asked& asked) {
    for (const FlagInfo& entry : flag_table()) {
        if (entry.flag_class == FlagClass::kRefused && asked.given(entry.flag)) {
            asked.refuse(entry.flag, std::string(entry.meaning));
        }
        if (entry.flag_class == FlagClass::kHarmless) {
            asked.note_no_effect(entry.flag);
        }
    }
}

Result<int> parse_workers(std::string_view text, const HostFacts& host) {
    if (text == "auto") {
        return host.gpus > 0 ? host.gpus : host.cpus;
    }
    if (text == "cpu") {
        return host.cpus;
    }
    if (text == "gpu") {
        return host.gpus > 0 ? Result<int>(host.gpus)
                             : fail("gpu, but no GPU is visible on " + host.host_name + "; try auto or a number");
    }
    if (text == "xpu") {
        return fail("xpu devices can't be counted; try a number");
    }
    const Result<int> count = parse_count(text, 1, kMaxWorkersPerNode);
    return count || parse_integer(text) ? count : fail(quoted(text) + " is not a number, auto, cpu or gpu");
}

void plan_workers(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    plan.workers =
        asked.value(Flag::kNprocPerNode, 1, [&host](std::string_view text) { return parse_workers(text, host); });
    plan.node_name = host.host_name;
    plan.virtual_local_rank = asked.on(Flag::kVirtualLocalRank);
    if (!asked.text(Flag::kRole).empty()) {
        plan.role = asked.text(Flag::kRole);
    }
    plan.program = choose_program(asked, host);
    plan.rendezvous.command_digest = command_digest(plan.program);
}

// A list that is too short would leave a worker without a device.
void check_devices(Asked& asked, const HostFacts& host, const LaunchPlan& plan) {
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
        const Lookup devices = lookup(host.environment, name);
        const auto count = devices.value.empty() ? 0 : static_cast<int>(split(devices.value, ',').size());
        if (plan.virtual_local_rank && devices.found && count < plan.workers) {
            asked.refuse(Flag::kVirtualLocalRank, std::string(name) + "=" + std::string(devices.value) + " has " +
                                                      std::to_string(count) + " devices for " +
                                                      std::to_string(plan.workers) + " workers");
        }
    }
}

void plan_threads(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    const int by_rule = asked.value(Flag::kOmp, 0, [&](std::string_view text) -> Result<int> {
        if (text == "auto") {
            return std::max(1, host.cpus / plan.workers);
        }
        const Result<int> count = parse_count(text, 1, 1'000'000);
        return count ? count : fail(count.error().message + "; try a number or auto");
    });
    if (by_rule > 0) {
        plan.fixed_environment.push_back({"OMP_NUM_THREADS", std::to_string(by_rule), asked.origin(Flag::kOmp)});
    } else if (plan.workers > 1 && !lookup(host.environment, "OMP_NUM_THREADS").found) {
        plan.fixed_environment.push_back({"OMP_NUM_THREADS", "1", "default with several workers"});
        plan.notes.emplace_back("OMP_NUM_THREADS is not set: every worker gets 1; --omp auto shares the cpus out");
    }
}

// Files that were asked for without a place for them: one per user, since the temporary directory is everybody's.
void choose_log_directory(const HostFacts& host, LaunchPlan& plan) {
    const std::vector<Streams>& to_files = plan.logs.redirects;
    if (!plan.logs.directory.empty() || std::count(to_files.begin(), to_files.end(), Streams{}) == plan.workers) {
        return;
    }
    const std::string_view temporary = lookup(host.environment, "TMPDIR").value;
    plan.logs.directory = temporary.empty() ? "/tmp" : temporary;
    plan.logs.directory += "/ddlaunch-logs-" + std::to_string(host.user_id);
    const RendezvousPlan& rendezvous = plan.rendezvous;
    const bool id_is_known = rendezvous.job_id_typed || rendezvous.kind == Rendezvous::kLocal;
    plan.notes.push_back("logs: " + plan.logs.directory + "/" +
                         (id_is_known ? path_component(rendezvous.job_id) : "<id of the job>"));
}

void plan_logs(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    const int workers = plan.workers;
    const auto count = static_cast<std::size_t>(workers);
    const auto streams = [workers](std::string_view text) {
        return parse_streams(text, workers);
    };
    LogPlan& logs = plan.logs;
    logs.directory = asked.text(Flag::kLogDir);
    logs.tees = asked.value(Flag::kTee, std::vector<Streams>(count), streams);
    logs.redirects = asked.value(Flag::kRedirects, std::vector<Streams>(count), streams);
    for (std::size_t rank = 0; rank < count; ++rank) {
        logs.redirects[rank].out |= logs.tees[rank].out;
        logs.redirects[rank].err |= logs.tees[rank].err;
    }
    choose_log_directory(host, plan);
    logs.on_console = std::vector<bool>(count, true);
    if (!asked.text(Flag::kLocalRanksFilter).empty()) {
        logs.on_console = asked.value(Flag::kLocalRanksFilter, logs.on_console,
                                      [workers](std::string_view text) { return parse_rank_filter(text, workers); });
    }
    if (std::find(logs.on_console.begin(), logs.on_console.end(), true) == logs.on_console.end()) {
        plan.notes.push_back(asked.origin(Flag::kLocalRanksFilter) + ": names no local rank of this node (0 to " +
                             std::to_string(workers - 1) + "), so no worker's output will be shown");
    }
    logs.prefix_template = asked.text(Flag::kLogLinePrefixTemplate);
    if (logs.prefix_template.empty()) {
        logs.prefix_template = lookup(host.environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE").value;
    }
    if (logs.prefix_template.empty()) {
        logs.prefix_template = "[${role_name}${local_rank}]:";
    }
    logs.stdout_filters = parse_text_list(asked.text(Flag::kDuplicateStdoutFilters));
    logs.stderr_filters = parse_text_list(asked.text(Flag::kDuplicateStderrFilters));
    plan.events_file = asked.text(Flag::kEvents);
    plan.result_file = asked.text(Flag::kResultFile);
    plan.quiet = asked.on(Flag::kQuiet);
}

void plan_stdin(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    const bool lone = plan.workers == 1 && plan.rendezvous.max_nodes == 1;
    plan.stdin_mode = lone && host.stdin_is_terminal ? StdinMode::kTerminalForSingleRank : StdinMode::kNone;
    const std::string text = asked.text(Flag::kStdin);
    if (text == "none" || text == "all") {
        plan.stdin_mode = text == "none" ? StdinMode::kNone : StdinMode::kAll;
    } else if (asked.given(Flag::kStdin)) {
        plan.stdin_mode = StdinMode::kRank;
        plan.stdin_rank = asked.value(Flag::kStdin, 0, [](std::string_view rank) {
            const Result<int> number = parse_count(rank, 0, kMaxNodes * kMaxWorkersPerNode - 1);
            return number ? number : fail(quoted(rank) + " is not a rank, none or all");
        });
    }
}

template <std::size_t kCount>
std::string one_of(Asked& asked, Flag flag, const std::array<const char*, kCount>& choices) {
    return asked.value(flag, std::string(choices.front()), [&choices](std::string_view text) -> Result<std::string> {
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
            return std::string(text);
        }
        return fail(quoted(text) + " is not one of " + join({choices.begin(), choices.end()}, ", "));
    });
}

void plan_ends(Asked& asked, LaunchPlan& plan) {
    plan.exit_code_class = one_of(asked, Flag::kExitCode, std::array{"exact", "class"}) == "class";
    plan.store_compat = one_of(asked, Flag::kStoreCompat, std::array{"auto", "1.13", "2.1"});
    plan.store_allow = asked.value(Flag::kStoreAllow, std::vector<std::string>(), parse_networks);
}

void judge_no_effect(Asked& asked, LaunchPlan& plan) {
    if (asked.no_effect().empty()) {
        return;
    }
    const std::string names = join(asked.no_effect(), ", ");
    if (asked.on(Flag::kStrict)) {
        asked.refuse(Flag::kStrict, "no effect here: " + names + "; leave out what has none");
    }
    plan.notes.push_back("no effect here: " + names);
}

}  // namespace

Lookup lookup(const std::vector<std::string>& environment, std::string_view name) {
    for (const std::string& variable : environment) {
        if (variable.size() > name.size() && variable[name.size()] == '=' && variable.starts_with(name)) {
            return {true, std::string_view(variable).substr(name.size() + 1)};
        }
    }
    return {};
}

Result<LaunchPlan> make_plan(const Requested& requested, const HostFacts& host) {
    Asked asked(requested);
    LaunchPlan plan;
    refuse_unavailable(asked);
    derive_rendezvous(asked, host, plan);
    plan_workers(asked, host, plan);
    check_devices(asked, host, plan);
    plan_threads(asked, host, plan);
    derive_supervision(asked, host, plan);
    plan_logs(asked, host, plan);
    plan_stdin(asked, host, plan);
    plan_ends(asked, plan);
    judge_no_effect(asked, plan);
    if (asked.error()) {
        return tl::unexpected(*asked.error());
    }
    return plan;
}

}  // namespace ddl::plan
