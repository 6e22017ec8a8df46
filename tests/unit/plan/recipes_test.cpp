// Command lines and environments as documents, operators and batch scripts have them: none may need a change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/dry_run.hpp"
#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Recipe {
    const char* name;
    std::vector<Given> typed;
    std::vector<Given> variables;
    Rendezvous kind;
    Endpoint endpoint;
    int min_nodes;
    int max_nodes;
    int workers;
    std::optional<int> node_rank;
    std::uint16_t master_port;  // 0: a free one
    std::vector<std::string> notes;
};

void PrintTo(const Recipe& recipe, std::ostream* out) {
    *out << recipe.name;
}

class Recipes : public ::testing::TestWithParam<Recipe> {};

TEST_P(Recipes, WorkAsTheyAre) {
    const Recipe& recipe = GetParam();
    Requested requested = by_variables({});
    for (const Given& one : recipe.variables) {
        requested.set(one.flag, {one.text, variable_name(one.flag), false});
    }
    for (const Given& one : recipe.typed) {
        requested.set(one.flag, {one.text, spelling(one.flag), true});
    }
    const HostFacts host = machine({}, {"OMP_NUM_THREADS=1"});
    const Result<LaunchPlan> plan = make_plan(requested, host);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->rendezvous.kind, recipe.kind);
    EXPECT_EQ(plan->rendezvous.endpoint, recipe.endpoint);
    EXPECT_EQ(plan->rendezvous.min_nodes, recipe.min_nodes);
    EXPECT_EQ(plan->rendezvous.max_nodes, recipe.max_nodes);
    EXPECT_EQ(plan->workers, recipe.workers);
    EXPECT_EQ(plan->rendezvous.node_rank, recipe.node_rank);
    EXPECT_EQ(plan->store_ports.first, recipe.master_port);
    EXPECT_EQ(plan->notes, recipe.notes);
    EXPECT_THAT(describe(*plan, host), HasSubstr("worker " + std::to_string(recipe.workers - 1) + ": "));
}

