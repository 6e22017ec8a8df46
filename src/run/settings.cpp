#include "run/settings.hpp"

#include "base/text.hpp"
#include "os/host.hpp"

namespace ddl::run {
namespace {

// After the job's end, agents have the shutdown timeout for their workers and this long for the rest.
constexpr auto kFarewellMargin = std::chrono::seconds(15);

wire::JobTerms job_terms(const plan::LaunchPlan& plan) {
    wire::JobTerms terms;
    terms.job_id = plan.rendezvous.job_id;
    terms.job_id_typed = plan.rendezvous.job_id_typed;
    terms.min_nodes = plan.rendezvous.min_nodes;
    terms.max_nodes = plan.rendezvous.max_nodes;
    terms.max_restarts = plan.supervision.max_restarts;
    terms.backend = plan.rendezvous.kind == plan::Rendezvous::kStatic ? "static" : "c10d";
    terms.command_digest = plan.rendezvous.command_digest;
    return terms;
}

std::string endpoint_text(const plan::LaunchPlan& plan) {
    const plan::Endpoint& endpoint = plan.rendezvous.endpoint;
    return endpoint.host.empty() ? "this node" : host_and_port(endpoint.host, endpoint.port);
}

std::string local_master_address(const plan::LaunchPlan& plan) {
    if (!plan.master_addr.empty()) {
        return plan.master_addr;
    }
    return plan.rendezvous.endpoint.host.empty() ? "127.0.0.1" : plan.rendezvous.endpoint.host;
}

}  // namespace

core::AgentSettings agent_settings(const plan::LaunchPlan& plan, const std::string& nonce) {
    core::AgentSettings settings;
    settings.terms = job_terms(plan);
    settings.node.name = plan.node_name;
    settings.node.incarnation = nonce;
    settings.node.workers = plan.workers;
    settings.node.role = plan.role;
    settings.node.requested_rank = plan.rendezvous.node_rank;
    settings.node.announced_address = plan.rendezvous.local_addr;
    if (!plan.loopback_only) {
        settings.node.addresses = os::interface_addresses();
    }
    settings.endpoint_text = endpoint_text(plan);
    settings.hosts = plan.rendezvous.kind == plan::Rendezvous::kLocal;
    settings.keep_children = plan.supervision.keep_children;
    settings.join_timeout = plan.rendezvous.join_timeout;
    settings.rejoin_timeout = plan.rendezvous.rejoin_timeout;
    settings.restart_grace = plan.supervision.restart_grace;
    settings.shutdown_timeout = plan.supervision.shutdown_timeout;
    return settings;
}

core::CoordinatorSettings coordinator_settings(const plan::LaunchPlan& plan) {
    core::CoordinatorSettings settings;
    settings.terms = job_terms(plan);
    settings.endpoint_host = local_master_address(plan);
    settings.endpoint_text = endpoint_text(plan);
    settings.local_name = plan.node_name;
    settings.join_timeout = plan.rendezvous.join_timeout;
    settings.last_call_timeout = plan.rendezvous.last_call_timeout;
    settings.rejoin_timeout = plan.rendezvous.rejoin_timeout;
    settings.farewell_timeout = plan.supervision.shutdown_timeout + kFarewellMargin;
    return settings;
}

int exit_code_class(const wire::JobOver& over) {
    constexpr int kRetry = 65;
    constexpr int kDontRetry = 67;
    if (over.exit_code == 0) {
        return 0;
    }
    if (over.origin == wire::ExitOrigin::kWorker || over.exit_code == kDontRetry) {
        return kDontRetry;
    }
    return over.exit_code == 2 ? 2 : kRetry;
}

}  // namespace ddl::run
