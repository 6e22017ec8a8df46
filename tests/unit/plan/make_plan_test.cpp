// Workers, threads, grace, logs, stdin and exit codes, notes and --strict: the parts of the plan besides the
// rendezvous.
#include "plan/make_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/path_component.hpp"
#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::chrono_literals;

LaunchPlan plan_of(const Requested& requested, const HostFacts& host = machine()) {
    const Result<LaunchPlan> plan = make_plan(requested, host);
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    return plan ? *plan : LaunchPlan{};
}

std::string fixed_value(const LaunchPlan& plan, const std::string& name) {
    for (const Variable& variable : plan.fixed_environment) {
        if (variable.name == name) {
            return variable.value + " by " + variable.source;
        }
    }
    return "absent";
}

TEST(Lookups, FindWholeNamesOnly) {
    const std::vector<std::string> environment = {"AB=1", "A=2", "A=3", "E="};
    EXPECT_EQ(lookup(environment, "A").value, "2");
    EXPECT_TRUE(lookup(environment, "E").found);
    EXPECT_EQ(lookup(environment, "E").value, "");
    EXPECT_FALSE(lookup(environment, "B").found);
}

TEST(Workers, AreCountedAsAsked) {
    EXPECT_EQ(plan_of(request({})).workers, 1);
    EXPECT_EQ(plan_of(request({{Flag::kNprocPerNode, "3"}})).workers, 3);
    EXPECT_EQ(plan_of(request({{Flag::kNprocPerNode, "cpu"}})).workers, 4);
    EXPECT_EQ(plan_of(request({{Flag::kNprocPerNode, "gpu"}})).workers, 2);
    EXPECT_EQ(plan_of(request({{Flag::kNprocPerNode, "auto"}})).workers, 2);
    HostFacts without_gpus = machine();
    without_gpus.gpus = 0;
    EXPECT_EQ(plan_of(request({{Flag::kNprocPerNode, "auto"}}), without_gpus).workers, 4);
    EXPECT_EQ(error_of(request({{Flag::kNprocPerNode, "gpu"}}), without_gpus),
              "--nproc-per-node: gpu, but no GPU is visible on n0; try auto or a number");
}

TEST(Workers, SayWhatIsWrong) {
    EXPECT_EQ(error_of(request({{Flag::kNprocPerNode, "0"}})), "--nproc-per-node: \"0\" is not between 1 and 4096");
    EXPECT_EQ(error_of(request({{Flag::kNprocPerNode, "-2"}})), "--nproc-per-node: \"-2\" is not between 1 and 4096");
    EXPECT_EQ(error_of(request({{Flag::kNprocPerNode, "5000"}})),
              "--nproc-per-node: \"5000\" is not between 1 and 4096");
    EXPECT_EQ(error_of(by_variables({{Flag::kNprocPerNode, "many"}})),
              "PET_NPROC_PER_NODE: \"many\" is not a number, auto, cpu or gpu");
    EXPECT_EQ(error_of(request({{Flag::kNprocPerNode, "xpu"}})),
              "--nproc-per-node: xpu devices can't be counted; try a number");
}

TEST(Workers, RoleAndNodeName) {
    const LaunchPlan plan = plan_of(request({{Flag::kRole, "trainer"}}));
    EXPECT_EQ(plan.role, "trainer");
    EXPECT_EQ(plan.node_name, "n0");
    EXPECT_EQ(plan_of(request({})).role, "default");
}

TEST(Devices, EveryWorkerNeedsOne) {
    const HostFacts host = machine({}, {"CUDA_VISIBLE_DEVICES=4,5"});
    const Requested three = request({{Flag::kNprocPerNode, "3"}, {Flag::kVirtualLocalRank, "1"}});
    EXPECT_EQ(error_of(three, host), "--virtual-local-rank: CUDA_VISIBLE_DEVICES=4,5 has 2 devices for 3 workers");
    EXPECT_EQ(error_of(three), "no error") << "without a list the plain index is used";
    EXPECT_TRUE(
        plan_of(request({{Flag::kNprocPerNode, "2"}, {Flag::kVirtualLocalRank, "1"}}), host).virtual_local_rank);
    EXPECT_THAT(error_of(three, machine({}, {"HIP_VISIBLE_DEVICES="})), HasSubstr("HIP_VISIBLE_DEVICES= has 0"));
}

