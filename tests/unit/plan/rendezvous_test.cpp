// How the meeting point follows from the flags: every derivation and every refusal, with its text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

LaunchPlan plan_of(const Requested& requested, const HostFacts& host = machine()) {
    const Result<LaunchPlan> plan = make_plan(requested, host);
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    return plan ? *plan : LaunchPlan{};
}

TEST(LocalRendezvous, IsTheDefault) {
    const LaunchPlan plan = plan_of(request({}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kLocal);
    EXPECT_EQ(plan.rendezvous.min_nodes, 1);
    EXPECT_EQ(plan.rendezvous.max_nodes, 1);
    EXPECT_EQ(plan.rendezvous.job_id, "f00d");
    EXPECT_FALSE(plan.rendezvous.job_id_typed);
    EXPECT_EQ(plan.rendezvous.node_rank, std::nullopt);
    EXPECT_EQ(plan.store_ports.first, 0);
    EXPECT_EQ(plan.master_addr, "");
    EXPECT_TRUE(plan.loopback_only);
}

TEST(LocalRendezvous, IsWhatStandaloneMeans) {
    const LaunchPlan plan = plan_of(request({{Flag::kStandalone, "1"}, {Flag::kNnodes, "1:1"}, {Flag::kRdzvId, "j"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kLocal);
    EXPECT_EQ(plan.rendezvous.job_id, "j");
    EXPECT_TRUE(plan.rendezvous.job_id_typed);
    EXPECT_TRUE(plan.loopback_only);
}

TEST(LocalRendezvous, AlsoForC10dOnOneNode) {
    for (const char* endpoint : {"", "localhost:0", "localhost:29400", "127.0.0.1", "[::1]:29400"}) {
        const LaunchPlan plan = plan_of(request({{Flag::kRdzvBackend, "c10d"}, {Flag::kRdzvEndpoint, endpoint}}));
        EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kLocal) << endpoint;
        EXPECT_TRUE(plan.loopback_only) << endpoint;
        EXPECT_TRUE(plan.notes.empty()) << endpoint;
    }
}

TEST(LocalRendezvous, MegatronsMasterFlagsFixThePort) {
    const LaunchPlan plan = plan_of(request(
        {{Flag::kNnodes, "1"}, {Flag::kNodeRank, "0"}, {Flag::kMasterAddr, "localhost"}, {Flag::kMasterPort, "6000"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kLocal);
    EXPECT_EQ(plan.master_addr, "localhost");
    EXPECT_TRUE(plan.store_ports.fixed());
    EXPECT_EQ(plan.store_ports.first, 6000);
    EXPECT_TRUE(plan.loopback_only);
    EXPECT_TRUE(plan.notes.empty()) << "node rank 0 is what it is";
}

TEST(LocalRendezvous, WhatIsRightIsNotCalledUseless) {
    EXPECT_EQ(error_of(request({{Flag::kNodeRank, "0"}, {Flag::kStrict, "1"}})), "no error");
    const Requested standalone =
        request({{Flag::kStandalone, "1"}, {Flag::kRdzvEndpoint, "localhost:0"}, {Flag::kStrict, "1"}});
    EXPECT_EQ(error_of(standalone), "no error");
    EXPECT_TRUE(plan_of(standalone).notes.empty());
}

TEST(LocalRendezvous, AnAddressOfTheMachineIsReachableFromOutside) {
    const LaunchPlan by_master = plan_of(request({{Flag::kMasterAddr, "10.0.0.5"}}));
    EXPECT_EQ(by_master.rendezvous.kind, Rendezvous::kLocal);
    EXPECT_EQ(by_master.master_addr, "10.0.0.5");
    EXPECT_FALSE(by_master.loopback_only);
    const LaunchPlan by_local = plan_of(request({{Flag::kLocalAddr, "10.0.0.5"}}));
    EXPECT_EQ(by_local.master_addr, "10.0.0.5");
    EXPECT_FALSE(by_local.loopback_only);
    const LaunchPlan by_endpoint = plan_of(request({{Flag::kRdzvEndpoint, "10.0.0.5:0"}}));
    EXPECT_EQ(by_endpoint.rendezvous.kind, Rendezvous::kLocal);
    EXPECT_EQ(by_endpoint.master_addr, "10.0.0.5");
    EXPECT_FALSE(by_endpoint.loopback_only);
}

TEST(LocalRendezvous, StaticOnOneNodeKeepsItsEndpoint) {
    const LaunchPlan plan = plan_of(request({{Flag::kRdzvBackend, "static"}, {Flag::kRdzvEndpoint, "10.0.0.5"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kLocal);
    EXPECT_EQ(plan.master_addr, "10.0.0.5");
    EXPECT_EQ(plan.store_ports.first, 29500);
    EXPECT_TRUE(plan.store_ports.fixed());
}

TEST(Standalone, GivesWayToNobodyElse) {
    EXPECT_EQ(error_of(request({{Flag::kStandalone, "1"}, {Flag::kNnodes, "2"}})),
              "--standalone: is for one node, but --nnodes asks for 2; try --rdzv-endpoint HOST:PORT instead");
    EXPECT_THAT(error_of(request({{Flag::kStandalone, "1"}, {Flag::kNnodes, "1:4"}})), HasSubstr("asks for 1:4"));
    EXPECT_EQ(error_of(request({{Flag::kStandalone, "1"}, {Flag::kRdzvEndpoint, "h0:29400"}})),
              "--standalone: means that no other node takes part, but --rdzv-endpoint names h0; leave one of the two "
              "out");
}

TEST(Standalone, AnOperatorsVariablesGiveWayToIt) {
    Requested requested = by_variables({{Flag::kRdzvEndpoint, "h0:29400"}, {Flag::kNodeRank, "0"}});
    requested.set(Flag::kStandalone, {"1", "--standalone", true});
    const LaunchPlan plan = plan_of(requested);
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kLocal);
    EXPECT_TRUE(plan.loopback_only);
    EXPECT_TRUE(plan.notes.empty());
}

TEST(Standalone, SwitchedOffByAVariableIsOff) {
    const LaunchPlan plan =
        plan_of(by_variables({{Flag::kStandalone, "0"}, {Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "h0"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kDynamic);
}

TEST(DynamicRendezvous, NeedsOnlyAnEndpoint) {
    const LaunchPlan plan = plan_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "h0:29444"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kDynamic);
    EXPECT_EQ(plan.rendezvous.endpoint, (Endpoint{"h0", 29444}));
    EXPECT_EQ(plan.rendezvous.node_rank, std::nullopt);
    EXPECT_EQ(plan.rendezvous.is_host, std::nullopt);
    EXPECT_EQ(plan.store_ports.first, 0);
    EXPECT_FALSE(plan.loopback_only);
    EXPECT_EQ(plan.rendezvous.join_timeout, Duration(600s));
    EXPECT_EQ(plan.rendezvous.last_call_timeout, Duration(30s));
    EXPECT_EQ(plan.rendezvous.rejoin_timeout, Duration(60s));
}

TEST(DynamicRendezvous, HasADefaultPortAndTakesRanges) {
    const LaunchPlan plan =
        plan_of(request({{Flag::kNnodes, "1:4"}, {Flag::kRdzvBackend, "c10d"}, {Flag::kRdzvEndpoint, "[fd00::1]"}}));
    EXPECT_EQ(plan.rendezvous.endpoint, (Endpoint{"fd00::1", 29400}));
    EXPECT_EQ(plan.rendezvous.min_nodes, 1);
    EXPECT_EQ(plan.rendezvous.max_nodes, 4);
}

TEST(DynamicRendezvous, OneNodeWithAReachableEndpointMayHaveSpares) {
    const LaunchPlan plan = plan_of(request({{Flag::kRdzvEndpoint, "10.0.0.5:29400"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kDynamic);
    EXPECT_EQ(plan.rendezvous.max_nodes, 1);
    EXPECT_FALSE(plan.loopback_only);
}

TEST(DynamicRendezvous, NodeRankIsAWishAndMasterFlagsHaveNoEffect) {
    const LaunchPlan plan = plan_of(request({{Flag::kNnodes, "2"},
                                             {Flag::kRdzvEndpoint, "h0"},
                                             {Flag::kNodeRank, "1"},
                                             {Flag::kMasterAddr, "h0"},
                                             {Flag::kMasterPort, "29500"}}));
    EXPECT_EQ(plan.rendezvous.node_rank, 1);
    EXPECT_EQ(plan.master_addr, "");
    EXPECT_EQ(plan.store_ports.first, 0);
    ASSERT_EQ(plan.notes.size(), 1U);
    EXPECT_EQ(plan.notes[0], "no effect here: --master-addr, --master-port");
}

TEST(DynamicRendezvous, StorePortsAreTaken) {
    const LaunchPlan plan =
        plan_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "h0"}, {Flag::kStorePort, "30000-30009"}}));
    EXPECT_EQ(plan.store_ports.first, 30000);
    EXPECT_EQ(plan.store_ports.last, 30009);
}

TEST(DynamicRendezvous, ConfKeysAreTaken) {
    const LaunchPlan plan = plan_of(request(
        {{Flag::kNnodes, "2"},
         {Flag::kRdzvEndpoint, "localhost"},
         {Flag::kRdzvConf, "join_timeout=5, last_call_timeout=0.5,rejoin_timeout=7,is_host=True,lease_timeout=10"}}));
    EXPECT_EQ(plan.rendezvous.join_timeout, Duration(5s));
    EXPECT_EQ(plan.rendezvous.last_call_timeout, Duration(500ms));
    EXPECT_EQ(plan.rendezvous.rejoin_timeout, Duration(7s));
    EXPECT_EQ(plan.rendezvous.is_host, true);
    EXPECT_EQ(plan.rendezvous.lease_timeout, Duration(10s));
}

TEST(DynamicRendezvous, TorchrunsConfKeysAreNamedInOneNote) {
    const LaunchPlan plan = plan_of(
        request({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "h0"}, {Flag::kRdzvConf, "timeout=900,read_timeout=60"}}));
    ASSERT_EQ(plan.notes.size(), 1U);
    EXPECT_EQ(plan.notes[0], "no effect here: --rdzv-conf timeout, --rdzv-conf read_timeout");
    const LaunchPlan quiet =
        plan_of(by_variables({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "h0"}, {Flag::kRdzvConf, "timeout=900"}}));
    EXPECT_TRUE(quiet.notes.empty());
}

TEST(DynamicRendezvous, JoinTimeoutHasAShortcut) {
    const LaunchPlan plan = plan_of(request({{Flag::kJoinTimeout, "12"}}));
    EXPECT_EQ(plan.rendezvous.join_timeout, Duration(12s));
    EXPECT_EQ(error_of(request({{Flag::kJoinTimeout, "12"}, {Flag::kRdzvConf, "join_timeout=13"}})),
              "--join-timeout: contradicts join_timeout in --rdzv-conf; leave one of the two out");
    EXPECT_EQ(error_of(request({{Flag::kJoinTimeout, "12"}, {Flag::kRdzvConf, "join_timeout=12"}})), "no error");
}

TEST(StaticRendezvous, NeedsAMaster) {
    const LaunchPlan plan = plan_of(request({{Flag::kNnodes, "2"}, {Flag::kNodeRank, "1"}, {Flag::kMasterAddr, "h0"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kStatic);
    EXPECT_EQ(plan.rendezvous.endpoint, (Endpoint{"h0", 29500}));
    EXPECT_EQ(plan.rendezvous.node_rank, 1);
    EXPECT_EQ(plan.store_ports.first, 29500);
    EXPECT_TRUE(plan.store_ports.fixed());
    EXPECT_TRUE(plan.notes.empty());
}

TEST(StaticRendezvous, NodeRankDefaultsToNoughtAsInTorchrun) {
    const LaunchPlan plan =
        plan_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "h0"}, {Flag::kMasterPort, "1234"}}));
    EXPECT_EQ(plan.rendezvous.node_rank, 0);
    EXPECT_EQ(plan.rendezvous.endpoint.port, 1234);
}

TEST(StaticRendezvous, OnlyTheOwnerOfTheAddressIsNodeRankNoughtUnasked) {
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "10.77.0.1"}})),
              "--master-addr: 10.77.0.1 is no address of this node, so it cannot be node rank 0; give --node-rank (1) "
              "here, or --rdzv-conf is_host=1 if the address is mapped to this node");
    EXPECT_THAT(error_of(by_variables({{Flag::kNnodes, "4"}, {Flag::kMasterAddr, "fd00::9"}})),
                ::testing::AllOf(StartsWith("PET_MASTER_ADDR: fd00::9 is no"), HasSubstr("--node-rank (1 to 3) here")));
    EXPECT_THAT(
        error_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvBackend, "static"}, {Flag::kRdzvEndpoint, "10.77.0.1:1"}})),
        StartsWith("--rdzv-endpoint: 10.77.0.1 is no"));
    for (const char* own : {"10.0.0.5", "fd00::5", "h0"}) {
        const LaunchPlan plan = plan_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, own}}));
        EXPECT_EQ(plan.rendezvous.node_rank, 0) << own;
        EXPECT_TRUE(plan.notes.empty()) << own;
    }
}

