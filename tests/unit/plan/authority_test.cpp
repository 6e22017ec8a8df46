// Leases, takeover, lists of endpoints, etcd and scale-up: who may coordinate, and when the membership changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

LaunchPlan plan_of(const Requested& requested, const HostFacts& host = machine()) {
    const Result<LaunchPlan> plan = make_plan(requested, host);
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    return plan ? *plan : LaunchPlan{};
}

Requested with(Requested requested, std::initializer_list<Given> more) {
    for (const Given& one : more) {
        requested.set(one.flag, {one.text, spelling(one.flag), true});
    }
    return requested;
}

Requested dynamic(std::initializer_list<Given> more = {}) {
    return with(request({{Flag::kNnodes, "2:4"}, {Flag::kRdzvEndpoint, "h0"}}), more);
}

Requested fixed(std::initializer_list<Given> more = {}) {
    return with(request({{Flag::kNnodes, "2"}, {Flag::kMasterAddr, "h0"}}), more);
}

Requested etcd(std::initializer_list<Given> more = {}) {
    return with(request({{Flag::kNnodes, "2:4"},
                         {Flag::kRdzvBackend, "etcd"},
                         {Flag::kRdzvEndpoint, "e1,e2:2380,e3:2379"},
                         {Flag::kRdzvId, "j"}}),
                more);
}

// ---- leases and takeover ------------------------------------------------------------------------------------------

TEST(Lease, IsFiveSecondsWhereSeveralNodesCanMeet) {
    EXPECT_EQ(plan_of(request({})).rendezvous.lease_timeout, Duration::zero());
    EXPECT_EQ(plan_of(dynamic()).rendezvous.lease_timeout, Duration(5s));
    EXPECT_EQ(plan_of(fixed()).rendezvous.lease_timeout, Duration(5s));
    EXPECT_EQ(plan_of(etcd()).rendezvous.lease_timeout, Duration(5s));
}

TEST(Lease, IsTakenFromTheConf) {
    EXPECT_EQ(plan_of(dynamic({{Flag::kRdzvConf, "lease_timeout=1"}})).rendezvous.lease_timeout, Duration(1s));
    EXPECT_EQ(plan_of(fixed({{Flag::kRdzvConf, "lease_timeout=600"}})).rendezvous.lease_timeout, Duration(600s));
    EXPECT_EQ(plan_of(etcd({{Flag::kRdzvConf, "lease_timeout=2"}})).rendezvous.lease_timeout, Duration(2s));
    EXPECT_EQ(error_of(etcd({{Flag::kRdzvConf, "lease_timeout=1.9"}})),
              "--rdzv-conf: lease_timeout is below 2 s, the shortest lease of etcd; try lease_timeout=2");
    EXPECT_EQ(error_of(dynamic({{Flag::kRdzvConf, "lease_timeout=601"}})),
              "--rdzv-conf: lease_timeout=\"601\" is not between 1 and 600 seconds");
    const LaunchPlan alone = plan_of(request({{Flag::kRdzvConf, "lease_timeout=9"}}));
    EXPECT_EQ(alone.rendezvous.lease_timeout, Duration::zero());
    EXPECT_THAT(alone.notes, ElementsAre("no effect here: --rdzv-conf lease_timeout"));
}

TEST(TakeoverPlan, IsByMajorityWhereNodesAreManyAndTheEndpointMayMove) {
    EXPECT_TRUE(plan_of(dynamic()).rendezvous.takeover);
    EXPECT_TRUE(plan_of(dynamic({{Flag::kRdzvConf, "takeover=majority"}})).rendezvous.takeover);
    EXPECT_FALSE(plan_of(dynamic({{Flag::kRdzvConf, "takeover=off"}})).rendezvous.takeover);
    EXPECT_FALSE(plan_of(fixed()).rendezvous.takeover);
    EXPECT_FALSE(plan_of(etcd()).rendezvous.takeover);
    EXPECT_FALSE(plan_of(request({})).rendezvous.takeover);
    EXPECT_FALSE(plan_of(request({{Flag::kRdzvEndpoint, "10.0.0.5:29400"}})).rendezvous.takeover) << "a round of one";
}

