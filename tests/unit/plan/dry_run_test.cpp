// --dry-run: what people read before they start a job.
#include "plan/dry_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const Requested& requested, const std::vector<std::string>& inherited = {}) {
    const Result<LaunchPlan> plan = make_plan(requested, machine());
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    return plan ? describe(*plan, machine({}, inherited)) : "";
}

TEST(DryRun, OneNodeIsKnownCompletely) {
    EXPECT_EQ(text_of(request({{Flag::kStandalone, "1"}, {Flag::kMasterPort, "6000"}, {Flag::kRdzvId, "j"}},
                              {"train.py", "a b", "${local_rank}"}),
                      {"HOME=/root"}),
              "plan for n0\n"
              "  job               j\n"
              "  nodes             1\n"
              "  rendezvous        none: this node alone\n"
              "  workers' store    served by ddlaunch on port 6000, loopback only\n"
              "  workers           1 on this node, role default\n"
              "  program           /usr/bin/python3 -u train.py 'a b' '${local_rank}'\n"
              "  python            /usr/bin/python3 (from PATH; Python 3.11.2)\n"
              "  restarts          at most 0, for the whole job\n"
              "  grace             2 s before a restart, 30 s at a shutdown\n"
              "  to files          none\n"
              "  to both           none\n"
              "  log directory     none given\n"
              "worker 0: /usr/bin/python3 -u train.py 'a b' 0\n"
              "  LOCAL_RANK=0  (place on this node)\n"
              "  RANK=0  (rendezvous)\n"
              "  GROUP_RANK=0  (rendezvous)\n"
              "  ROLE_RANK=0  (rendezvous)\n"
              "  ROLE_NAME=default  (--role)\n"
              "  LOCAL_WORLD_SIZE=1  (--nproc-per-node)\n"
              "  WORLD_SIZE=1  (rendezvous)\n"
              "  GROUP_WORLD_SIZE=1  (rendezvous)\n"
              "  ROLE_WORLD_SIZE=1  (rendezvous)\n"
              "  MASTER_ADDR=127.0.0.1  (rendezvous)\n"
              "  MASTER_PORT=6000  (rendezvous)\n"
              "  DDLAUNCH_GENERATION=1  (rendezvous)\n"
              "  TORCHELASTIC_RESTART_COUNT=0  (job)\n"
              "  TORCHELASTIC_MAX_RESTARTS=0  (--max-restarts)\n"
              "  TORCHELASTIC_RUN_ID=j  (--rdzv-id)\n"
              "  TORCHELASTIC_USE_AGENT_STORE=True  (--worker-store)\n"
              "  TORCHELASTIC_ERROR_FILE=<chosen at the start>  (--log-dir)\n"
              "  TORCH_NCCL_ASYNC_ERROR_HANDLING=1  (default)\n"
              "  TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT  (default)\n");
}

TEST(DryRun, SeveralNodesLeaveRanksOpen) {
    const std::string text = text_of(request({{Flag::kNnodes, "1:4"},
                                              {Flag::kNprocPerNode, "2"},
                                              {Flag::kRdzvEndpoint, "h0"},
                                              {Flag::kMaxRestarts, "3"},
                                              {Flag::kTee, "1:3"},
                                              {Flag::kLogDir, "/logs"},
                                              {Flag::kStorePort, "30000-30009"}}));
    EXPECT_THAT(text, HasSubstr("  nodes             1 to 4\n"));
    EXPECT_THAT(text, HasSubstr("  rendezvous        h0:29400, hosted by the owner of that address\n"));
    EXPECT_THAT(text, HasSubstr("  limits            join 600 s, last call 30 s, rejoin 60 s, lease 5 s\n"));
    EXPECT_THAT(text, HasSubstr("  takeover          by a majority of the last round's nodes\n"));
    EXPECT_THAT(text, HasSubstr("  scale-up          now\n"));
    EXPECT_THAT(text, HasSubstr("  restarts          at most 3, for the whole job\n"));
    EXPECT_THAT(text, HasSubstr("  crash loop        the same failure twice within 5 s of the start\n"));
    EXPECT_THAT(text, HasSubstr("  job               f00d (made up)\n"));
    EXPECT_THAT(text, HasSubstr("served by ddlaunch on a port of 30000-30009\n"));
    EXPECT_THAT(text, HasSubstr("  RANK=<decided by the rendezvous>  (rendezvous)\n"));
    EXPECT_THAT(text, HasSubstr("  WORLD_SIZE=<decided by the rendezvous>  (rendezvous)\n"));
    EXPECT_THAT(text, HasSubstr("  TORCHELASTIC_RUN_ID=<decided by the rendezvous>  (made up)\n"));
    EXPECT_THAT(text, HasSubstr("  MASTER_PORT=<chosen at the start>  (rendezvous)\n"));
    EXPECT_THAT(text, HasSubstr("  LOCAL_RANK=1  (place on this node)\n"));
    EXPECT_THAT(text, HasSubstr("  OMP_NUM_THREADS=1  (default with several workers)\n"));
    EXPECT_THAT(text, HasSubstr("  to both           1:out+err\n"));
    EXPECT_THAT(text, HasSubstr("  log directory     /logs\n"));
    EXPECT_THAT(text, HasSubstr("  note              OMP_NUM_THREADS is not set"));
}