TEST(StaticRendezvous, WhoSaysThatItHostsIsBelieved) {
    const LaunchPlan ranked =
        plan_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "10.77.0.1"}, {Flag::kNodeRank, "0"}}));
    ASSERT_EQ(ranked.notes.size(), 1U);
    EXPECT_EQ(ranked.notes[0],
              "--master-addr: 10.77.0.1 is no address of this node, though it is node rank 0; the others must reach it "
              "there");
    const LaunchPlan mapped =
        plan_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "10.77.0.1"}, {Flag::kRdzvConf, "is_host=1"}}));
    EXPECT_TRUE(mapped.notes.empty());
    const LaunchPlan other =
        plan_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "10.77.0.1"}, {Flag::kNodeRank, "1"}}));
    EXPECT_TRUE(other.notes.empty());
}

TEST(StaticRendezvous, InterfacesAreLookedAtOnlyForSeveralNodes) {
    HostFacts host = machine();
    host.owns_address = nullptr;  // a look would throw
    EXPECT_EQ(error_of(request({}), host), "no error");
    EXPECT_EQ(error_of(request({{Flag::kMasterAddr, "10.77.0.1"}}), host), "no error");
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "10.77.0.1"}}), host), "no error");
}

TEST(StaticRendezvous, TakesItsEndpointFromEitherFlag) {
    const LaunchPlan plan = plan_of(request(
        {{Flag::kNnodes, "2"}, {Flag::kRdzvBackend, "static"}, {Flag::kRdzvEndpoint, "h0"}, {Flag::kNodeRank, "0"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kStatic);
    EXPECT_EQ(plan.rendezvous.endpoint, (Endpoint{"h0", 29500}));
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"},
                                {Flag::kRdzvBackend, "static"},
                                {Flag::kRdzvEndpoint, "h0:29500"},
                                {Flag::kMasterAddr, "h1"}})),
              "--rdzv-endpoint: says h0:29500, but --master-addr and --master-port say h1:29500; leave one of the two "
              "out");
}

