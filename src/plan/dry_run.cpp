#include "plan/dry_run.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "plan/worker_environment.hpp"

namespace ddl::plan {

namespace {

constexpr std::string_view kLater = "<decided by the rendezvous>";
constexpr std::string_view kAtStart = "<chosen at the start>";

std::string line(std::string_view name, std::string_view value) {
    std::string text = "  ";
    text += name;
    text.append(name.size() < 18 ? 18 - name.size() : 1, ' ');
    return text.append(value) + "\n";
}

std::string in_seconds(Duration duration) {
    std::string text = std::to_string(seconds(duration));
    text.erase(text.find_last_not_of('0') + 1);
    return (text.ends_with('.') ? text.substr(0, text.size() - 1) : text) + " s";
}

// For a shell, so that a line can be copied.
std::string shell_word(const std::string& word) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-+=:,./@%") == std::string::npos;
    if (plain) {
        return word;
    }
    std::string text = "'";
    for (const char c : word) {
        text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return text + "'";
}

std::string command_line(const std::vector<std::string>& arguments) {
    std::vector<std::string> words;
    std::transform(arguments.begin(), arguments.end(), std::back_inserter(words), shell_word);
    return join(words, " ");
}

std::string stream_names(const std::vector<Streams>& by_rank) {
    std::vector<std::string> words;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
        if (by_rank[rank] != Streams{}) {
            words.push_back(std::to_string(rank) + ":" + (by_rank[rank].out ? "out" : "") +
                            (by_rank[rank].out && by_rank[rank].err ? "+" : "") + (by_rank[rank].err ? "err" : ""));
        }
    }
    return words.empty() ? "none" : join(words, " ");
}

std::string node_count(const RendezvousPlan& rendezvous) {
    const std::string min = std::to_string(rendezvous.min_nodes);
    return rendezvous.min_nodes == rendezvous.max_nodes ? min : min + " to " + std::to_string(rendezvous.max_nodes);
}

std::string store_port(const LaunchPlan& plan) {
    if (plan.store_ports.first == 0) {
        return "a free port for every round";
    }
    const std::string first = std::to_string(plan.store_ports.first);
    return plan.store_ports.fixed() ? "port " + first
                                    : "a port of " + first + "-" + std::to_string(plan.store_ports.last);
}

std::string endpoint_list(const RendezvousPlan& rendezvous) {
    std::vector<std::string> texts;
    for (const Endpoint& endpoint : rendezvous.endpoints) {
        texts.push_back(host_and_port(endpoint.host, endpoint.port));
    }
    return join(texts, ", ");
}

std::string describe_meeting_point(const RendezvousPlan& rendezvous) {
    const EtcdPlan& etcd = rendezvous.etcd;
    switch (rendezvous.kind) {
        case Rendezvous::kLocal:
            return line("rendezvous", "none: this node alone");
        case Rendezvous::kStatic:
            return line("rendezvous", endpoint_list(rendezvous) + ", hosted by node rank 0");
        case Rendezvous::kDynamic:
            return line("rendezvous", endpoint_list(rendezvous) + ", hosted by the owner of " +
                                          (rendezvous.endpoints.size() > 1 ? "the first" : "that") + " address");
        case Rendezvous::kEtcd:
            break;
    }
    return line("rendezvous", "etcd at " + endpoint_list(rendezvous) + (etcd.tls ? " (https" : " (http") +
                                  (etcd.user.empty() ? ")" : ", user " + etcd.user + ", password ***)"));
}

std::string takeover_text(const RendezvousPlan& rendezvous) {
    if (rendezvous.kind == Rendezvous::kEtcd) {
        return "by election in etcd";
    }
    return rendezvous.takeover ? "by a majority of the last round's nodes" : "off";
}

std::string scale_up_text(const RendezvousPlan& rendezvous) {
    switch (rendezvous.scale_up) {
        case ScaleUp::kNow:
            return "now";
        case ScaleUp::kNever:
            return "never";
        case ScaleUp::kAtCheckpoint:
            break;
    }
    return "at a checkpoint, after " + in_seconds(rendezvous.scale_up_deadline) + " at the latest";
}

std::string describe_limits(const RendezvousPlan& rendezvous) {
    if (rendezvous.kind == Rendezvous::kLocal) {
        return {};
    }
    std::string text =
        line("limits", "join " + in_seconds(rendezvous.join_timeout) + ", last call " +
                           in_seconds(rendezvous.last_call_timeout) + ", rejoin " +
                           in_seconds(rendezvous.rejoin_timeout) + ", lease " + in_seconds(rendezvous.lease_timeout));
    text += line("takeover", takeover_text(rendezvous));
    return text + (rendezvous.kind == Rendezvous::kStatic ? "" : line("scale-up", scale_up_text(rendezvous)));
}

std::string describe_rendezvous(const LaunchPlan& plan) {
    const RendezvousPlan& rendezvous = plan.rendezvous;
    const std::string job = rendezvous.job_id_typed ? rendezvous.job_id : rendezvous.job_id + " (made up)";
    std::string text = line("job", job) + line("nodes", node_count(rendezvous));
    text += describe_meeting_point(rendezvous) + describe_limits(rendezvous);
    if (rendezvous.node_rank) {
        text += line("node rank", std::to_string(*rendezvous.node_rank));
    }
    const bool served = plan.worker_store == WorkerStore::kAgent;
    return text + line("workers' store", (served ? "served by ddlaunch on " : "left to rank 0, on ") +
                                             store_port(plan) + (plan.loopback_only ? ", loopback only" : ""));
}

std::string code_list(const std::vector<int>& ascending) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < ascending.size();) {
        std::size_t end = i + 1;
        while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) {
            ++end;
        }
        const std::string first = std::to_string(ascending[i]);
        words.push_back(end == i + 1 ? first : first + "-" + std::to_string(ascending[end - 1]));
        i = end;
    }
    return join(words, ", ");
}