INSTANTIATE_TEST_SUITE_P(
    All, Recipes,
    ::testing::Values(Recipe{"single_node_of_the_torchrun_page",
                             {{Flag::kStandalone, "1"}, {Flag::kNnodes, "1"}, {Flag::kNprocPerNode, "4"}},
                             {},
                             Rendezvous::kLocal,
                             {},
                             1,
                             1,
                             4,
                             std::nullopt,
                             0,
                             {}},
                      Recipe{"several_single_node_jobs_of_the_torchrun_page",
                             {{Flag::kRdzvBackend, "c10d"},
                              {Flag::kRdzvEndpoint, "localhost:0"},
                              {Flag::kNnodes, "1"},
                              {Flag::kNprocPerNode, "2"}},
                             {},
                             Rendezvous::kLocal,
                             {},
                             1,
                             1,
                             2,
                             std::nullopt,
                             0,
                             {}},
                      Recipe{"fault_tolerant_of_the_torchrun_page",
                             {{Flag::kNnodes, "3"},
                              {Flag::kNprocPerNode, "2"},
                              {Flag::kMaxRestarts, "3"},
                              {Flag::kRdzvId, "123"},
                              {Flag::kRdzvBackend, "c10d"},
                              {Flag::kRdzvEndpoint, "node1.example.com:29400"}},
                             {},
                             Rendezvous::kDynamic,
                             {"node1.example.com", 29400},
                             3,
                             3,
                             2,
                             std::nullopt,
                             0,
                             {}},
                      Recipe{"elastic_of_the_torchrun_page",
                             {{Flag::kNnodes, "1:4"},
                              {Flag::kNprocPerNode, "2"},
                              {Flag::kMaxRestarts, "3"},
                              {Flag::kRdzvId, "123"},
                              {Flag::kRdzvBackend, "c10d"},
                              {Flag::kRdzvEndpoint, "node1.example.com"}},
                             {},
                             Rendezvous::kDynamic,
                             {"node1.example.com", 29400},
                             1,
                             4,
                             2,
                             std::nullopt,
                             0,
                             {}},
                      Recipe{"megatron_on_one_node",
                             {{Flag::kNprocPerNode, "8"},
                              {Flag::kNnodes, "1"},
                              {Flag::kNodeRank, "0"},
                              {Flag::kMasterAddr, "localhost"},
                              {Flag::kMasterPort, "6000"}},
                             {},
                             Rendezvous::kLocal,
                             {},
                             1,
                             1,
                             8,
                             std::nullopt,
                             6000,
                             {}},
                      Recipe{"megatron_on_several_nodes",
                             {{Flag::kNprocPerNode, "8"},
                              {Flag::kNnodes, "4"},
                              {Flag::kNodeRank, "3"},
                              {Flag::kMasterAddr, "10.1.0.1"},
                              {Flag::kMasterPort, "6000"}},
                             {},
                             Rendezvous::kStatic,
                             {"10.1.0.1", 6000},
                             4,
                             4,
                             8,
                             3,
                             6000,
                             {}},
                      Recipe{"operator_for_static_pods",
                             {},
                             {{Flag::kNnodes, "3"},
                              {Flag::kNprocPerNode, "auto"},
                              {Flag::kNodeRank, "1"},
                              {Flag::kMasterAddr, "job-master-0"},
                              {Flag::kMasterPort, "23456"}},
                             Rendezvous::kStatic,
                             {"job-master-0", 23456},
                             3,
                             3,
                             2,
                             1,
                             23456,
                             {}},
                      Recipe{"operator_for_elastic_pods",
                             {},
                             {{Flag::kNnodes, "1:3"},
                              {Flag::kNprocPerNode, "1"},
                              {Flag::kMaxRestarts, "10"},
                              {Flag::kRdzvBackend, "c10d"},
                              {Flag::kRdzvId, "default"},
                              {Flag::kRdzvEndpoint, "job-worker-0:23456"},
                              {Flag::kNodeRank, "2"}},
                             Rendezvous::kDynamic,
                             {"job-worker-0", 23456},
                             1,
                             3,
                             1,
                             2,
                             0,
                             {}},
                      Recipe{"batch_script_with_the_first_host",
                             {{Flag::kNnodes, "2"},
                              {Flag::kNprocPerNode, "gpu"},
                              {Flag::kRdzvId, "4711"},
                              {Flag::kRdzvBackend, "c10d"},
                              {Flag::kRdzvEndpoint, "10.0.0.1:29500"},
                              {Flag::kRdzvConf, "timeout=900,read_timeout=60,join_timeout=1200"},
                              {Flag::kMonitorInterval, "5"}},
                             {},
                             Rendezvous::kDynamic,
                             {"10.0.0.1", 29500},
                             2,
                             2,
                             2,
                             std::nullopt,
                             0,
                             {"no effect here: --monitor-interval, --rdzv-conf timeout, --rdzv-conf read_timeout"}},
                      Recipe{"what_was_typed_wins_over_the_pods_variables",
                             {{Flag::kNnodes, "1"}, {Flag::kNprocPerNode, "3"}, {Flag::kStandalone, "1"}},
                             {{Flag::kNnodes, "8"},
                              {Flag::kNprocPerNode, "8"},
                              {Flag::kRdzvBackend, "c10d"},
                              {Flag::kRdzvEndpoint, "job-0:29400"}},
                             Rendezvous::kLocal,
                             {},
                             1,
                             1,
                             3,
                             std::nullopt,
                             0,
                             {}}),
    [](const auto& tested) { return tested.param.name; });

// ---- what --dry-run says of them ----------------------------------------------------------------------------------

std::string shown(const Requested& requested, const HostFacts& host) {
    const Result<LaunchPlan> plan = make_plan(requested, host);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan ? describe(*plan, host) : "";
}

TEST(DryRunOfRecipes, WorkersThatHostHaveTheAgentsElsewhere) {
    const std::string text = shown(request({{Flag::kNnodes, "2"},
                                            {Flag::kMasterAddr, "h0"},
                                            {Flag::kMasterPort, "6000"},
                                            {Flag::kRdzvEndpoint, "h0:29400"},
                                            {Flag::kWorkerStore, "worker"}}),
                                   machine());
    EXPECT_THAT(text, HasSubstr("  rendezvous        h0:29400, hosted by the owner of that address\n"));
    EXPECT_THAT(text, HasSubstr("  workers' store    left to rank 0, on port 6000\n"));
    EXPECT_THAT(text, HasSubstr("  MASTER_PORT=6000  (rendezvous)\n"));
    EXPECT_THAT(text, HasSubstr("  TORCHELASTIC_USE_AGENT_STORE=False  (--worker-store)\n"));
}

