#include "run/report.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.hpp"

namespace ddl::run {
namespace {

using wire::Death;
using wire::DeathKind;

constexpr std::string_view kMargin = "ddlaunch:   ";
constexpr std::size_t kMaxFurther = 8;

std::string rank_on_node(const Death& death) {
    return "rank " + std::to_string(death.rank) + " on " + death.node;
}

std::string who(const Death& death) {
    if (death.kind == DeathKind::kNodeLost) {
        return "node " + death.node;
    }
    return rank_on_node(death) + (death.pid > 0 ? " (pid " + std::to_string(death.pid) + ")" : "");
}

std::string what_happened(const Death& death) {
    switch (death.kind) {
        case DeathKind::kExited:
            return "exited with code " + std::to_string(death.status);
        case DeathKind::kSignalled:
            return "was killed by " + signal_name(death.status);
        case DeathKind::kStartFailed:
            return "could not be started";
        case DeathKind::kNodeLost:
            return "was lost";
        case DeathKind::kOutOfMemory:
            return "was killed by the kernel because the memory ran out";
        case DeathKind::kHung:
            return "made no progress and was ended";
    }
    return "ended";
}

bool mentions(const Death& death, std::string_view text) {
    const auto has = [text](const std::string& line) {
        return line.find(text) != std::string::npos;
    };
    return has(death.message) || std::any_of(death.stderr_tail.begin(), death.stderr_tail.end(), has);
}

std::string hint_for_signal(int number) {
    switch (number) {
        case SIGKILL:
            return "nobody inside the job sends SIGKILL: most often the kernel or a memory limit did (dmesg | grep -i "
                   "oom, memory.events of the cgroup), else a person or a scheduler";
        case SIGABRT:
            return "the program gave up by itself (failed assertion, uncaught C++ exception, a watchdog of its "
                   "communication library); the reason is in the lines above";
        case SIGSEGV:
            return "invalid memory access; run with PYTHONFAULTHANDLER=1, or with ulimit -c unlimited for a core dump";
        case SIGBUS:
            return "most often /dev/shm or a disk under a mapped file is full (df -h /dev/shm; containers: --shm-size)";
        case SIGFPE:
            return "arithmetic error, most often an integer division by zero";
        case SIGILL:
            return "the program uses instructions that this CPU lacks; build it for this machine";
        case SIGTERM:
        case SIGINT:
        case SIGHUP:
            return "the launcher did not send it: the program itself did, or somebody outside this job";
        default:
            return "";
    }
}

std::string hint_for_start(int error) {
    switch (error) {
        case ENOENT:
            return "check the path, also on the other nodes; names without a slash are looked up in PATH";
        case EACCES:
            return "check the permissions: chmod +x FILE, or a file system mounted noexec";
        case EAGAIN:
            return "too many processes or threads (ulimit -u, pids.max of the cgroup)";
        case EMFILE:
        case ENFILE:
            return "too many open files (ulimit -n)";
        case ENOMEM:
            return "the node has no memory left for another process";
        default:
            return "";
    }
}

std::string hint_for(const Death& death) {
    if (death.kind == DeathKind::kNodeLost) {
        return "look at the launcher's own lines on that node, and at its power, network and memory";
    }
    if (death.kind == DeathKind::kStartFailed) {
        return hint_for_start(death.status);
    }
    if (mentions(death, "MemoryError") || mentions(death, "std::bad_alloc") ||
        mentions(death, "Cannot allocate memory")) {
        return "it ran out of memory (limits: ulimit -v, memory.max of the cgroup)";
    }
    // Shells and wrappers report the signal of the program inside in their exit code.
    const bool of_a_child = death.kind == DeathKind::kExited && death.status > 128 && death.status < 128 + 32;
    const std::string hint = death.kind == DeathKind::kSignalled ? hint_for_signal(death.status)
                             : of_a_child                        ? hint_for_signal(death.status - 128)
                                                                 : "";
    if (of_a_child && !hint.empty()) {
        return "code " + std::to_string(death.status) + " stands for " + signal_name(death.status - 128) + ": " + hint;
    }
    return hint;
}

void add_block(std::string& report, std::string_view heading, const std::vector<std::string>& lines) {
    report.append(kMargin).append(heading).append("\n");
    for (const std::string& line : lines) {
        report.append(kMargin).append("  ").append(line).append("\n");
    }
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (const std::string_view line : split(trim(text), '\n')) {
        lines.emplace_back(line);
    }
    return lines;
}

std::string first_cause(const Death& first) {
    std::string report = "ddlaunch: first failure: " + who(first) + " " + what_happened(first);
    const std::vector<std::string> message =
        first.message.empty() ? std::vector<std::string>{} : lines_of(first.message);
    if (message.size() == 1) {
        report += ": " + message[0];
    }
    report += "\n";
    if (message.size() > 1) {
        add_block(report, "its error file says:", message);
    }
    // A traceback in the error file is on stderr as well.
    if (!first.stderr_tail.empty()) {
        const bool said = message.size() > 1 && first.message.find(first.stderr_tail.back()) != std::string::npos;
        if (!said) {
            add_block(report, "its last lines on stderr:", first.stderr_tail);
        }
    } else if (first.kind == DeathKind::kExited || first.kind == DeathKind::kSignalled) {
        report.append(kMargin).append("it wrote nothing to stderr\n");
    }
    if (const std::string hint = hint_for(first); !hint.empty()) {
        report.append(kMargin).append("hint: ").append(hint).append("\n");
    }
    return report;
}

std::string after(const Death& first, const Death& later) {
    const double gap = std::max(0.0, seconds(first.age - later.age));
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3f s later: ", gap);
    return text.data();
}

std::string further_failures(const std::vector<Death>& deaths) {
    std::string report;
    for (std::size_t i = 1; i < deaths.size() && i <= kMaxFurther; ++i) {
        report.append(kMargin).append(after(deaths[0], deaths[i]));
        report.append(who(deaths[i])).append(" ").append(what_happened(deaths[i])).append("\n");
    }
    if (deaths.size() > kMaxFurther + 1) {
        report.append(kMargin).append("and " + std::to_string(deaths.size() - kMaxFurther - 1) + " more\n");
    }
    return report;
}

std::string verdict(const wire::JobOver& over) {
    const std::string line = "ddlaunch: exit code " + std::to_string(over.exit_code) + ": ";
    if (over.origin == wire::ExitOrigin::kSuccess) {
        return line + "every rank exited with code 0\n";
    }
    if (over.origin == wire::ExitOrigin::kWorker && !over.deaths.empty()) {
        const Death& first = over.deaths[0];
        const bool node = first.kind == DeathKind::kNodeLost;
        return line + "from " + (node ? "node " + first.node : rank_on_node(first)) + "\n";
    }
    return line + (over.origin == wire::ExitOrigin::kWorker ? "from a worker" : "decided by ddlaunch") +
           (over.why.empty() ? "" : ": " + over.why) + "\n";
}

const char* kind_name(DeathKind kind) {
    switch (kind) {
        case DeathKind::kExited:
            return "exited";
        case DeathKind::kSignalled:
            return "signalled";
        case DeathKind::kStartFailed:
            return "start_failed";
        case DeathKind::kNodeLost:
            return "node_lost";
        case DeathKind::kOutOfMemory:
            return "out_of_memory";
        case DeathKind::kHung:
            return "hung";
    }
    return "";
}

const char* origin_name(wire::ExitOrigin origin) {
    switch (origin) {
        case wire::ExitOrigin::kSuccess:
            return "success";
        case wire::ExitOrigin::kWorker:
            return "worker";
        case wire::ExitOrigin::kLauncher:
            return "launcher";
    }
    return "";
}

nlohmann::ordered_json json_of(const Death& death) {
    return {{"kind", kind_name(death.kind)},
            {"rank", death.rank},
            {"local_rank", death.local_rank},
            {"node", death.node},
            {"pid", death.pid},
            {"status", death.status},
            {"age_s", seconds(death.age)},
            {"message", death.message},
            {"stderr_tail", death.stderr_tail},
            {"hint", hint_for(death)},
            {"error_file", death.error_file}};
}

}  // namespace

std::string failure_report(const wire::JobOver& over) {
    std::string report;
    if (!over.deaths.empty()) {
        report = first_cause(over.deaths[0]) + further_failures(over.deaths);
    }
    return report + verdict(over);
}

std::string result_json(const wire::JobOver& over) {
    nlohmann::ordered_json result{{"exit_code", over.exit_code},
                                  {"origin", origin_name(over.origin)},
                                  {"why", over.why},
                                  {"restart_count", over.restart_count},
                                  {"deaths", nlohmann::ordered_json::array()}};
    for (const Death& death : over.deaths) {
        result["deaths"].push_back(json_of(death));
    }
    return result.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace ddl::run
