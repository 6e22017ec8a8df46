// The table of flags: every torchrun flag is there under both spellings, names and variables are derived rightly.
#include "plan/flag_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ddl::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Known {
    const char* dashed;
    const char* underscored;
    const char* variable;
    bool takes_value;
};

// torchrun 2.15, as published.
const Known kTorchrunFlags[] = {
    {"nnodes", "nnodes", "PET_NNODES", true},
    {"nproc-per-node", "nproc_per_node", "PET_NPROC_PER_NODE", true},
    {"rdzv-backend", "rdzv_backend", "PET_RDZV_BACKEND", true},
    {"rdzv-endpoint", "rdzv_endpoint", "PET_RDZV_ENDPOINT", true},
    {"rdzv-id", "rdzv_id", "PET_RDZV_ID", true},
    {"rdzv-conf", "rdzv_conf", "PET_RDZV_CONF", true},
    {"standalone", "standalone", "PET_STANDALONE", false},
    {"max-restarts", "max_restarts", "PET_MAX_RESTARTS", true},
    {"monitor-interval", "monitor_interval", "PET_MONITOR_INTERVAL", true},
    {"start-method", "start_method", "PET_START_METHOD", true},
    {"event-log-handler", "event_log_handler", "PET_EVENT_LOG_HANDLER", true},
    {"role", "role", "PET_ROLE", true},
    {"module", "module", "PET_MODULE", false},
    {"no-python", "no_python", "PET_NO_PYTHON", false},
    {"run-path", "run_path", "PET_RUN_PATH", false},
    {"log-dir", "log_dir", "PET_LOG_DIR", true},
    {"redirects", "redirects", "PET_REDIRECTS", true},
    {"tee", "tee", "PET_TEE", true},
    {"log-line-prefix-template", "log_line_prefix_template", "PET_LOG_LINE_PREFIX_TEMPLATE", true},
    {"local-ranks-filter", "local_ranks_filter", "PET_LOCAL_RANKS_FILTER", true},
    {"duplicate-stdout-filters", "duplicate_stdout_filters", "PET_DUPLICATE_STDOUT_FILTERS", true},
    {"duplicate-stderr-filters", "duplicate_stderr_filters", "PET_DUPLICATE_STDERR_FILTERS", true},
    {"node-rank", "node_rank", "PET_NODE_RANK", true},
    {"master-addr", "master_addr", "PET_MASTER_ADDR", true},
    {"master-port", "master_port", "PET_MASTER_PORT", true},
    {"local-addr", "local_addr", "PET_LOCAL_ADDR", true},
    {"logs-specs", "logs_specs", "", true},
    {"numa-binding", "numa_binding", "", true},
    {"signals-to-handle", "signals_to_handle", "PET_SIGNALS_TO_HANDLE", true},
    {"shutdown-timeout", "shutdown_timeout", "PET_SHUTDOWN_TIMEOUT", true},
    {"virtual-local-rank", "virtual_local_rank", "PET_VIRTUAL_LOCAL_RANK", false},
    {"print-completion", "print_completion", "", true},
    {"help", "help", "", false},
};

TEST(FlagTable, HasEveryTorchrunFlag) {
    for (const Known& known : kTorchrunFlags) {
        const std::vector<Flag> flags = flags_for_name(known.dashed);
        ASSERT_EQ(flags.size(), 1U) << known.dashed;
        EXPECT_EQ(flags_for_name(known.underscored), flags) << known.underscored;
        EXPECT_TRUE(info(flags.front()).from_torchrun()) << known.dashed;
        EXPECT_EQ(info(flags.front()).takes_value(), known.takes_value) << known.dashed;
        EXPECT_EQ(variable_name(flags.front()), known.variable) << known.dashed;
        EXPECT_EQ(spelling(flags.front()), std::string("--") + known.dashed);
    }
}

TEST(FlagTable, HasNoOtherFlagUnderTorchrunsName) {
    const auto count = std::count_if(flag_table().begin(), flag_table().end(),
                                     [](const FlagInfo& entry) { return entry.from_torchrun(); });
    EXPECT_EQ(static_cast<std::size_t>(count), std::size(kTorchrunFlags));
}

TEST(FlagTable, OwnFlagsHaveOwnVariables) {
    EXPECT_EQ(variable_name(Flag::kWorkerStore), "DDL_WORKER_STORE");
    EXPECT_EQ(variable_name(Flag::kSignalRanksOnly), "DDL_SIGNAL_RANKS_ONLY");
    EXPECT_EQ(variable_name(Flag::kDryRun), "");
    EXPECT_EQ(variable_name(Flag::kVersion), "");
}