TEST(StaticRendezvous, OperatorsVariablesAreEnough) {
    const LaunchPlan plan = plan_of(by_variables({{Flag::kNnodes, "3"},
                                                  {Flag::kNodeRank, "2"},
                                                  {Flag::kMasterAddr, "job-master-0"},
                                                  {Flag::kMasterPort, "23456"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kStatic);
    EXPECT_EQ(plan.rendezvous.endpoint, (Endpoint{"job-master-0", 23456}));
    EXPECT_EQ(plan.rendezvous.node_rank, 2);
}

TEST(StaticRendezvous, RefusesWhatCannotWork) {
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "1:2"}, {Flag::kMasterAddr, "h0"}})),
              "--nnodes: \"1:2\" is a range, but a static rendezvous has a fixed number of nodes; try --rdzv-endpoint "
              "HOST:PORT with --rdzv-backend c10d");
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}, {Flag::kNodeRank, "2"}, {Flag::kMasterAddr, "h0"}})),
              "--node-rank: 2 is not below the number of nodes, 2");
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "h0"}, {Flag::kStorePort, "30000"}})),
              "--store-port: MASTER_PORT is already 29500 by the static rendezvous; leave one of the two out");
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "h0"}, {Flag::kRdzvConf, "is_host=0"}})),
              "--rdzv-conf: is_host contradicts --node-rank 0: node rank 0 hosts a static rendezvous; leave is_host "
              "out");
}