TEST(DryRunOfRecipes, ATypedJobIsKnownToEveryNode) {
    const Requested requested = request({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "h0"}, {Flag::kRdzvId, "job-7"}});
    const std::string text = shown(requested, machine());
    EXPECT_THAT(text, HasSubstr("  job               job-7\n"));
    EXPECT_THAT(text, HasSubstr("  TORCHELASTIC_RUN_ID=job-7  (--rdzv-id)\n"));
}

TEST(DryRunOfRecipes, StreamsAndGracesAreSpeltOut) {
    const std::string text = shown(request({{Flag::kNprocPerNode, "4"},
                                            {Flag::kRedirects, "0:1,1:2,2:3"},
                                            {Flag::kTee, "3:1"},
                                            {Flag::kRestartGrace, "0.25"},
                                            {Flag::kShutdownTimeout, "90"},
                                            {Flag::kMaxRestarts, "5"}}),
                                   machine({}, {"OMP_NUM_THREADS=2"}));
    EXPECT_THAT(text, HasSubstr("  to files          0:out 1:err 2:out+err 3:out\n"));
    EXPECT_THAT(text, HasSubstr("  to both           3:out\n"));
    EXPECT_THAT(text, HasSubstr("  grace             0.25 s before a restart, 90 s at a shutdown\n"));
    EXPECT_THAT(text, HasSubstr("  restarts          at most 5, for the whole job\n"));
    EXPECT_THAT(text, Not(HasSubstr("OMP_NUM_THREADS"))) << "inherited ones are the user's own";
}

TEST(DryRunOfRecipes, EachWorkerHasItsOwnBlock) {
    const std::string text =
        shown(request({{Flag::kNprocPerNode, "3"}, {Flag::kStandalone, "1"}}, {"train.py", "--id=${local_rank}"}),
              machine({}, {"OMP_NUM_THREADS=1"}));
    for (const char* rank : {"0", "1", "2"}) {
        const std::string number = rank;
        EXPECT_THAT(text, HasSubstr("\nworker " + number + ": /usr/bin/python3 -u train.py --id=" + number + "\n"));
        EXPECT_THAT(text, HasSubstr("  RANK=" + number + "  (rendezvous)\n"));
    }
    EXPECT_THAT(text, HasSubstr("  WORLD_SIZE=3  (rendezvous)\n"));
}

TEST(DryRunOfRecipes, NothingThatLooksLikeASecretIsPrinted) {
    const std::string value = "hunter2hunter2";
    Result<LaunchPlan> plan = make_plan(request({}), machine());
    ASSERT_TRUE(plan);
    for (const char* name : {"API_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MY_CREDENTIALS"}) {
        plan->fixed_environment.push_back({name, value, "--env"});
    }
    const std::string text =
        describe(*plan, machine({}, {"DDLAUNCH_TOKEN=" + value, "WANDB_TOKEN=" + value, "PASSWORD=" + value}));
    EXPECT_THAT(text, Not(HasSubstr(value)));
    EXPECT_THAT(text, HasSubstr("AWS_SECRET_ACCESS_KEY=***"));
}

TEST(Notes, OfSeveralKindsAreKeptApart) {
    const Result<LaunchPlan> plan =
        make_plan(request({{Flag::kNprocPerNode, "2"}, {Flag::kMonitorInterval, "1"}}), machine());
    ASSERT_TRUE(plan);
    EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("OMP_NUM_THREADS"), "no effect here: --monitor-interval"));
    const Result<LaunchPlan> silent =
        make_plan(request({{Flag::kMonitorInterval, "1"}, {Flag::kQuiet, "1"}}), machine());
    ASSERT_TRUE(silent);
    EXPECT_TRUE(silent->quiet) << "who prints the notes decides by this";
    const Result<LaunchPlan> nothing = make_plan(request({}), machine());
    EXPECT_THAT(nothing->notes, IsEmpty());
}

}  // namespace
}  // namespace ddl::plan::testing
