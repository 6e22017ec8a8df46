// Which command an invocation means: a launch, the store, or a text.
#include "cli/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/compatibility.hpp"
#include "unit/cli/cli_fixture.hpp"

namespace ddl::cli::testing {
namespace {

using plan::Flag;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string text_of(const Words& words, const Words& environment = {}) {
    const Result<Command> command = command_of(words, environment);
    const PrintText* text = command ? std::get_if<PrintText>(&*command) : nullptr;
    return text == nullptr ? "not a text" : text->text;
}

ServeStore store_of(const Words& words) {
    const Result<Command> command = command_of(words);
    const ServeStore* store = command ? std::get_if<ServeStore>(&*command) : nullptr;
    EXPECT_NE(store, nullptr) << (command ? "another command" : command.error().message);
    return store == nullptr ? ServeStore{} : *store;
}

TEST(LaunchCommand, IsTheDefault) {
    const Launch launch = launch_of({"--nproc_per_node=4", "./digits", "x"});
    EXPECT_EQ(value_of(launch, Flag::kNprocPerNode), "4");
    EXPECT_THAT(launch.requested.program, ElementsAre("./digits", "x"));
    EXPECT_FALSE(launch.dry_run);
}

TEST(LaunchCommand, MayBeCalledRun) {
    EXPECT_THAT(launch_of({"run", "--nnodes=2", "train.py"}).requested.program, ElementsAre("train.py"));
    EXPECT_THAT(launch_of({"run", "run"}).requested.program, ElementsAre("run"));
    EXPECT_THAT(launch_of({"./run"}).requested.program, ElementsAre("./run"));
    EXPECT_THAT(launch_of({"--nnodes=2", "run"}).requested.program, ElementsAre("run"));
}

TEST(LaunchCommand, WithoutAProgramIsForThePlanToRefuse) {
    EXPECT_EQ(error_of({}), "no error");
    EXPECT_THAT(launch_of({"--standalone"}).requested.program, IsEmpty());
}

TEST(LaunchCommand, DryRunIsTyped) {
    EXPECT_TRUE(launch_of({"--dry-run", "x"}).dry_run);
    EXPECT_TRUE(launch_of({"--dry_run", "x"}).dry_run);
    EXPECT_FALSE(launch_of({"x", "--dry-run"}).dry_run);
}

TEST(LaunchCommand, WorksWithoutEvenAProgramName) {
    EXPECT_TRUE(parse(0, nullptr, {}).has_value());
}

TEST(Texts, Version) {
    EXPECT_THAT(text_of({"--version"}), StartsWith("ddlaunch "));
    EXPECT_THAT(text_of({"--version"}), HasSubstr("."));
}

TEST(Texts, HelpIsOneLineForEachFlag) {
    const std::string help = text_of({"--help"});
    EXPECT_EQ(text_of({"-h"}), help);
    EXPECT_EQ(text_of({"--nnodes", "2", "-h", "x"}), help);
    for (const plan::FlagInfo& entry : plan::flag_table()) {
        const std::string start = plan::spelling(entry.flag) + (entry.takes_value() ? " " : "  ");
        const std::size_t at =
            help.find("  " + start) != std::string::npos ? help.find("  " + start) : help.find(", " + start);
        if (entry.group == plan::FlagGroup::kHidden) {
            EXPECT_EQ(help.find(plan::spelling(entry.flag) + " "), std::string::npos) << entry.name;
            continue;
        }
        ASSERT_NE(at, std::string::npos) << entry.name;
        const std::string line = help.substr(at, help.find('\n', at) - at);
        EXPECT_THAT(line, HasSubstr(std::string(entry.meaning))) << entry.name;
    }
}

TEST(Texts, HelpShowsTheWaysToStart) {
    const std::string help = text_of({"--help"});
    EXPECT_THAT(help, HasSubstr("ddlaunch --standalone --nproc-per-node 4 train.py"));
    EXPECT_THAT(help, HasSubstr("--rdzv-endpoint h0:29400"));
    EXPECT_THAT(help, HasSubstr("ddlaunch store --port N"));
    EXPECT_THAT(help, HasSubstr("  -r, --redirects SPEC"));
    EXPECT_THAT(help, Not(HasSubstr("\t")));
    EXPECT_EQ(help.back(), '\n');
}

TEST(Texts, HelpLinesFitAWindow) {
    const std::string help = text_of({"--help"});
    for (std::size_t start = 0; start < help.size(); start = help.find('\n', start) + 1) {
        EXPECT_LE(help.find('\n', start) - start, 118U) << help.substr(start, 120);
    }
}

TEST(Texts, HelpOfTheProgramIsItsOwn) {
    EXPECT_THAT(launch_of({"train.py", "--help"}).requested.program, ElementsAre("train.py", "--help"));
    EXPECT_THAT(launch_of({"train.py", "--version"}).requested.program, ElementsAre("train.py", "--version"));
}

TEST(Texts, AreNotDisturbedByBadVariables) {
    EXPECT_THAT(text_of({"--help"}, {"PET_STANDALONE=maybe"}), HasSubstr("--nnodes"));
}

TEST(Texts, Compatibility) {
    EXPECT_EQ(text_of({"--print-compatibility"}), plan::compatibility_document());
}

TEST(StoreCommand, NeedsAPort) {
    const ServeStore store = store_of({"store", "--port", "29500"});
    EXPECT_EQ(store.port, 29500);
    EXPECT_FALSE(store.everywhere);
    EXPECT_EQ(store.compat, "auto");
    EXPECT_THAT(store.allow, IsEmpty());
    EXPECT_EQ(store_of({"store", "--port=0"}).port, 0);
    EXPECT_THAT(error_of({"store"}), StartsWith("store: --port is required"));
}

TEST(StoreCommand, TakesTheRest) {
    const ServeStore store =
        store_of({"store", "--everywhere", "--port", "1", "--allow", "10.0.0.0/8,fd00::/8", "--compat", "1.13"});
    EXPECT_TRUE(store.everywhere);
    EXPECT_EQ(store.compat, "1.13");
    EXPECT_THAT(store.allow, ElementsAre("10.0.0.0/8", "fd00::/8"));
    EXPECT_THAT(store_of({"store", "--port", "1", "--allow", "any"}).allow, ElementsAre("any"));
}

TEST(StoreCommand, SaysWhatIsWrongOnOneLine) {
    for (const Words& words : {Words{"store", "--port", "x"}, Words{"store", "--port", "70000"},
                               Words{"store", "--port", "1", "--compat", "2"}, Words{"store", "--port", "1", "extra"},
                               Words{"store", "--port", "1", "--nope"}, Words{"store", "--port"}}) {
        const std::string error = error_of(words);
        EXPECT_THAT(error, StartsWith("store: ")) << words.back();
        EXPECT_THAT(error, HasSubstr("; see ddlaunch store --help")) << words.back();
        EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 0) << error;
    }
    EXPECT_EQ(error_of({"store", "--port", "1", "--allow", "h0"}),
              "store: --allow: \"h0\" is not an address or a network; try 10.0.0.0/8 or any");
}

TEST(StoreCommand, HasItsOwnHelp) {
    EXPECT_THAT(text_of({"store", "--help"}), HasSubstr("--everywhere"));
    EXPECT_THAT(text_of({"store", "-h"}), HasSubstr("ddlaunch store"));
}

TEST(StoreCommand, IsOnlyMeantByTheFirstWord) {
    EXPECT_THAT(launch_of({"--standalone", "store"}).requested.program, ElementsAre("store"));
    EXPECT_THAT(launch_of({"./store", "--port", "1"}).requested.program, ElementsAre("./store", "--port", "1"));
}

}  // namespace
}  // namespace ddl::cli::testing
