// From the plan to what core asks for, field by field, and exit codes as schedulers want them.
#include "run/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddl::run {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::IsEmpty;

plan::LaunchPlan two_nodes() {
    plan::LaunchPlan plan;
    plan.node_name = "n1";
    plan.workers = 8;
    plan.role = "trainer";
    plan.rendezvous.kind = plan::Rendezvous::kDynamic;
    plan.rendezvous.endpoint = {"h0", 29400};
    plan.rendezvous.job_id = "job-7";
    plan.rendezvous.job_id_typed = true;
    plan.rendezvous.min_nodes = 2;
    plan.rendezvous.max_nodes = 4;
    plan.rendezvous.node_rank = 1;
    plan.rendezvous.local_addr = "10.0.0.7";
    plan.rendezvous.command_digest = "00ff";
    plan.rendezvous.join_timeout = 600s;
    plan.rendezvous.last_call_timeout = 30s;
    plan.rendezvous.rejoin_timeout = 60s;
    plan.supervision.max_restarts = 3;
    plan.supervision.restart_grace = 2s;
    plan.supervision.shutdown_timeout = 25s;
    plan.supervision.keep_children = true;
    return plan;
}

plan::LaunchPlan alone() {
    plan::LaunchPlan plan;
    plan.rendezvous.kind = plan::Rendezvous::kLocal;
    plan.loopback_only = true;
    return plan;
}

TEST(AgentSettings, AreThoseOfThePlan) {
    const core::AgentSettings settings = agent_settings(two_nodes(), "nonce");
    EXPECT_EQ(settings.terms, (wire::JobTerms{"job-7", true, 2, 4, 3, "c10d", "00ff"}));
    EXPECT_EQ(settings.node.name, "n1");
    EXPECT_EQ(settings.node.incarnation, "nonce");
    EXPECT_EQ(settings.node.workers, 8);
    EXPECT_EQ(settings.node.role, "trainer");
    EXPECT_EQ(settings.node.requested_rank, 1);
    EXPECT_EQ(settings.node.announced_address, "10.0.0.7");
    EXPECT_EQ(settings.node.connection_address, "") << "known when the session is up";
    EXPECT_THAT(settings.node.addresses, Contains("127.0.0.1"));
    EXPECT_EQ(settings.endpoint_text, "h0:29400");
    EXPECT_FALSE(settings.hosts) << "who hosts such a job is found out later";
    EXPECT_TRUE(settings.keep_children);
    EXPECT_EQ(settings.join_timeout, Duration(600s));
    EXPECT_EQ(settings.rejoin_timeout, Duration(60s));
    EXPECT_EQ(settings.restart_grace, Duration(2s));
    EXPECT_EQ(settings.shutdown_timeout, Duration(25s));
}

TEST(AgentSettings, OfALoneNodeTellNobodyItsAddresses) {
    const core::AgentSettings settings = agent_settings(alone(), "nonce");
    EXPECT_TRUE(settings.hosts);
    EXPECT_EQ(settings.endpoint_text, "this node");
    EXPECT_THAT(settings.node.addresses, IsEmpty());
    EXPECT_EQ(settings.node.requested_rank, std::nullopt);
}

TEST(AgentSettings, AnIpv6EndpointIsShownInBrackets) {
    plan::LaunchPlan plan = two_nodes();
    plan.rendezvous.endpoint = {"fd00::1", 1234};
    EXPECT_EQ(agent_settings(plan, "n").endpoint_text, "[fd00::1]:1234");
}

TEST(CoordinatorSettings, AreThoseOfThePlan) {
    const core::CoordinatorSettings settings = coordinator_settings(two_nodes(), "");
    EXPECT_EQ(settings.terms, agent_settings(two_nodes(), "").terms) << "or this node would refuse itself";
    EXPECT_EQ(settings.endpoint_host, "h0");
    EXPECT_EQ(settings.endpoint_text, "h0:29400");
    EXPECT_EQ(settings.local_name, "n1");
    EXPECT_EQ(settings.join_timeout, Duration(600s));
    EXPECT_EQ(settings.last_call_timeout, Duration(30s));
    EXPECT_EQ(settings.rejoin_timeout, Duration(60s));
    EXPECT_GT(settings.farewell_timeout, Duration(25s)) << "agents may use up their shutdown timeout first";
}

TEST(CoordinatorSettings, TheMastersAddressAsTypedElseOfTheEndpointElseLoopback) {
    plan::LaunchPlan plan = two_nodes();
    plan.master_addr = "10.0.0.1";
    EXPECT_EQ(coordinator_settings(plan, "n").endpoint_host, "10.0.0.1");
    plan.master_addr.clear();
    EXPECT_EQ(coordinator_settings(plan, "n").endpoint_host, "h0");
    EXPECT_EQ(coordinator_settings(alone(), "n").endpoint_host, "127.0.0.1");
    plan = alone();
    plan.master_addr = "localhost";
    EXPECT_EQ(coordinator_settings(plan, "n").endpoint_host, "localhost");
}

TEST(CoordinatorSettings, BackendsDoNotMix) {
    plan::LaunchPlan plan = two_nodes();
    plan.rendezvous.kind = plan::Rendezvous::kStatic;
    EXPECT_EQ(coordinator_settings(plan, "n").terms.backend, "static");
    EXPECT_EQ(coordinator_settings(two_nodes(), "").terms.backend, "c10d");
}

struct Row {
    int exit_code;
    wire::ExitOrigin origin;
    int expected;
};

TEST(ExitCodeClass, SaysOnlyWhetherToTryAgain) {
    using wire::ExitOrigin;
    const Row table[] = {
        {0, ExitOrigin::kSuccess, 0},     {1, ExitOrigin::kWorker, 67},
        {2, ExitOrigin::kWorker, 67},   // a worker's own 2 is no usage error of ours
        {65, ExitOrigin::kWorker, 67},  // nor is its 65 our advice
        {137, ExitOrigin::kWorker, 67},   {2, ExitOrigin::kLauncher, 2},
        {64, ExitOrigin::kLauncher, 65},                                    // nodes that did not come
        {65, ExitOrigin::kLauncher, 65},  {66, ExitOrigin::kLauncher, 65},  // preempted
        {67, ExitOrigin::kLauncher, 67},  {68, ExitOrigin::kLauncher, 65},
        {143, ExitOrigin::kLauncher, 65},
    };
    for (const Row& row : table) {
        wire::JobOver over;
        over.exit_code = row.exit_code;
        over.origin = row.origin;
        EXPECT_EQ(exit_code_class(over), row.expected)
            << row.exit_code << " by " << (row.origin == ExitOrigin::kWorker ? "a worker" : "the launcher");
    }
}

}  // namespace
}  // namespace ddl::run