TEST(Threads, OneEachWithSeveralWorkersAsInTorchrun) {
    const LaunchPlan one = plan_of(request({}));
    EXPECT_EQ(fixed_value(one, "OMP_NUM_THREADS"), "absent");
    EXPECT_THAT(one.notes, IsEmpty());
    const LaunchPlan two = plan_of(request({{Flag::kNprocPerNode, "2"}}));
    EXPECT_EQ(fixed_value(two, "OMP_NUM_THREADS"), "1 by default with several workers");
    EXPECT_THAT(two.notes,
                ElementsAre("OMP_NUM_THREADS is not set: every worker gets 1; --omp auto shares the cpus out"));
}

TEST(Threads, AnInheritedNumberIsLeftAlone) {
    const LaunchPlan plan = plan_of(request({{Flag::kNprocPerNode, "2"}}), machine({}, {"OMP_NUM_THREADS=7"}));
    EXPECT_EQ(fixed_value(plan, "OMP_NUM_THREADS"), "absent");
    EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(Threads, CanBeSharedOutOrNamed) {
    const LaunchPlan shared = plan_of(request({{Flag::kNprocPerNode, "2"}, {Flag::kOmp, "auto"}}));
    EXPECT_EQ(fixed_value(shared, "OMP_NUM_THREADS"), "2 by --omp");
    EXPECT_THAT(shared.notes, IsEmpty());
    const LaunchPlan crowded = plan_of(request({{Flag::kNprocPerNode, "9"}, {Flag::kOmp, "auto"}}));
    EXPECT_EQ(fixed_value(crowded, "OMP_NUM_THREADS"), "1 by --omp");
    const LaunchPlan named = plan_of(request({{Flag::kOmp, "5"}}), machine({}, {"OMP_NUM_THREADS=7"}));
    EXPECT_EQ(fixed_value(named, "OMP_NUM_THREADS"), "5 by --omp");
    EXPECT_EQ(error_of(request({{Flag::kOmp, "x"}})), "--omp: \"x\" is not a whole number; try a number or auto");
    EXPECT_THAT(error_of(request({{Flag::kOmp, "0"}})), HasSubstr("\"0\" is not between 1"));
}

TEST(SupervisionPlan, Defaults) {
    const Supervision supervision = plan_of(request({})).supervision;
    EXPECT_EQ(supervision.max_restarts, 0);
    EXPECT_EQ(supervision.restart_grace, Duration(2s));
    EXPECT_EQ(supervision.shutdown_timeout, Duration(30s));
    EXPECT_THAT(supervision.signals, ElementsAre(SIGTERM, SIGINT, SIGHUP, SIGQUIT));
    EXPECT_FALSE(supervision.signal_ranks_only);
    EXPECT_FALSE(supervision.keep_children);
}

TEST(SupervisionPlan, TakesWhatWasAsked) {
    const Supervision supervision = plan_of(request({{Flag::kMaxRestarts, "3"},
                                                     {Flag::kRestartGrace, "0"},
                                                     {Flag::kShutdownTimeout, "1.5"},
                                                     {Flag::kSignalsToHandle, "SIGTERM,SIGUSR1"},
                                                     {Flag::kSignalRanksOnly, "1"},
                                                     {Flag::kKeepChildren, "1"}}))
                                        .supervision;
    EXPECT_EQ(supervision.max_restarts, 3);
    EXPECT_EQ(supervision.restart_grace, Duration(0s));
    EXPECT_EQ(supervision.shutdown_timeout, Duration(1500ms));
    EXPECT_THAT(supervision.signals, ElementsAre(SIGTERM, SIGUSR1));
    EXPECT_TRUE(supervision.signal_ranks_only);
    EXPECT_TRUE(supervision.keep_children);
}

TEST(SupervisionPlan, TorchsVariableIsTheDefaultOfTheShutdownTimeout) {
    const HostFacts host = machine({}, {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=5"});
    EXPECT_EQ(plan_of(request({}), host).supervision.shutdown_timeout, Duration(5s));
    EXPECT_EQ(plan_of(request({{Flag::kShutdownTimeout, "6"}}), host).supervision.shutdown_timeout, Duration(6s));
    const HostFacts bad = machine({}, {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon"});
    EXPECT_EQ(error_of(request({}), bad), "TORCH_ELASTIC_SHUTDOWN_TIMEOUT: \"soon\" is not a number of seconds");
    EXPECT_EQ(error_of(request({{Flag::kShutdownTimeout, "6"}}), bad), "no error");
}

TEST(SupervisionPlan, ExportsItsSignalsAsTorchrunDoes) {
    EXPECT_EQ(fixed_value(plan_of(request({})), "TORCHELASTIC_SIGNALS_TO_HANDLE"),
              "SIGTERM,SIGINT,SIGHUP,SIGQUIT by default");
    EXPECT_EQ(
        fixed_value(plan_of(by_variables({{Flag::kSignalsToHandle, "SIGTERM"}})), "TORCHELASTIC_SIGNALS_TO_HANDLE"),
        "SIGTERM by PET_SIGNALS_TO_HANDLE");
}

TEST(SupervisionPlan, SaysWhatIsWrong) {
    EXPECT_EQ(error_of(request({{Flag::kMaxRestarts, "abc"}})), "--max-restarts: \"abc\" is not a whole number");
    EXPECT_EQ(error_of(request({{Flag::kMaxRestarts, "-1"}})), "--max-restarts: \"-1\" is not between 0 and 1000000");
    EXPECT_EQ(error_of(request({{Flag::kRestartGrace, "2s"}})), "--restart-grace: \"2s\" is not a number of seconds");
    EXPECT_EQ(error_of(request({{Flag::kShutdownTimeout, "x"}})),
              "--shutdown-timeout: \"x\" is not a number of seconds");
    EXPECT_EQ(error_of(request({{Flag::kSignalsToHandle, "SIGTRM"}})),
              "--signals-to-handle: \"SIGTRM\" is not a signal to handle; try SIGTERM");
}

TEST(LogsPlan, Defaults) {
    const LogPlan logs = plan_of(request({{Flag::kNprocPerNode, "2"}})).logs;
    EXPECT_EQ(logs.directory, "");
    EXPECT_THAT(logs.redirects, ElementsAre(Streams{}, Streams{}));
    EXPECT_THAT(logs.tees, ElementsAre(Streams{}, Streams{}));
    EXPECT_THAT(logs.on_console, ElementsAre(true, true));
    EXPECT_EQ(logs.prefix_template, "[${role_name}${local_rank}]:");
}

TEST(LogsPlan, TeeImpliesAFile) {
    const LogPlan logs = plan_of(request({{Flag::kNprocPerNode, "3"},
                                          {Flag::kTee, "0:3"},
                                          {Flag::kRedirects, "0:1,1:2"},
                                          {Flag::kLogDir, "logs"},
                                          {Flag::kLocalRanksFilter, "0,2"}}))
                             .logs;
    EXPECT_EQ(logs.directory, "logs");
    EXPECT_THAT(logs.tees, ElementsAre(Streams{true, true}, Streams{}, Streams{}));
    EXPECT_THAT(logs.redirects, ElementsAre(Streams{true, true}, Streams{false, true}, Streams{}));
    EXPECT_THAT(logs.on_console, ElementsAre(true, false, true));
}

TEST(LogsPlan, FilesWithoutADirectoryGoToOneOfTheUserAndANoteSaysSo) {
    const LaunchPlan tee = plan_of(request({{Flag::kTee, "1"}, {Flag::kRdzvId, "j"}}));
    EXPECT_EQ(tee.logs.directory, "/tmp/ddlaunch-logs-1000");
    EXPECT_THAT(tee.notes, ElementsAre("logs: /tmp/ddlaunch-logs-1000/j"));
    const HostFacts host = machine({}, {"TMPDIR=/var/tmp"});
    const LaunchPlan redirects = plan_of(request({{Flag::kRedirects, "0:2"}}), host);
    EXPECT_EQ(redirects.logs.directory, "/var/tmp/ddlaunch-logs-1000");
    EXPECT_THAT(redirects.notes, ElementsAre("logs: /var/tmp/ddlaunch-logs-1000/f00d"));
}

TEST(LogsPlan, TheJobsDirectoryIsNamedAsItWillBe) {
    const LaunchPlan odd = plan_of(request({{Flag::kTee, "1"}, {Flag::kRdzvId, "a/b"}}));
    EXPECT_THAT(odd.notes, ElementsAre("logs: /tmp/ddlaunch-logs-1000/" + path_component("a/b")));
    const LaunchPlan met = plan_of(request({{Flag::kTee, "1"}, {Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "h0"}}));
    EXPECT_THAT(met.notes, ElementsAre("logs: /tmp/ddlaunch-logs-1000/<id of the job>"))
        << "only the rendezvous knows it";
}

TEST(LogsPlan, NoDirectoryIsMadeUpWhenNothingGoesToFiles) {
    for (const Requested& requested : {request({}), request({{Flag::kTee, "0"}, {Flag::kRedirects, "0:0"}})}) {
        EXPECT_EQ(plan_of(requested).logs.directory, "");
        EXPECT_TRUE(plan_of(requested).notes.empty());
    }
    const LaunchPlan given = plan_of(request({{Flag::kTee, "1"}, {Flag::kLogDir, "logs"}}));
    EXPECT_EQ(given.logs.directory, "logs");
    EXPECT_TRUE(given.notes.empty());
}

TEST(LogsPlan, AFilterThatLetsNothingThroughIsNamed) {
    const LaunchPlan plan = plan_of(request({{Flag::kLocalRanksFilter, "3,7"}}));
    EXPECT_THAT(plan.logs.on_console, ElementsAre(false));
    EXPECT_THAT(plan.notes, ElementsAre("--local-ranks-filter: names no local rank of this node (0 to 0), so no "
                                        "worker's output will be shown"));
    EXPECT_TRUE(plan_of(request({{Flag::kLocalRanksFilter, "0,7"}})).notes.empty());
}

TEST(LogsPlan, PrefixByFlagThenVariable) {
    const HostFacts host = machine({}, {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=<${rank}>"});
    EXPECT_EQ(plan_of(request({}), host).logs.prefix_template, "<${rank}>");
    EXPECT_EQ(plan_of(request({{Flag::kLogLinePrefixTemplate, "x"}}), host).logs.prefix_template, "x");
}

TEST(LogsPlan, FiltersAndFiles) {
    const LaunchPlan plan = plan_of(request({{Flag::kDuplicateStdoutFilters, "a,,b,c"},
                                             {Flag::kDuplicateStderrFilters, "Error"},
                                             {Flag::kEvents, "e.jsonl"},
                                             {Flag::kResultFile, "r.json"},
                                             {Flag::kQuiet, "1"}}));
    EXPECT_THAT(plan.logs.stdout_filters, ElementsAre("a,b", "c"));
    EXPECT_THAT(plan.logs.stderr_filters, ElementsAre("Error"));
    EXPECT_EQ(plan.events_file, "e.jsonl");
    EXPECT_EQ(plan.result_file, "r.json");
    EXPECT_TRUE(plan.quiet);
}

TEST(LogsPlan, SaysWhatIsWrong) {
    EXPECT_THAT(error_of(request({{Flag::kTee, "7"}})), HasSubstr("--tee: \"7\" is not 0 (none)"));
    EXPECT_THAT(error_of(request({{Flag::kRedirects, "a:1"}})), HasSubstr("--redirects: \"a\" is neither"));
    EXPECT_THAT(error_of(request({{Flag::kLocalRanksFilter, "a"}})), HasSubstr("--local-ranks-filter: \"a\" is"));
}

TEST(StdinPlan, ALoneWorkerOnATerminalKeepsIt) {
    HostFacts host = machine();
    EXPECT_EQ(plan_of(request({}), host).stdin_mode, StdinMode::kNone);
    host.stdin_is_terminal = true;
    EXPECT_EQ(plan_of(request({}), host).stdin_mode, StdinMode::kTerminalForSingleRank);
    EXPECT_EQ(plan_of(request({{Flag::kNprocPerNode, "2"}}), host).stdin_mode, StdinMode::kNone);
    EXPECT_EQ(plan_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "h0"}}), host).stdin_mode, StdinMode::kNone);
    EXPECT_EQ(plan_of(request({{Flag::kStdin, "none"}}), host).stdin_mode, StdinMode::kNone);
}

TEST(StdinPlan, CanBeGivenToOneOrAll) {
    const LaunchPlan one = plan_of(request({{Flag::kStdin, "3"}}));
    EXPECT_EQ(one.stdin_mode, StdinMode::kRank);
    EXPECT_EQ(one.stdin_rank, 3);
    EXPECT_EQ(plan_of(request({{Flag::kStdin, "all"}})).stdin_mode, StdinMode::kAll);
    EXPECT_EQ(error_of(request({{Flag::kStdin, "some"}})), "--stdin: \"some\" is not a rank, none or all");
    EXPECT_EQ(error_of(request({{Flag::kStdin, "-1"}})), "--stdin: \"-1\" is not a rank, none or all");
}

TEST(EndsPlan, ChoicesAreChecked) {
    EXPECT_FALSE(plan_of(request({})).exit_code_class);
    EXPECT_TRUE(plan_of(request({{Flag::kExitCode, "class"}})).exit_code_class);
    EXPECT_FALSE(plan_of(request({{Flag::kExitCode, "exact"}})).exit_code_class);
    EXPECT_EQ(error_of(request({{Flag::kExitCode, "klass"}})), "--exit-code: \"klass\" is not one of exact, class");
    EXPECT_EQ(plan_of(request({})).store_compat, "auto");
    EXPECT_EQ(plan_of(request({{Flag::kStoreCompat, "1.13"}})).store_compat, "1.13");
    EXPECT_EQ(error_of(request({{Flag::kStoreCompat, "2.0"}})),
              "--store-compat: \"2.0\" is not one of auto, 1.13, 2.1");
    EXPECT_THAT(plan_of(request({{Flag::kStoreAllow, "10.0.0.0/8,fd00::1"}})).store_allow,
                ElementsAre("10.0.0.0/8", "fd00::1"));
    EXPECT_THAT(error_of(request({{Flag::kStoreAllow, "all"}})), HasSubstr("--store-allow: \"all\" is not an address"));
    EXPECT_THAT(error_of(request({{Flag::kStorePort, "x"}})), HasSubstr("--store-port: \"x\" is neither a port"));
}

TEST(NoEffect, IsSaidOnceForAll) {
    const Requested requested = request({{Flag::kMonitorInterval, "1"},
                                         {Flag::kStartMethod, "fork"},
                                         {Flag::kEventLogHandler, "console"},
                                         {Flag::kRdzvConf, "read_timeout=3"}});
    EXPECT_THAT(plan_of(requested).notes,
                ElementsAre("no effect here: --monitor-interval, --start-method, --event-log-handler, "
                            "--rdzv-conf read_timeout"));
}

TEST(NoEffect, IsNeverSaidOfVariables) {
    const Requested requested = by_variables({{Flag::kMonitorInterval, "1"},
                                              {Flag::kStartMethod, "fork"},
                                              {Flag::kEventLogHandler, "console"},
                                              {Flag::kNodeRank, "0"},
                                              {Flag::kRdzvConf, "read_timeout=3"}});
    EXPECT_THAT(plan_of(requested).notes, IsEmpty());
}

TEST(NoEffect, IsAnErrorWithStrict) {
    EXPECT_EQ(error_of(request({{Flag::kMonitorInterval, "1"}, {Flag::kStrict, "1"}})),
              "--strict: no effect here: --monitor-interval; leave out what has none");
    EXPECT_EQ(error_of(request({{Flag::kMaxRestarts, "1"}, {Flag::kStrict, "1"}})), "no error");
}

TEST(Refused, FlagsSayWhy) {
    EXPECT_EQ(error_of(request({{Flag::kLogsSpecs, "x"}})),
              "--logs-specs: Python log plug-ins cannot be loaded; try --log-dir, --redirects and --tee");
    EXPECT_EQ(error_of(request({{Flag::kNumaBinding, "node"}})),
              "--numa-binding: binding to NUMA nodes is not available; try --no-python with a numactl command line");
    EXPECT_EQ(error_of(request({{Flag::kPrintCompletion, "bash"}})),
              "--print-completion: there is no completion script");
}

TEST(Errors, TheFirstOneIsToldOnOneLine) {
    const std::string error = error_of(request({{Flag::kNnodes, "a\nb"}, {Flag::kMaxRestarts, "x"}}, {}));
    EXPECT_EQ(error, "--nnodes: \"a?b\" is neither N nor MIN:MAX; try 2 or 1:4");
    EXPECT_THAT(error, Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace ddl::plan::testing
