// Spellings, shortened names, values, where the options end, and the variables behind them.
#include "cli/arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/flag_table.hpp"
#include "unit/cli/cli_fixture.hpp"

namespace ddl::cli::testing {
namespace {

using plan::Flag;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string underscored(std::string name) {
    for (std::size_t i = 2; i < name.size(); ++i) {
        name[i] = name[i] == '-' ? '_' : name[i];
    }
    return name;
}

// --print-completion and the like are known here, too: it is make_plan() that refuses them.
bool starts_workers(const plan::FlagInfo& entry) {
    return entry.flag != Flag::kHelp && entry.flag != Flag::kVersion && entry.flag != Flag::kPrintCompatibility;
}

TEST(Arguments, EveryFlagIsTakenInBothSpellings) {
    for (const plan::FlagInfo& entry : plan::flag_table()) {
        const std::string dashed = plan::spelling(entry.flag);
        for (const std::string& name : {dashed, underscored(dashed)}) {
            if (!starts_workers(entry)) {
                continue;
            }
            const Words words = entry.takes_value() ? Words{name, "v", "train.py"} : Words{name, "train.py"};
            const Launch launch = launch_of(words);
            EXPECT_EQ(value_of(launch, entry.flag), entry.takes_value() ? "v" : "1") << name;
            EXPECT_TRUE(launch.requested.is_typed(entry.flag)) << name;
            EXPECT_THAT(launch.requested.program, ElementsAre("train.py")) << name;
        }
    }
}

TEST(Arguments, ValuesMayFollowAnEqualsSign) {
    for (const plan::FlagInfo& entry : plan::flag_table()) {
        if (!entry.takes_value()) {
            continue;
        }
        const std::string name = plan::spelling(entry.flag);
        EXPECT_EQ(value_of(launch_of({name + "=a=b", "x"}), entry.flag), "a=b") << name;
        EXPECT_EQ(value_of(launch_of({underscored(name) + "=", "x"}), entry.flag), "") << name;
    }
}

TEST(Arguments, SwitchesTakeNoValue) {
    EXPECT_EQ(error_of({"--standalone=1", "x"}), "--standalone: takes no value, but \"1\" was given");
    EXPECT_EQ(error_of({"--no_python=", "x"}), "--no-python: takes no value, but \"\" was given");
    EXPECT_THAT(launch_of({"--standalone", "true"}).requested.program, ElementsAre("true"));
}

TEST(Arguments, ShortenedNames) {
    EXPECT_EQ(value_of(launch_of({"--nnode", "2", "x"}), Flag::kNnodes), "2");
    EXPECT_EQ(value_of(launch_of({"--standa", "x"}), Flag::kStandalone), "1");
    EXPECT_EQ(value_of(launch_of({"--nproc=2", "x"}), Flag::kNprocPerNode), "2");
    EXPECT_EQ(value_of(launch_of({"--nproc_per", "2", "x"}), Flag::kNprocPerNode), "2");
    EXPECT_EQ(value_of(launch_of({"--max", "2", "x"}), Flag::kMaxRestarts), "2");
    EXPECT_EQ(value_of(launch_of({"--re=3", "x"}), Flag::kRedirects), "3");
    EXPECT_EQ(error_of({"--log", "d", "x"}),
              "--log: can mean --log-dir or --log-line-prefix-template or --logs-specs; write more of it");
    EXPECT_EQ(error_of({"--master=1", "x"}), "--master: can mean --master-addr or --master-port; write more of it");
}

TEST(Arguments, UnknownNamesGetAHint) {
    EXPECT_EQ(error_of({"--nnodse", "2", "x"}), "--nnodse: no such flag; did you mean --nnodes?");
    EXPECT_EQ(error_of({"--nproc_per_noed=2", "x"}), "--nproc_per_noed: no such flag; did you mean --nproc-per-node?");
    EXPECT_EQ(error_of({"-nnodes", "2", "x"}), "-nnodes: no such flag; did you mean --nnodes?");
    EXPECT_EQ(error_of({"--hostfile", "h", "x"}), "--hostfile: no such flag; see --help");
    EXPECT_EQ(error_of({"-x", "y"}), "-x: no such flag; see --help");
    EXPECT_EQ(error_of({"--=1", "y"}), "--: no such flag; see --help");
}

TEST(Arguments, Letters) {
    EXPECT_EQ(value_of(launch_of({"-m", "pkg"}), Flag::kModule), "1");
    EXPECT_EQ(value_of(launch_of({"-r", "3", "x"}), Flag::kRedirects), "3");
    EXPECT_EQ(value_of(launch_of({"-r3", "x"}), Flag::kRedirects), "3");
    EXPECT_EQ(value_of(launch_of({"-r=3", "x"}), Flag::kRedirects), "3");
    EXPECT_EQ(value_of(launch_of({"-t0:1,1:3", "x"}), Flag::kTee), "0:1,1:3");
    const Launch cluster = launch_of({"-qmr", "2", "pkg"});
    EXPECT_EQ(value_of(cluster, Flag::kQuiet), "1");
    EXPECT_EQ(value_of(cluster, Flag::kModule), "1");
    EXPECT_EQ(value_of(cluster, Flag::kRedirects), "2");
    EXPECT_THAT(cluster.requested.program, ElementsAre("pkg"));
}

TEST(Arguments, OfARepeatedFlagTheLastCounts) {
    EXPECT_EQ(value_of(launch_of({"--nnodes=1", "--nnodes", "2", "x"}), Flag::kNnodes), "2");
    EXPECT_EQ(value_of(launch_of({"--nproc-per-node=1", "--nproc_per_node=4", "x"}), Flag::kNprocPerNode), "4");
}

TEST(Arguments, AMissingValueIsSaid) {
    EXPECT_EQ(error_of({"--nnodes"}), "--nnodes: needs a value (N|MIN:MAX)");
    EXPECT_EQ(error_of({"--nnodes", "--standalone", "x"}),
              "--nnodes: needs a value (N|MIN:MAX); for one with a dash in front write --nnodes=--standalone");
    EXPECT_EQ(error_of({"--role", "--", "x"}),
              "--role: needs a value (NAME); for one with a dash in front write --role=--");
    EXPECT_EQ(error_of({"-r"}), "--redirects: needs a value (SPEC)");
}

TEST(Arguments, NegativeNumbersAndTextsWithBlanksAreValues) {
    EXPECT_EQ(value_of(launch_of({"--max-restarts", "-1", "x"}), Flag::kMaxRestarts), "-1");
    EXPECT_EQ(value_of(launch_of({"--log-line-prefix-template", "- ${rank}", "x"}), Flag::kLogLinePrefixTemplate),
              "- ${rank}");
    EXPECT_EQ(value_of(launch_of({"--role=-x", "x"}), Flag::kRole), "-x");
    EXPECT_THAT(launch_of({"-5", "a"}).requested.program, ElementsAre("-5", "a"));
    EXPECT_THAT(launch_of({"-", "a"}).requested.program, ElementsAre("-", "a"));
}

TEST(Arguments, OptionsEndAtTheFirstOtherWord) {
    const Launch launch = launch_of({"--nnodes", "2", "train.py", "--nnodes", "5", "--nope", "--", "-r", "3"});
    EXPECT_EQ(value_of(launch, Flag::kNnodes), "2");
    EXPECT_EQ(value_of(launch, Flag::kRedirects), "absent");
    EXPECT_THAT(launch.requested.program, ElementsAre("train.py", "--nnodes", "5", "--nope", "--", "-r", "3"));
}

TEST(Arguments, OptionsEndAtDoubleDash) {
    const Launch launch = launch_of({"--no-python", "--", "echo", "--nnodes", "5", "--", "x"});
    EXPECT_EQ(value_of(launch, Flag::kNoPython), "1");
    EXPECT_EQ(value_of(launch, Flag::kNnodes), "absent");
    EXPECT_THAT(launch.requested.program, ElementsAre("echo", "--nnodes", "5", "--", "x"));
    EXPECT_THAT(launch_of({"--", "--nnodes"}).requested.program, ElementsAre("--nnodes"));
    EXPECT_THAT(launch_of({"--"}).requested.program, IsEmpty());
}

TEST(Arguments, EmptyWordsArePassedOn) {
    EXPECT_THAT(launch_of({"", "a"}).requested.program, ElementsAre("", "a"));
    EXPECT_THAT(launch_of({"train.py", "", "a"}).requested.program, ElementsAre("train.py", "", "a"));
    EXPECT_EQ(value_of(launch_of({"--role", "", "x"}), Flag::kRole), "");
}

TEST(Variables, EveryFlagThatHasOneTakesItsDefaultFromIt) {
    for (const plan::FlagInfo& entry : plan::flag_table()) {
        const std::string name = plan::variable_name(entry.flag);
        if (name.empty()) {
            continue;
        }
        const std::string text = entry.takes_value() ? "v" : "1";
        const Launch launch = launch_of({"x"}, {name + "=" + text});
        EXPECT_EQ(value_of(launch, entry.flag), text) << name;
        EXPECT_FALSE(launch.requested.is_typed(entry.flag)) << name;
        EXPECT_EQ(launch.requested[entry.flag]->origin, name);
    }
}

TEST(Variables, GiveWayToTheCommandLine) {
    const Launch launch = launch_of({"--nnodes=2", "x"}, {"PET_NNODES=5", "PET_NPROC_PER_NODE=3"});
    EXPECT_EQ(value_of(launch, Flag::kNnodes), "2");
    EXPECT_TRUE(launch.requested.is_typed(Flag::kNnodes));
    EXPECT_EQ(value_of(launch, Flag::kNprocPerNode), "3");
}

TEST(Variables, SwitchesTakeWordsAndDigits) {
    for (const char* yes : {"1", "true", "True", "yes", "on"}) {
        EXPECT_TRUE(launch_of({"x"}, {std::string("PET_STANDALONE=") + yes}).requested.is_on(Flag::kStandalone)) << yes;
    }
    for (const char* no : {"0", "false", "no", "off"}) {
        EXPECT_FALSE(launch_of({"x"}, {std::string("PET_STANDALONE=") + no}).requested.is_on(Flag::kStandalone)) << no;
    }
    EXPECT_EQ(error_of({"x"}, {"PET_STANDALONE=maybe"}), "PET_STANDALONE: \"maybe\" is neither yes nor no; try 1 or 0");
    EXPECT_EQ(error_of({"x"}, {"DDL_QUIET=2"}), "DDL_QUIET: \"2\" is neither yes nor no; try 1 or 0");
}

TEST(Variables, EmptyAndUnknownOnesCountAsNotSet) {
    const Launch launch = launch_of({"x"}, {"PET_NNODES=", "PET_STANDALONE=", "PET_UNKNOWN=1", "PET_=1", "PET_NNODES",
                                            "DDL_NNODES=4", "PET_WORKER_STORE=worker", "DDL_DRY_RUN=1", "nnodes=7"});
    EXPECT_EQ(value_of(launch, Flag::kNnodes), "absent");
    EXPECT_EQ(value_of(launch, Flag::kStandalone), "absent");
    EXPECT_EQ(value_of(launch, Flag::kWorkerStore), "absent");
    EXPECT_FALSE(launch.dry_run);
}

TEST(Variables, OfARepeatedOneTheFirstCounts) {
    EXPECT_EQ(value_of(launch_of({"x"}, {"PET_NNODES=2", "PET_NNODES=3"}), Flag::kNnodes), "2");
}

}  // namespace
}  // namespace ddl::cli::testing