TEST(StaticRendezvous, AWorkerThatHostsNeedsASecondMeetingPoint) {
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "h0"}, {Flag::kWorkerStore, "worker"}})),
              "--worker-store: worker leaves 29500 to rank 0, but the agents of a static rendezvous meet there; add "
              "--rdzv-endpoint HOST:PORT with another port");
    const Requested both = request({{Flag::kNnodes, "2"},
                                    {Flag::kNodeRank, "1"},
                                    {Flag::kMasterAddr, "h0"},
                                    {Flag::kMasterPort, "6000"},
                                    {Flag::kRdzvEndpoint, "h0:29400"},
                                    {Flag::kWorkerStore, "worker"}});
    const LaunchPlan plan = plan_of(both);
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kDynamic);
    EXPECT_EQ(plan.rendezvous.endpoint, (Endpoint{"h0", 29400}));
    EXPECT_EQ(plan.rendezvous.node_rank, 1);
    EXPECT_EQ(plan.worker_store, WorkerStore::kWorker);
    EXPECT_EQ(plan.master_addr, "h0");
    EXPECT_EQ(plan.store_ports.first, 6000);
    EXPECT_TRUE(plan.store_ports.fixed());
    EXPECT_TRUE(plan.notes.empty());
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"},
                                {Flag::kMasterAddr, "h0"},
                                {Flag::kMasterPort, "6000"},
                                {Flag::kRdzvEndpoint, "h0:6000"},
                                {Flag::kWorkerStore, "worker"}})),
              "--rdzv-endpoint: is where rank 0 will listen, too; give the agents another port");
}