TEST(DryRun, StaticKnowsItsMaster) {
    const std::string text = text_of(request({{Flag::kNnodes, "2"},
                                              {Flag::kNodeRank, "1"},
                                              {Flag::kMasterAddr, "fd00::1"},
                                              {Flag::kRdzvConf, "join_timeout=1.5"}}));
    EXPECT_THAT(text, HasSubstr("  rendezvous        [fd00::1]:29500, hosted by node rank 0\n"));
    EXPECT_THAT(text, HasSubstr("join 1.5 s"));
    EXPECT_THAT(text, HasSubstr("  node rank         1\n"));
    EXPECT_THAT(text, HasSubstr("  MASTER_ADDR=fd00::1  (rendezvous)\n"));
    EXPECT_THAT(text, HasSubstr("  MASTER_PORT=29500  (rendezvous)\n"));
    EXPECT_THAT(text, HasSubstr("  RANK=<decided by the rendezvous>"));
}

TEST(DryRun, WhatIsDoneAboutFailuresIsSaid) {
    const std::string text = text_of(request({{Flag::kMaxRestarts, "3/1h"},
                                              {Flag::kFreeNodeLoss, "1"},
                                              {Flag::kNoRestartExitCodes, "3,10-12,12,143"},
                                              {Flag::kRestartBackoff, "1.5"},
                                              {Flag::kCrashLoopWindow, "0"},
                                              {Flag::kForwardSignals, "USR1,USR2"}}));
    EXPECT_THAT(text,
                HasSubstr("  restarts          at most 3 within 3600 s, for the whole job; lost nodes are free\n"));
    EXPECT_THAT(text, HasSubstr("  never after       exit code 3, 10-12, 143\n"));
    EXPECT_THAT(text, HasSubstr("  back-off          1.5 s before the second restart in a row, doubled from there\n"));
    EXPECT_THAT(text, HasSubstr("  crash loop        not looked for\n"));
    EXPECT_THAT(text, HasSubstr("  passed on         SIGUSR1, SIGUSR2\n"));
    EXPECT_THAT(text, HasSubstr("TORCHELASTIC_MAX_RESTARTS=3  (--max-restarts)\n"));
}

TEST(DryRun, AListOfEndpointsIsSaid) {
    const std::string text = text_of(request({{Flag::kNnodes, "2:4"},
                                              {Flag::kRdzvEndpoint, "h0,h1,h2:5"},
                                              {Flag::kRdzvConf, "takeover=off"},
                                              {Flag::kScaleUp, "at-checkpoint"}}));
    EXPECT_THAT(text, HasSubstr("  rendezvous        h0:5, h1:5, h2:5, hosted by the owner of the first address\n"));
    EXPECT_THAT(text, HasSubstr("  takeover          off\n"));
    EXPECT_THAT(text, HasSubstr("  scale-up          at a checkpoint, after 1800 s at the latest\n"));
}

TEST(DryRun, EtcdIsSaidWithoutItsPassword) {
    const Requested requested = request({{Flag::kNnodes, "2"},
                                         {Flag::kRdzvBackend, "etcd"},
                                         {Flag::kRdzvEndpoint, "e1,e2"},
                                         {Flag::kRdzvId, "j"},
                                         {Flag::kRdzvConf, "user=joe,protocol=https,password=typ3d"}});
    const std::string text = text_of(requested);
    EXPECT_THAT(text, HasSubstr("  rendezvous        etcd at e1:2379, e2:2379 (https, user joe, password ***)\n"));
    EXPECT_THAT(text, HasSubstr("  takeover          by election in etcd\n"));
    EXPECT_THAT(text, Not(HasSubstr("typ3d")));
    const std::string by_variable = text_of(request({}), {"DDL_ETCD_PASSWORD=h1dden"});
    EXPECT_THAT(by_variable, Not(HasSubstr("h1dden")));
}