std::string describe_restarts(const Supervision& supervision) {
    std::string budget = "at most " + std::to_string(supervision.max_restarts);
    if (supervision.restart_window) {
        budget += " within " + in_seconds(*supervision.restart_window);
    }
    std::string text =
        line("restarts", budget + ", for the whole job" + (supervision.free_node_loss ? "; lost nodes are free" : ""));
    if (!supervision.no_restart_codes.empty()) {
        text += line("never after", "exit code " + code_list(supervision.no_restart_codes));
    }
    if (supervision.restart_backoff > Duration::zero()) {
        text += line("back-off", in_seconds(supervision.restart_backoff) +
                                     " before the second restart in a row, doubled from there");
    }
    if (supervision.max_restarts > 0) {
        text += line("crash loop", supervision.crash_loop_window > Duration::zero()
                                       ? "the same failure twice within " + in_seconds(supervision.crash_loop_window) +
                                             " of the start"
                                       : std::string("not looked for"));
    }
    return text;
}

std::string describe_supervision(const LaunchPlan& plan) {
    const Supervision& supervision = plan.supervision;
    std::string text =
        describe_restarts(supervision) + line("grace", in_seconds(supervision.restart_grace) + " before a restart, " +
                                                           in_seconds(supervision.shutdown_timeout) + " at a shutdown");
    std::vector<std::string> forwarded;
    std::transform(supervision.forward_signals.begin(), supervision.forward_signals.end(),
                   std::back_inserter(forwarded), signal_name);
    return text + (forwarded.empty() ? "" : line("passed on", join(forwarded, ", ")));
}

std::string describe_logs(const LogPlan& logs) {
    return line("to files", stream_names(logs.redirects)) + line("to both", stream_names(logs.tees)) +
           line("log directory", logs.directory.empty() ? "none given" : logs.directory);
}