TEST(Meeting, SeveralNodesNeedAPlace) {
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}})),
              "--nnodes: \"2\" needs a place where the nodes meet; try --rdzv-endpoint HOST:29400, the same on all "
              "nodes");
    EXPECT_EQ(error_of(by_variables({{Flag::kNnodes, "2:4"}})),
              "PET_NNODES: \"2:4\" needs a place where the nodes meet; try --rdzv-endpoint HOST:29400, the same on "
              "all nodes");
    EXPECT_THAT(error_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvBackend, "c10d"}, {Flag::kMasterAddr, "h0"}})),
                HasSubstr("try --rdzv-endpoint h0:29400"));
}

TEST(Meeting, LocalhostIsADifferentMachineForEveryNode) {
    for (const char* endpoint : {"localhost:29400", "127.0.0.1:29400", "[::1]:29400"}) {
        EXPECT_THAT(error_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, endpoint}})),
                    HasSubstr("is a different machine for every node; name an address of one node, or, for several "
                              "agents on this machine, say who hosts: --rdzv-conf is_host=1 on one"))
            << endpoint;
    }
    EXPECT_THAT(error_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "localhost"}})),
                StartsWith("--master-addr: \"localhost\" is a different machine"));
}

TEST(Meeting, LocalhostIsFineWhenItIsSaidWhoHosts) {
    for (const char* is_host : {"is_host=1", "is_host=false"}) {
        const LaunchPlan plan =
            plan_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "localhost"}, {Flag::kRdzvConf, is_host}}));
        EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kDynamic);
        EXPECT_TRUE(plan.rendezvous.is_host.has_value());
    }
    const LaunchPlan plan =
        plan_of(request({{Flag::kNnodes, "2"}, {Flag::kNodeRank, "1"}, {Flag::kMasterAddr, "127.0.0.1"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kStatic);
}

TEST(Meeting, PortNoughtCannotBeFoundByOthers) {
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvEndpoint, "h0:0"}})),
              "--rdzv-endpoint: port 0 is a different port on every start; name one that all nodes can use");
}

TEST(Meeting, BackendsOfOtherKinds) {
    EXPECT_EQ(error_of(by_variables({{Flag::kRdzvBackend, "zk"}})),
              "PET_RDZV_BACKEND: \"zk\" is not a known backend; try c10d, static or etcd");
}