TEST(TakeoverPlan, WhereThereIsNoneItIsSaid) {
    EXPECT_EQ(error_of(fixed({{Flag::kRdzvConf, "takeover=majority"}})),
              "--rdzv-conf: takeover=majority, but node rank 0 alone hosts a static rendezvous; try --rdzv-backend "
              "c10d with --rdzv-endpoint, or leave takeover out");
    EXPECT_THAT(plan_of(fixed({{Flag::kRdzvConf, "takeover=off"}})).notes, IsEmpty());
    EXPECT_THAT(plan_of(etcd({{Flag::kRdzvConf, "takeover=majority"}})).notes,
                ElementsAre("no effect here: --rdzv-conf takeover"));
    EXPECT_EQ(error_of(dynamic({{Flag::kRdzvConf, "takeover=1"}})),
              "--rdzv-conf: takeover=\"1\" is neither majority nor off");
}

// ---- lists of endpoints -------------------------------------------------------------------------------------------

TEST(EndpointList, TheFirstHostsAndTheOthersMayFollow) {
    const RendezvousPlan plan = plan_of(dynamic({{Flag::kRdzvEndpoint, "h0,h1,h2:5"}})).rendezvous;
    EXPECT_EQ(plan.kind, Rendezvous::kDynamic);
    EXPECT_EQ(plan.endpoint, (Endpoint{"h0", 5}));
    EXPECT_THAT(plan.endpoints, ElementsAre(Endpoint{"h0", 5}, Endpoint{"h1", 5}, Endpoint{"h2", 5}));
    EXPECT_THAT(plan_of(dynamic()).rendezvous.endpoints, ElementsAre(Endpoint{"h0", 29400}));
    EXPECT_THAT(plan_of(fixed()).rendezvous.endpoints, ElementsAre(Endpoint{"h0", 29500}));
    EXPECT_THAT(plan_of(request({})).rendezvous.endpoints, IsEmpty());
}

TEST(EndpointList, RefusesWhatCannotWork) {
    EXPECT_EQ(error_of(dynamic({{Flag::kRdzvEndpoint, "h0,h1,h0"}})),
              "--rdzv-endpoint: \"h0,h1,h0\" names h0:29400 twice; leave one of them out");
    EXPECT_EQ(error_of(dynamic({{Flag::kRdzvEndpoint, "h0,localhost"}, {Flag::kRdzvConf, "is_host=1"}})),
              "--rdzv-endpoint: \"localhost\" is a different machine for every node; in a list, name addresses that "
              "all nodes can reach");
    EXPECT_THAT(error_of(dynamic({{Flag::kRdzvEndpoint, "h0:1,h1:0"}})), HasSubstr("port 0 is a different port"));
    EXPECT_EQ(error_of(fixed({{Flag::kRdzvBackend, "static"}, {Flag::kRdzvEndpoint, "h0,h1"}})),
              "--rdzv-endpoint: \"h0,h1\" is a list, but node rank 0 alone hosts a static rendezvous; try its "
              "address, or --rdzv-backend c10d");
}

// ---- etcd ---------------------------------------------------------------------------------------------------------

TEST(Etcd, IsFoundAtItsMembers) {
    const LaunchPlan plan = plan_of(etcd());
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kEtcd);
    EXPECT_THAT(plan.rendezvous.endpoints,
                ElementsAre(Endpoint{"e1", 2379}, Endpoint{"e2", 2380}, Endpoint{"e3", 2379}));
    EXPECT_EQ(plan.rendezvous.endpoint, (Endpoint{"e1", 2379}));
    EXPECT_FALSE(plan.loopback_only);
    EXPECT_FALSE(plan.rendezvous.etcd.tls);
    EXPECT_EQ(plan.master_addr, "");
    EXPECT_THAT(plan.notes, IsEmpty());
    EXPECT_EQ(plan_of(etcd({{Flag::kRdzvEndpoint, "e1"}})).rendezvous.endpoint.port, 2379);
}

TEST(Etcd, MayBeAGatewayOnEveryNode) {
    EXPECT_EQ(plan_of(etcd({{Flag::kRdzvEndpoint, "localhost"}})).rendezvous.kind, Rendezvous::kEtcd);
    EXPECT_EQ(plan_of(etcd({{Flag::kRdzvEndpoint, "127.0.0.1:1,127.0.0.1:2"}})).rendezvous.endpoints.size(), 2U);
    EXPECT_THAT(error_of(etcd({{Flag::kRdzvEndpoint, "e1:0"}})), HasSubstr("port 0 is a different port"));
}