// A place as the first round would give it if this node came first and every node were like this one.
RankPlace sample_place(const LaunchPlan& plan, int local_rank) {
    RankPlace place;
    const int nodes = plan.rendezvous.max_nodes;
    place.generation = 1;
    place.local_rank = local_rank;
    place.rank = place.role_rank = local_rank;
    place.world_size = place.role_world_size = nodes * plan.workers;
    place.group_world_size = nodes;
    place.master_addr = plan.master_addr.empty() ? "127.0.0.1" : plan.master_addr;
    place.job_id = plan.rendezvous.job_id;
    if (plan.rendezvous.kind == Rendezvous::kStatic) {
        place.master_addr = plan.rendezvous.endpoint.host;
    }
    if (plan.store_ports.fixed()) {
        place.master_port = plan.store_ports.first;
    }
    return place;
}

// True for what is not known before the job starts, and then only a placeholder can be shown.
std::string_view placeholder(const LaunchPlan& plan, const Variable& variable) {
    if (variable.name == "MASTER_PORT") {
        return plan.store_ports.fixed() ? std::string_view() : kAtStart;
    }
    if (variable.name == "TORCHELASTIC_ERROR_FILE") {
        return kAtStart;
    }
    const bool is_static = plan.rendezvous.kind == Rendezvous::kStatic;
    const bool alone = plan.rendezvous.max_nodes == 1 && plan.rendezvous.kind == Rendezvous::kLocal;
    const bool known = alone || (is_static && variable.name.starts_with("MASTER_"));
    if (variable.source == "rendezvous" && !known) {
        return kLater;
    }
    if (variable.name == "TORCHELASTIC_RUN_ID" && !alone && !plan.rendezvous.job_id_typed) {
        return kLater;
    }
    return {};
}

bool is_secret(std::string_view name) {
    constexpr std::array<std::string_view, 4> kMarks = {"TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"};
    return std::any_of(kMarks.begin(), kMarks.end(),
                       [name](std::string_view mark) { return name.find(mark) != std::string_view::npos; });
}

std::string describe_worker(const LaunchPlan& plan, int local_rank, const std::vector<std::string>& inherited) {
    std::string text =
        "worker " + std::to_string(local_rank) + ": " + command_line(worker_arguments(plan, local_rank)) + "\n";
    for (const Variable& variable : worker_environment(plan, sample_place(plan, local_rank), inherited)) {
        if (variable.source == "inherited") {
            continue;
        }
        const std::string_view later = placeholder(plan, variable);
        const std::string shown = is_secret(variable.name) ? "***" : shell_word(variable.value);
        text +=
            "  " + variable.name + "=" + (later.empty() ? shown : std::string(later)) + "  (" + variable.source + ")\n";
    }
    return text;
}

std::string describe_python(const Program& program, const HostFacts& host) {
    if (program.python_source.empty()) {
        return {};
    }
    const std::string& path = program.argv.front();
    const std::string version = host.version_of(path);
    return line("python", shell_word(path) + " (from " + program.python_source + "; " +
                              (version.empty() ? "does not tell its version" : version) + ")");
}

}  // namespace

std::string describe(const LaunchPlan& plan, const HostFacts& host) {
    const std::vector<std::string>& inherited = host.environment;
    std::string text = "plan for " + plan.node_name + "\n" + describe_rendezvous(plan);
    text += line("workers", std::to_string(plan.workers) + " on this node, role " + plan.role);
    text += line("program", command_line(plan.program.argv));
    text += describe_python(plan.program, host);
    text += describe_supervision(plan) + describe_logs(plan.logs);
    if (std::any_of(inherited.begin(), inherited.end(),
                    [](const std::string& variable) { return variable.starts_with("DDLAUNCH_TOKEN="); })) {
        text += line("token", "*** (DDLAUNCH_TOKEN, not handed on to workers)");
    }
    for (const std::string& note : plan.notes) {
        text += line("note", note);
    }
    for (int local_rank = 0; local_rank < plan.workers; ++local_rank) {
        text += describe_worker(plan, local_rank, inherited);
    }
    return text;
}

}  // namespace ddl::plan
