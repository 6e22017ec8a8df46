#include "plan/flag_table.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace ddl::plan {

namespace {

using enum FlagGroup;
using enum FlagClass;
using enum FlagOrigin;

constexpr std::array<FlagInfo, kFlagCount> kTable = {{
    {Flag::kStandalone, "standalone", '\0', "", kRendezvous, kUsed, kTorchrun,
     "one node, nobody else: free port, loopback only"},
    {Flag::kNnodes, "nnodes", '\0', "N|MIN:MAX", kRendezvous, kUsed, kTorchrun,
     "how many nodes take part, or the range that is enough [1]"},
    {Flag::kNprocPerNode, "nproc-per-node", '\0', "N|auto|cpu|gpu", kWorkers, kUsed, kTorchrun,
     "workers on this node; other nodes may have another number [1]"},
    {Flag::kRdzvEndpoint, "rdzv-endpoint", '\0', "HOST[:PORT],...", kRendezvous, kUsed, kTorchrun,
     "where the nodes meet: one or several of them [port 29400]"},
    {Flag::kRdzvBackend, "rdzv-backend", '\0', "c10d|static|etcd", kRendezvous, kUsed, kTorchrun,
     "c10d: the endpoint's owner hosts; static: node rank 0; etcd: refused so far"},
    {Flag::kRdzvId, "rdzv-id", '\0', "ID", kRendezvous, kUsed, kTorchrun, "name of the job; the same on all its nodes"},
    {Flag::kRdzvConf, "rdzv-conf", '\0', "K=V,...", kRendezvous, kUsed, kTorchrun,
     "join_timeout, last_call_timeout, rejoin_timeout, lease_timeout, takeover, ..."},
    {Flag::kJoinTimeout, "join-timeout", '\0', "SECONDS", kRendezvous, kUsed, kOurs,
     "short for --rdzv-conf join_timeout=SECONDS [600]"},
    {Flag::kNodeRank, "node-rank", '\0', "N", kRendezvous, kUsed, kTorchrun,
     "place of this node; 0 hosts a static rendezvous [0]"},
    {Flag::kMasterAddr, "master-addr", '\0', "HOST", kRendezvous, kUsed, kTorchrun,
     "static: address of node rank 0; one node: MASTER_ADDR"},
    {Flag::kMasterPort, "master-port", '\0', "PORT", kRendezvous, kUsed, kTorchrun,
     "static: port of node rank 0 [29500]; one node: MASTER_PORT"},
    {Flag::kLocalAddr, "local-addr", '\0', "ADDRESS", kRendezvous, kUsed, kTorchrun,
     "address under which the others reach this node"},
    {Flag::kScaleUp, "scale-up", '\0', "now|at-checkpoint|never", kRendezvous, kUsed, kOurs,
     "when a running job below MAX takes in nodes that come later [now]"},
    {Flag::kScaleUpDeadline, "scale-up-deadline", '\0', "SPAN", kRendezvous, kUsed, kOurs,
     "longest wait of --scale-up at-checkpoint for a checkpoint [30m]"},
    {Flag::kModule, "module", 'm', "", kWorkers, kUsed, kTorchrun, "run a Python module, like python -m"},
    {Flag::kNoPython, "no-python", '\0', "", kWorkers, kUsed, kTorchrun, "execute the program itself"},
    {Flag::kRunPath, "run-path", '\0', "", kWorkers, kUsed, kTorchrun, "run the script with Python, whatever its name"},
    {Flag::kRole, "role", '\0', "NAME", kWorkers, kUsed, kTorchrun, "role of this node's workers [default]"},
    {Flag::kVirtualLocalRank, "virtual-local-rank", '\0', "", kWorkers, kUsed, kTorchrun,
     "LOCAL_RANK=0 and one visible GPU for each worker"},
    {Flag::kOmp, "omp", '\0', "N|auto", kWorkers, kUsed, kOurs,
     "OMP_NUM_THREADS; auto: cpus / workers [1 with several workers]"},
    {Flag::kStdin, "stdin", '\0', "RANK|none|all", kWorkers, kUsed, kOurs,
     "who reads our input [a lone worker on a terminal]"},
    {Flag::kWorkerStore, "worker-store", '\0', "agent|worker", kStore, kUsed, kOurs,
     "who listens on MASTER_PORT: ddlaunch or rank 0 itself [agent]"},
    {Flag::kStorePort, "store-port", '\0', "N|A-B", kStore, kUsed, kOurs,
     "MASTER_PORT, or the range to take one from [a free one]"},
    {Flag::kStoreAllow, "store-allow", '\0', "CIDR,...|any", kStore, kUsed, kOurs,
     "further addresses that may use the workers' store"},
    {Flag::kStoreCompat, "store-compat", '\0', "auto|1.13|2.1", kStore, kUsed, kOurs,
     "protocol of PyTorch clients older than 2.2 [auto]"},
    {Flag::kMaxRestarts, "max-restarts", '\0', "N[/SPAN]", kEnd, kUsed, kTorchrun,
     "failures that the job may survive by a restart; 3/1h: that many in an hour [0]"},
    {Flag::kNoRestartExitCodes, "no-restart-exit-codes", '\0', "N,A-B,...", kEnd, kUsed, kOurs,
     "exit codes of workers (128+n for signals) that end the job at once, with 67"},
    {Flag::kFreeNodeLoss, "free-node-loss", '\0', "", kEnd, kUsed, kOurs, "lost nodes use up none of --max-restarts"},
    {Flag::kRestartBackoff, "restart-backoff", '\0', "SECONDS", kEnd, kUsed, kOurs,
     "pause before the second restart in a row, then doubled, up to 60 s [0]"},
    {Flag::kCrashLoopWindow, "crash-loop-window", '\0', "SECONDS", kEnd, kUsed, kOurs,
     "the same failure twice this soon after a start ends the job [5; 0: never]"},
    {Flag::kRestartGrace, "restart-grace", '\0', "SECONDS", kEnd, kUsed, kOurs,
     "time between TERM and KILL when a failure ends a round [2]"},
    {Flag::kShutdownTimeout, "shutdown-timeout", '\0', "SECONDS", kEnd, kUsed, kTorchrun,
     "time between TERM and KILL when the job is stopped [30]"},
    {Flag::kSignalsToHandle, "signals-to-handle", '\0', "NAME,...", kEnd, kUsed, kTorchrun,
     "signals that stop the job [SIGTERM,SIGINT,SIGHUP,SIGQUIT]"},
    {Flag::kForwardSignals, "forward-signals", '\0', "NAME,...", kEnd, kUsed, kOurs,
     "signals that are passed on to the workers and stop nothing, e.g. SIGUSR1"},
    {Flag::kSignalRanksOnly, "signal-ranks-only", '\0', "", kEnd, kUsed, kOurs,
     "signal the workers alone, not their process groups"},
    {Flag::kKeepChildren, "keep-children", '\0', "", kEnd, kUsed, kOurs,
     "leave what workers that succeeded started and left behind"},
    {Flag::kExitCode, "exit-code", '\0', "exact|class", kEnd, kUsed, kOurs,
     "class: only 0, 2, 65 (retry) and 67 (do not), for schedulers [exact]"},
    {Flag::kLogDir, "log-dir", '\0', "DIR", kOutput, kUsed, kTorchrun,
     "where log and error files go [$TMPDIR/ddlaunch-logs-UID if -r or -t needs one]"},
    {Flag::kRedirects, "redirects", 'r', "SPEC", kOutput, kUsed, kTorchrun,
     "to files: 0 none, 1 stdout, 2 stderr, 3 both; or RANK:N,A-B:N [0]"},
    {Flag::kTee, "tee", 't', "SPEC", kOutput, kUsed, kTorchrun, "to files and, with a prefix, to the console [0]"},
    {Flag::kLogLinePrefixTemplate, "log-line-prefix-template", '\0', "TEXT", kOutput, kUsed, kTorchrun,
     "prefix with ${role_name} ${local_rank} ${rank} ${hostname}"},
    {Flag::kLocalRanksFilter, "local-ranks-filter", '\0', "N,...", kOutput, kUsed, kTorchrun,
     "only these local ranks reach the console [all]"},
    {Flag::kDuplicateStdoutFilters, "duplicate-stdout-filters", '\0', "TEXT,...", kOutput, kUsed, kTorchrun,
     "copy stdout lines with such a text to one file"},
    {Flag::kDuplicateStderrFilters, "duplicate-stderr-filters", '\0', "TEXT,...", kOutput, kUsed, kTorchrun,
     "copy stderr lines with such a text to one file"},
    {Flag::kEvents, "events", '\0', "FILE", kOutput, kUsed, kOurs, "append one JSON line per event"},
    {Flag::kResultFile, "result-file", '\0', "FILE", kOutput, kUsed, kOurs, "write how the job ended, as JSON"},
    {Flag::kQuiet, "quiet", 'q', "", kOutput, kUsed, kOurs, "no notes"},
    {Flag::kStrict, "strict", '\0', "", kThisCommand, kUsed, kOurs, "flags that have no effect here are errors"},
    {Flag::kDryRun, "dry-run", '\0', "", kThisCommand, kUsed, kOursTyped,
     "print the plan and each worker's environment; start nothing"},
    {Flag::kVersion, "version", '\0', "", kThisCommand, kUsed, kOursTyped, "print the version"},
    {Flag::kHelp, "help", 'h', "", kThisCommand, kUsed, kTorchrunTyped, "print this"},
    {Flag::kPrintCompatibility, "print-compatibility", '\0', "", kHidden, kUsed, kOursTyped,
     "print docs/COMPATIBILITY.md"},
    {Flag::kMonitorInterval, "monitor-interval", '\0', "SECONDS", kAccepted, kHarmless, kTorchrun,
     "nothing is polled: a death is noticed when it happens"},
    {Flag::kStartMethod, "start-method", '\0', "METHOD", kAccepted, kHarmless, kTorchrun,
     "every worker is a fresh process"},
    {Flag::kEventLogHandler, "event-log-handler", '\0', "NAME", kAccepted, kHarmless, kTorchrun,
     "there are no Python handlers; see --events"},
    {Flag::kLogsSpecs, "logs-specs", '\0', "NAME", kHidden, kRefused, kTorchrunTyped,
     "Python log plug-ins cannot be loaded; try --log-dir, --redirects and --tee"},
    {Flag::kNumaBinding, "numa-binding", '\0', "KIND", kHidden, kRefused, kTorchrunTyped,
     "binding to NUMA nodes is not available; try --no-python with a numactl command line"},
    {Flag::kPrintCompletion, "print-completion", '\0', "SHELL", kHidden, kRefused, kTorchrunTyped,
     "there is no completion script"},
}};

constexpr bool in_order() {
    for (std::size_t i = 0; i < kFlagCount; ++i) {
        if (static_cast<std::size_t>(kTable[i].flag) != i) {
            return false;
        }
    }
    return true;
}
static_assert(in_order());

std::string dashed(std::string_view name) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
}

}  // namespace