TEST(DryRun, AWorkerThatHostsIsSaid) {
    EXPECT_THAT(text_of(request({{Flag::kWorkerStore, "worker"}})),
                HasSubstr("left to rank 0, on a free port for every round, loopback only\n"));
}

TEST(DryRun, SecretsAreNotShown) {
    const std::string text = text_of(request({}), {"DDLAUNCH_TOKEN=s3cret", "HF_TOKEN=h1dden"});
    EXPECT_THAT(text, HasSubstr("  token             *** (DDLAUNCH_TOKEN, not handed on to workers)\n"));
    EXPECT_THAT(text, Not(HasSubstr("s3cret")));
    EXPECT_THAT(text, Not(HasSubstr("h1dden")));
    EXPECT_THAT(text_of(request({})), Not(HasSubstr("token")));
}

TEST(DryRun, AFixedSecretIsMasked) {
    Result<LaunchPlan> plan = make_plan(request({}), machine());
    ASSERT_TRUE(plan.has_value());
    plan->fixed_environment.push_back({"API_TOKEN", "s3cret", "--env"});
    EXPECT_THAT(describe(*plan, machine()), HasSubstr("  API_TOKEN=***  (--env)\n"));
}

TEST(DryRun, NamesThePythonItsSourceAndItsVersion) {
    HostFacts host = machine({{"/venv/bin/python", elf_file()}}, {"VIRTUAL_ENV=/venv"});
    std::vector<std::string> asked;
    host.version_of = [&asked](const std::string& path) {
        asked.push_back(path);
        return "Python 3.12.1";
    };
    const Result<LaunchPlan> plan = make_plan(request({}), host);
    ASSERT_TRUE(plan.has_value());
    EXPECT_THAT(asked, ::testing::IsEmpty()) << "a launch that is no dry run must not pay for this";
    EXPECT_THAT(describe(*plan, host),
                HasSubstr("  python            /venv/bin/python (from VIRTUAL_ENV; Python 3.12.1)\n"));
    EXPECT_THAT(asked, ::testing::ElementsAre("/venv/bin/python"));
}

TEST(DryRun, APythonThatDoesNotAnswerIsNoError) {
    const HostFacts host = machine({}, {"PYTHON_EXEC=/no such/python"});
    const Result<LaunchPlan> plan = make_plan(request({}), host);
    ASSERT_TRUE(plan.has_value());
    EXPECT_THAT(describe(*plan, host), HasSubstr("'/no such/python' (from PYTHON_EXEC; does not tell its version)\n"));
}

TEST(DryRun, AProgramOfItsOwnIsNotAskedForAVersion) {
    HostFacts host = machine({{"./digits", elf_file()}});
    host.version_of = [](const std::string& path) -> std::string {
        ADD_FAILURE() << "ran " << path;
        return "";
    };
    const Result<LaunchPlan> plan = make_plan(request({}, {"./digits"}), host);
    ASSERT_TRUE(plan.has_value());
    EXPECT_THAT(describe(*plan, host), Not(HasSubstr("\n  python ")));
}

TEST(DryRun, QuotesForAShell) {
    const std::string text = text_of(request({}, {"train.py", "it's", "", "$HOME", "a;b", "x=1"}));
    EXPECT_THAT(text, HasSubstr("train.py 'it'\\''s' '' '$HOME' 'a;b' x=1\n"));
}

TEST(DryRun, VirtualLocalRankNamesItsFlag) {
    const std::string text =
        text_of(request({{Flag::kVirtualLocalRank, "1"}, {Flag::kNprocPerNode, "2"}}), {"CUDA_VISIBLE_DEVICES=6,7"});
    EXPECT_THAT(text, HasSubstr("  CUDA_VISIBLE_DEVICES=7  (--virtual-local-rank)\n"));
    EXPECT_THAT(text, HasSubstr("  LOCAL_RANK=0  (--virtual-local-rank)\n"));
}

}  // namespace
}  // namespace ddl::plan::testing
