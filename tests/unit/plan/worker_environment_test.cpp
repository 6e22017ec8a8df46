// A worker's environment against the reference, byte for byte, and its argument vector.
#include "plan/worker_environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using Values = std::map<std::string, std::string>;

RankPlace sixth_of_eight() {
    RankPlace place;
    place.generation = 4;
    place.restart_count = 2;
    place.local_rank = 1;
    place.rank = 5;
    place.world_size = 8;
    place.group_rank = 2;
    place.group_world_size = 3;
    place.role_rank = 4;
    place.role_world_size = 7;
    place.master_addr = "10.0.0.1";
    place.master_port = 29512;
    place.error_file = "/logs/1/error.json";
    place.job_id = "job-7";
    return place;
}

LaunchPlan three_workers() {
    LaunchPlan plan;
    plan.workers = 3;
    plan.role = "trainer";
    plan.supervision.max_restarts = 9;
    plan.fixed_environment = {{"OMP_NUM_THREADS", "1", "default"},
                              {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "default"}};
    return plan;
}

Values values(const std::vector<Variable>& variables) {
    Values map;
    for (const Variable& variable : variables) {
        EXPECT_TRUE(map.emplace(variable.name, variable.value).second) << variable.name << " is there twice";
    }
    return map;
}

TEST(WorkerEnvironment, IsTorchrunsByteForByteAndOurGeneration) {
    const Values expected = {
        {"RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "3"},
        {"GROUP_RANK", "2"},
        {"GROUP_WORLD_SIZE", "3"},
        {"ROLE_NAME", "trainer"},
        {"ROLE_RANK", "4"},
        {"ROLE_WORLD_SIZE", "7"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "29512"},
        {"TORCHELASTIC_RESTART_COUNT", "2"},
        {"TORCHELASTIC_MAX_RESTARTS", "9"},
        {"TORCHELASTIC_RUN_ID", "job-7"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"TORCHELASTIC_ERROR_FILE", "/logs/1/error.json"},
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
        {"OMP_NUM_THREADS", "1"},
        {"DDLAUNCH_GENERATION", "4"},
    };
    EXPECT_EQ(values(worker_environment(three_workers(), sixth_of_eight(), {})), expected);
}

TEST(WorkerEnvironment, SaysFalseWhenTheWorkerHostsTheStore) {
    LaunchPlan plan = three_workers();
    plan.worker_store = WorkerStore::kWorker;
    EXPECT_EQ(values(worker_environment(plan, sixth_of_eight(), {})).at("TORCHELASTIC_USE_AGENT_STORE"), "False");
}

TEST(WorkerEnvironment, AnEmptyErrorFileStaysAnEmptyVariable) {
    RankPlace place = sixth_of_eight();
    place.error_file.clear();
    EXPECT_EQ(values(worker_environment(three_workers(), place, {})).at("TORCHELASTIC_ERROR_FILE"), "");
}

TEST(WorkerEnvironment, InheritedOnesComeFirstInTheirOrder) {
    const std::vector<Variable> variables =
        worker_environment(three_workers(), sixth_of_eight(), {"Z=1", "PATH=/bin", "A=x=y", "EMPTY="});
    ASSERT_GT(variables.size(), 4U);
    EXPECT_EQ(variables[0], (Variable{"Z", "1", "inherited"}));
    EXPECT_EQ(variables[1], (Variable{"PATH", "/bin", "inherited"}));
    EXPECT_EQ(variables[2], (Variable{"A", "x=y", "inherited"}));
    EXPECT_EQ(variables[3], (Variable{"EMPTY", "", "inherited"}));
}

TEST(WorkerEnvironment, OursReplaceInheritedOnesInPlace) {
    const std::vector<Variable> variables = worker_environment(
        three_workers(), sixth_of_eight(), {"RANK=99", "A=1", "MASTER_PORT=1", "DDLAUNCH_GENERATION=77"});
    EXPECT_EQ(variables[0], (Variable{"RANK", "5", "rendezvous"}));
    EXPECT_EQ(variables[1].name, "A");
    EXPECT_EQ(variables[2], (Variable{"MASTER_PORT", "29512", "rendezvous"}));
    EXPECT_EQ(values(variables).at("DDLAUNCH_GENERATION"), "4");
}

TEST(WorkerEnvironment, OfARepeatedInheritedNameTheLastCounts) {
    EXPECT_EQ(values(worker_environment(three_workers(), sixth_of_eight(), {"A=1", "A=2"})).at("A"), "2");
}

TEST(WorkerEnvironment, KeepsAnInheritedNcclSetting) {
    const Values found =
        values(worker_environment(three_workers(), sixth_of_eight(), {"TORCH_NCCL_ASYNC_ERROR_HANDLING=3"}));
    EXPECT_EQ(found.at("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "3");
}

TEST(WorkerEnvironment, HandsTheTokenToNobodyAndPetVariablesOn) {
    const Values found = values(worker_environment(
        three_workers(), sixth_of_eight(), {"DDLAUNCH_TOKEN=s3cret", "DDLAUNCH_TOKENS=x", "PET_NNODES=2", "garbage"}));
    EXPECT_EQ(found.count("DDLAUNCH_TOKEN"), 0U);
    EXPECT_EQ(found.at("DDLAUNCH_TOKENS"), "x");
    EXPECT_EQ(found.at("PET_NNODES"), "2");
    EXPECT_EQ(found.count("garbage"), 0U);
    for (const auto& [name, value] : found) {
        EXPECT_EQ(value.find("s3cret"), std::string::npos) << name;
    }
}

TEST(WorkerEnvironment, EachVariableHasASource) {
    for (const Variable& variable : worker_environment(three_workers(), sixth_of_eight(), {"A=1"})) {
        EXPECT_FALSE(variable.source.empty()) << variable.name;
    }
}

struct Devices {
    std::vector<std::string> inherited;
    int local_rank;
    Values expected;
};

TEST(VirtualLocalRank, NarrowsTheDevicesToOne) {
    const Devices table[] = {
        {{}, 1, {{"CUDA_VISIBLE_DEVICES", "1"}}},
        {{"CUDA_VISIBLE_DEVICES=4,5,6"}, 0, {{"CUDA_VISIBLE_DEVICES", "4"}}},
        {{"CUDA_VISIBLE_DEVICES=4,5,6"}, 2, {{"CUDA_VISIBLE_DEVICES", "6"}}},
        {{"CUDA_VISIBLE_DEVICES=GPU-a1, GPU-b2"}, 1, {{"CUDA_VISIBLE_DEVICES", "GPU-b2"}}},
        {{"HIP_VISIBLE_DEVICES=2,3"}, 1, {{"HIP_VISIBLE_DEVICES", "3"}}},
        {{"CUDA_VISIBLE_DEVICES=4,5", "HIP_VISIBLE_DEVICES=6,7"},
         1,
         {{"CUDA_VISIBLE_DEVICES", "5"}, {"HIP_VISIBLE_DEVICES", "7"}}},
    };
    for (const Devices& row : table) {
        LaunchPlan plan = three_workers();
        plan.virtual_local_rank = true;
        RankPlace place = sixth_of_eight();
        place.local_rank = row.local_rank;
        const Values found = values(worker_environment(plan, place, row.inherited));
        EXPECT_THAT(found, IsSupersetOf(row.expected));
        EXPECT_EQ(found.at("LOCAL_RANK"), "0");
        EXPECT_EQ(found.at("RANK"), "5");
        EXPECT_EQ(found.count("HIP_VISIBLE_DEVICES"), row.expected.count("HIP_VISIBLE_DEVICES"));
    }
}

TEST(VirtualLocalRank, OffLeavesDevicesAlone) {
    const Values found = values(worker_environment(three_workers(), sixth_of_eight(), {"CUDA_VISIBLE_DEVICES=4,5"}));
    EXPECT_EQ(found.at("CUDA_VISIBLE_DEVICES"), "4,5");
    EXPECT_EQ(found.at("LOCAL_RANK"), "1");
}

TEST(WorkerArguments, ReplaceTheMacroAndNothingElse) {
    LaunchPlan plan;
    plan.program.argv = {"run${local_rank}", "--id=${local_rank}-${local_rank}", "${rank}", "$local_rank", "plain"};
    EXPECT_THAT(worker_arguments(plan, 12), ElementsAre("run12", "--id=12-12", "${rank}", "$local_rank", "plain"));
    EXPECT_THAT(worker_arguments(plan, 0), ElementsAre("run0", "--id=0-0", "${rank}", "$local_rank", "plain"));
}

TEST(WorkerEnvironment, HasNoSecretOfOurs) {
    const Values found = values(worker_environment(
        three_workers(), sixth_of_eight(),
        {"DDLAUNCH_TOKEN=a", "DDL_ETCD_PASSWORD=b", "DDL_ETCD_PASSWORD_FILE=c", "DDLAUNCH_TOKENS=d"}));
    EXPECT_FALSE(found.contains("DDLAUNCH_TOKEN"));
    EXPECT_FALSE(found.contains("DDL_ETCD_PASSWORD"));
    EXPECT_EQ(found.at("DDL_ETCD_PASSWORD_FILE"), "c");
    EXPECT_EQ(found.at("DDLAUNCH_TOKENS"), "d");
}

TEST(WorkerEnvironment, OfAWholePlanHasTheThreadsAndSignals) {
    const Result<LaunchPlan> plan = make_plan(request({{Flag::kNprocPerNode, "2"}}), machine());
    ASSERT_TRUE(plan.has_value());
    const Values found = values(worker_environment(*plan, sixth_of_eight(), {}));
    EXPECT_EQ(found.at("OMP_NUM_THREADS"), "1");
    EXPECT_EQ(found.at("TORCHELASTIC_SIGNALS_TO_HANDLE"), "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
    EXPECT_EQ(found.size(), 20U);
}

}  // namespace
}  // namespace ddl::plan::testing