TEST(Etcd, NeedsAnIdAndAPlace) {
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvBackend, "etcd"}, {Flag::kRdzvEndpoint, "e1"}})),
              "--rdzv-id: is needed with --rdzv-backend etcd, which other jobs may use, too; add --rdzv-id NAME, the "
              "same on all nodes of this job and of no other");
    EXPECT_EQ(error_of(request({{Flag::kNnodes, "2"}, {Flag::kRdzvBackend, "etcd"}, {Flag::kRdzvId, "j"}})),
              "--nnodes: \"2\" needs a place where the nodes meet; try --rdzv-endpoint E1:2379,E2:2379, the same on "
              "all nodes");
}

TEST(Etcd, OfOneNodeIsNotAsked) {
    const LaunchPlan plan = plan_of(etcd({{Flag::kNnodes, "1"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kLocal);
    EXPECT_TRUE(plan.loopback_only);
    EXPECT_EQ(plan.master_addr, "") << "etcd's host is nobody's master";
    EXPECT_THAT(plan.notes, ElementsAre("no effect here: --rdzv-backend etcd (one node, nobody to find)"));
    EXPECT_EQ(plan_of(request({{Flag::kRdzvBackend, "etcd"}, {Flag::kStandalone, "1"}})).rendezvous.kind,
              Rendezvous::kLocal);
}

TEST(Etcd, TheOldNameIsTakenWithANote) {
    const LaunchPlan plan = plan_of(etcd({{Flag::kRdzvBackend, "etcd-v2"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kEtcd);
    EXPECT_THAT(plan.notes, ElementsAre("--rdzv-backend: etcd-v2 is taken for etcd: its version 3 API is used"));
}

TEST(Etcd, IsReachedAsTheConfSays) {
    for (const char* conf : {"cacert=/ca,cert=/c,key=/k,user=joe,etcd_prefix=/x",
                             "protocol=https,ca_cert=/ca,ssl_cert=/c,ssl_cert_key=/k,user=joe"}) {
        const EtcdPlan plan =
            plan_of(etcd({{Flag::kRdzvConf, conf}}), machine({}, {"DDL_ETCD_PASSWORD=s3cret"})).rendezvous.etcd;
        EXPECT_TRUE(plan.tls) << conf;
        EXPECT_EQ(plan.ca_file, "/ca");
        EXPECT_EQ(plan.certificate_file, "/c");
        EXPECT_EQ(plan.key_file, "/k");
        EXPECT_EQ(plan.user, "joe");
        EXPECT_EQ(plan.password, "s3cret");
    }
}

TEST(Etcd, APasswordIsBetterInTheEnvironment) {
    const HostFacts host = machine({}, {"DDL_ETCD_PASSWORD=s3cret"});
    const LaunchPlan typed = plan_of(etcd({{Flag::kRdzvConf, "user=joe,password=pw"}}), host);
    EXPECT_EQ(typed.rendezvous.etcd.password, "pw") << "the command line goes before variables";
    EXPECT_THAT(typed.notes, ElementsAre("--rdzv-conf: every user of this node can see the password; "
                                         "DDL_ETCD_PASSWORD in the environment hides it"));
    EXPECT_EQ(plan_of(etcd(), host).rendezvous.etcd.password, "") << "nobody to log in as";
    EXPECT_EQ(error_of(etcd({{Flag::kRdzvConf, "user=joe"}})),
              "--rdzv-conf: user without a password; set DDL_ETCD_PASSWORD");
    EXPECT_EQ(error_of(etcd({{Flag::kRdzvConf, "password=pw"}})), "--rdzv-conf: password without user; add user=NAME");
}

TEST(Etcd, RefusesHalfACertificate) {
    EXPECT_EQ(error_of(etcd({{Flag::kRdzvConf, "cert=/c"}})),
              "--rdzv-conf: cert and key belong together; add key=FILE");
    EXPECT_EQ(error_of(etcd({{Flag::kRdzvConf, "key=/k"}})),
              "--rdzv-conf: cert and key belong together; add cert=FILE");
    EXPECT_EQ(error_of(etcd({{Flag::kRdzvConf, "protocol=http,cacert=/ca"}})),
              "--rdzv-conf: protocol=http uses no certificates; try protocol=https, or leave them out");
    EXPECT_EQ(error_of(etcd({{Flag::kRdzvConf, "protocol=ftp"}})),
              "--rdzv-conf: protocol=\"ftp\" is neither https nor http");
}

TEST(Etcd, ItsKeysMeanNothingElsewhere) {
    EXPECT_THAT(plan_of(dynamic({{Flag::kRdzvConf, "protocol=https,cert=/c"}})).notes,
                ElementsAre("no effect here: --rdzv-conf protocol, --rdzv-conf cert"));
    EXPECT_THAT(plan_of(etcd({{Flag::kRdzvConf, "is_host=1"}})).notes,
                ElementsAre("no effect here: --rdzv-conf is_host"));
}

TEST(Etcd, AnOperatorsVariablesAreEnough) {
    const LaunchPlan plan = plan_of(by_variables({{Flag::kNnodes, "2"},
                                                  {Flag::kRdzvBackend, "etcd"},
                                                  {Flag::kRdzvEndpoint, "etcd-0,etcd-1:2380"},
                                                  {Flag::kRdzvId, "j"},
                                                  {Flag::kRdzvConf, "user=joe,password=pw,is_host=1"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kEtcd);
    EXPECT_THAT(plan.rendezvous.endpoints, ElementsAre(Endpoint{"etcd-0", 2380}, Endpoint{"etcd-1", 2380}));
    EXPECT_EQ(plan.rendezvous.etcd.password, "pw");
    EXPECT_THAT(plan.notes, IsEmpty()) << "nobody typed anything that could be left out";
    EXPECT_EQ(error_of(by_variables({{Flag::kNnodes, "2"}, {Flag::kRdzvBackend, "etcd"}, {Flag::kRdzvEndpoint, "e1"}})),
              "--rdzv-id: is needed with --rdzv-backend etcd, which other jobs may use, too; add --rdzv-id NAME, the "
              "same on all nodes of this job and of no other");
}

TEST(Etcd, LeavesAFixedMasterToRankNought) {
    const LaunchPlan plan = plan_of(etcd({{Flag::kWorkerStore, "worker"},
                                          {Flag::kMasterAddr, "h0"},
                                          {Flag::kMasterPort, "6000"},
                                          {Flag::kNodeRank, "1"}}));
    EXPECT_EQ(plan.rendezvous.kind, Rendezvous::kEtcd);
    EXPECT_EQ(plan.rendezvous.node_rank, 1);
    EXPECT_EQ(plan.master_addr, "h0");
    EXPECT_EQ(plan.store_ports.first, 6000);
}

// ---- scale-up -----------------------------------------------------------------------------------------------------

TEST(ScaleUpPlan, IsAtOnceUnlessAskedOtherwise) {
    EXPECT_EQ(plan_of(dynamic()).rendezvous.scale_up, ScaleUp::kNow);
    EXPECT_EQ(plan_of(dynamic()).rendezvous.scale_up_deadline, Duration(30min));
    EXPECT_EQ(plan_of(dynamic({{Flag::kScaleUp, "never"}})).rendezvous.scale_up, ScaleUp::kNever);
    const RendezvousPlan plan =
        plan_of(etcd({{Flag::kScaleUp, "at-checkpoint"}, {Flag::kScaleUpDeadline, "2h"}})).rendezvous;
    EXPECT_EQ(plan.scale_up, ScaleUp::kAtCheckpoint);
    EXPECT_EQ(plan.scale_up_deadline, Duration(2h));
}

TEST(ScaleUpPlan, SaysWhatIsWrongOrUseless) {
    EXPECT_EQ(error_of(dynamic({{Flag::kScaleUp, "later"}})),
              "--scale-up: \"later\" is not one of now, at-checkpoint, never");
    EXPECT_THAT(error_of(dynamic({{Flag::kScaleUpDeadline, "0"}})), HasSubstr("--scale-up-deadline: \"0\" is not"));
    EXPECT_THAT(plan_of(fixed({{Flag::kScaleUp, "never"}})).notes, ElementsAre("no effect here: --scale-up"));
    EXPECT_THAT(plan_of(dynamic({{Flag::kScaleUpDeadline, "60"}})).notes,
                ElementsAre("no effect here: --scale-up-deadline"));
}

}  // namespace
}  // namespace ddl::plan::testing