TEST(FlagTable, NamesLettersAndVariablesAreUnique) {
    std::set<std::string> names;
    std::set<std::string> variables;
    std::set<char> letters;
    for (const FlagInfo& entry : flag_table()) {
        EXPECT_TRUE(names.insert(std::string(entry.name)).second) << entry.name;
        EXPECT_TRUE(entry.letter == '\0' || letters.insert(entry.letter).second) << entry.name;
        const std::string variable = variable_name(entry.flag);
        EXPECT_TRUE(variable.empty() || variables.insert(variable).second) << variable;
        EXPECT_FALSE(entry.meaning.empty()) << entry.name;
    }
}

TEST(FlagTable, MeaningsFitBesideTheNames) {
    for (const FlagInfo& entry : flag_table()) {
        EXPECT_LE(entry.meaning.size(), 88U) << entry.name;
        EXPECT_EQ(entry.meaning.find('\n'), std::string_view::npos) << entry.name;
    }
}

TEST(Prefixes, OneMeaningIsTaken) {
    EXPECT_THAT(flags_for_name("nnode"), ElementsAre(Flag::kNnodes));
    EXPECT_THAT(flags_for_name("standa"), ElementsAre(Flag::kStandalone));
    EXPECT_THAT(flags_for_name("redirect"), ElementsAre(Flag::kRedirects));
    EXPECT_THAT(flags_for_name("dry"), ElementsAre(Flag::kDryRun));
}

TEST(Prefixes, TheTwoSpellingsOfOneFlagAreNoAmbiguity) {
    EXPECT_THAT(flags_for_name("nproc"), ElementsAre(Flag::kNprocPerNode));
    EXPECT_THAT(flags_for_name("nproc_per"), ElementsAre(Flag::kNprocPerNode));
    EXPECT_THAT(flags_for_name("max"), ElementsAre(Flag::kMaxRestarts));
    EXPECT_THAT(flags_for_name("rdzv_e"), ElementsAre(Flag::kRdzvEndpoint));
}

TEST(Prefixes, OurFlagsDoNotTakeTorchrunsAbbreviationsAway) {
    EXPECT_THAT(flags_for_name("re"), ElementsAre(Flag::kRedirects));
    EXPECT_THAT(flags_for_name("event"), ElementsAre(Flag::kEventLogHandler));
    EXPECT_THAT(flags_for_name("events"), ElementsAre(Flag::kEvents));
    EXPECT_THAT(flags_for_name("res"), ElementsAre(Flag::kRestartBackoff, Flag::kRestartGrace, Flag::kResultFile));
}

TEST(Prefixes, SeveralMeaningsAreAllNamed) {
    EXPECT_THAT(flags_for_name("log"), ElementsAre(Flag::kLogDir, Flag::kLogLinePrefixTemplate, Flag::kLogsSpecs));
    EXPECT_THAT(flags_for_name("master"), ElementsAre(Flag::kMasterAddr, Flag::kMasterPort));
    EXPECT_THAT(flags_for_name("xyz"), IsEmpty());
    EXPECT_THAT(flags_for_name(""), IsEmpty());
}

TEST(Letters, AreTorchrunsAndQuiet) {
    EXPECT_EQ(flag_for_letter('m'), Flag::kModule);
    EXPECT_EQ(flag_for_letter('r'), Flag::kRedirects);
    EXPECT_EQ(flag_for_letter('t'), Flag::kTee);
    EXPECT_EQ(flag_for_letter('h'), Flag::kHelp);
    EXPECT_EQ(flag_for_letter('q'), Flag::kQuiet);
    EXPECT_EQ(flag_for_letter('x'), std::nullopt);
    EXPECT_EQ(flag_for_letter('\0'), std::nullopt);
}

TEST(NearestFlag, HintsAtSmallSlips) {
    EXPECT_EQ(nearest_flag("nnodse"), "--nnodes");
    EXPECT_EQ(nearest_flag("nproc_per_nod3"), "--nproc-per-node");
    EXPECT_EQ(nearest_flag("rdzv-endpont"), "--rdzv-endpoint");
    EXPECT_EQ(nearest_flag("hostfile"), std::nullopt);
    EXPECT_EQ(nearest_flag("print-compatibilit"), std::nullopt) << "hidden flags are not advertised";
}

}  // namespace
}  // namespace ddl::plan