std::span<const FlagInfo, kFlagCount> flag_table() {
    return kTable;
}

const FlagInfo& info(Flag flag) {
    return kTable[static_cast<std::size_t>(flag)];
}

std::string spelling(Flag flag) {
    return "--" + std::string(info(flag).name);
}

std::string variable_name(Flag flag) {
    const FlagInfo& entry = info(flag);
    if (entry.origin == FlagOrigin::kTorchrunTyped || entry.origin == FlagOrigin::kOursTyped) {
        return {};
    }
    std::string name = entry.from_torchrun() ? "PET_" : "DDL_";
    for (const char c : entry.name) {
        name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
    }
    return name;
}

std::vector<Flag> flags_for_name(std::string_view name) {
    const std::string wanted = dashed(name);
    std::vector<Flag> all;
    std::vector<Flag> of_torchrun;
    for (const FlagInfo& entry : kTable) {
        if (entry.name == wanted) {
            return {entry.flag};
        }
        if (wanted.empty() || !entry.name.starts_with(wanted)) {
            continue;
        }
        all.push_back(entry.flag);
        if (entry.from_torchrun()) {
            of_torchrun.push_back(entry.flag);
        }
    }
    return of_torchrun.size() == 1 ? of_torchrun : all;
}

std::optional<Flag> flag_for_letter(char letter) {
    for (const FlagInfo& entry : kTable) {
        if (entry.letter == letter && letter != '\0') {
            return entry.flag;
        }
    }
    return std::nullopt;
}

std::optional<std::string> nearest_flag(std::string_view name) {
    std::vector<std::string> names;
    for (const FlagInfo& entry : kTable) {
        if (entry.group != FlagGroup::kHidden) {
            names.emplace_back(entry.name);
        }
    }
    const std::optional<std::string> nearest = nearest_name(dashed(name), names);
    return nearest ? std::optional<std::string>("--" + *nearest) : std::nullopt;
}

}  // namespace ddl::plan