TEST(Meeting, BadValuesNameTheirFlag) {
    struct Bad {
        Flag flag;
        const char* text;
        const char* error;
    };
    const Bad table[] = {
        {Flag::kNnodes, "3:2", "--nnodes: \"3:2\" has its bounds the wrong way round; try 2:3"},
        {Flag::kRdzvEndpoint, "h0:x", "--rdzv-endpoint: \"x\" is not a port (0 to 65535)"},
        {Flag::kMasterPort, "70000", "--master-port: \"70000\" is not between 0 and 65535"},
        {Flag::kMasterAddr, "h0:1",
         "--master-addr: \"h0:1\" is not a host name or an address without a port; try h0 or 10.0.0.1"},
        {Flag::kLocalAddr, "a b",
         "--local-addr: \"a b\" is not a host name or an address without a port; try h0 or 10.0.0.1"},
        {Flag::kNodeRank, "-1", "--node-rank: \"-1\" is not between 0 and 65534"},
        {Flag::kNodeRank, "1", "--node-rank: 1 is not below the number of nodes, 1"},
        {Flag::kRdzvId, "a b", "--rdzv-id: \"a b\" is not a name of 1 to 200 characters without blanks"},
        {Flag::kWorkerStore, "agents", "--worker-store: \"agents\" is neither agent nor worker"},
        {Flag::kJoinTimeout, "0", "--join-timeout: \"0\" is not between 0.001 and 31536000 seconds"},
        {Flag::kRdzvConf, "join_timeout=0",
         "--rdzv-conf: join_timeout=\"0\" is not between 0.001 and 31536000 seconds"},
        {Flag::kRdzvConf, "join_timout=5",
         "--rdzv-conf: \"join_timout\" is not a known key; did you mean join_timeout?"},
        {Flag::kRdzvConf, "xyz=5",
         "--rdzv-conf: \"xyz\" is not a known key; try join_timeout, last_call_timeout or is_host"},
        {Flag::kRdzvConf, "is_host=perhaps", "--rdzv-conf: is_host=\"perhaps\" is neither yes nor no; try 1 or 0"},
        {Flag::kRdzvConf, "lease_timeout=0.9", "--rdzv-conf: lease_timeout=\"0.9\" is not between 1 and 600 seconds"},
        {Flag::kRdzvConf, "last_call_timeout=x", "--rdzv-conf: last_call_timeout=\"x\" is not a number of seconds"},
        {Flag::kRdzvConf, "store_type=file", "--rdzv-conf: store_type=\"file\" is not offered; try store_type=tcp"},
        {Flag::kRdzvConf, "join_timeout", "--rdzv-conf: \"join_timeout\" is not KEY=VALUE"},
    };
    for (const Bad& bad : table) {
        EXPECT_EQ(error_of(request({{bad.flag, bad.text}})), bad.error);
    }
}

TEST(WorkerStoreChoice, FollowsTheFlagThenTorchsVariable) {
    const HostFacts unshared = machine({}, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"});
    EXPECT_EQ(plan_of(request({})).worker_store, WorkerStore::kAgent);
    EXPECT_EQ(plan_of(request({}), unshared).worker_store, WorkerStore::kWorker);
    EXPECT_EQ(plan_of(request({{Flag::kWorkerStore, "agent"}}), unshared).worker_store, WorkerStore::kAgent);
    EXPECT_EQ(plan_of(request({{Flag::kWorkerStore, "worker"}})).worker_store, WorkerStore::kWorker);
    const HostFacts shared = machine({}, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=0"});
    EXPECT_EQ(plan_of(request({}), shared).worker_store, WorkerStore::kAgent);
}

TEST(WorkerStoreChoice, TorchsVariableDoesNotReachAStaticRendezvous) {
    const HostFacts unshared = machine({}, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"});
    const LaunchPlan plan = plan_of(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "h0"}}), unshared);
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kStatic);
    EXPECT_EQ(plan.worker_store, WorkerStore::kAgent);
}

TEST(LocalRendezvous, TwoWishesForOnePortContradict) {
    EXPECT_EQ(error_of(request({{Flag::kMasterPort, "6000"}, {Flag::kStorePort, "7000"}})),
              "--store-port: MASTER_PORT is already 6000 by --master-port; leave one of the two out");
    EXPECT_EQ(error_of(request({{Flag::kMasterPort, "6000"}, {Flag::kStorePort, "6000"}})), "no error");
    EXPECT_EQ(plan_of(request({{Flag::kMasterPort, "0"}})).store_ports.first, 0) << "0 leaves the choice to us";
}

TEST(JobId, AnEmptyOneIsNone) {
    const LaunchPlan plan = plan_of(request({{Flag::kRdzvId, ""}}));
    EXPECT_EQ(plan.rendezvous.job_id, "f00d");
    EXPECT_FALSE(plan.rendezvous.job_id_typed);
}

}  // namespace
}  // namespace ddl::plan::testing
