#include "run/settings.hpp"

#include "base/text.hpp"
#include "os/host.hpp"

namespace ddl::run {
namespace {

// After the job's end, agents have the shutdown timeout for their workers and this long for the rest.
constexpr auto kFarewellMargin = std::chrono::seconds(15);

const char* backend_name(plan::Rendezvous kind) {
    switch (kind) {
        case plan::Rendezvous::kStatic:
            return "static";
        case plan::Rendezvous::kEtcd:
            return "etcd";
        default:
            return "c10d";
    }
}

wire::JobTerms job_terms(const plan::LaunchPlan& plan) {
    wire::JobTerms terms;
    terms.job_id = plan.rendezvous.job_id;
    terms.job_id_typed = plan.rendezvous.job_id_typed;
    terms.min_nodes = plan.rendezvous.min_nodes;
    terms.max_nodes = plan.rendezvous.max_nodes;
    terms.max_restarts = plan.supervision.max_restarts;
    terms.backend = backend_name(plan.rendezvous.kind);
    terms.lease = plan.rendezvous.lease_timeout;
    terms.takeover = plan.rendezvous.takeover;
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

// This agent as others reach it, as far as it can know: the port is added when it is open.
wire::Contact own_contact(const plan::LaunchPlan& plan, const std::string& nonce) {
    const plan::RendezvousPlan& rendezvous = plan.rendezvous;
    return {plan.node_name, nonce, rendezvous.local_addr.empty() ? rendezvous.endpoint.host : rendezvous.local_addr, 0};
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
    settings.forward_signals = plan.supervision.forward_signals;
    settings.keep_children = plan.supervision.keep_children;
    settings.join_timeout = plan.rendezvous.join_timeout;
    settings.rejoin_timeout = plan.rendezvous.rejoin_timeout;
    settings.restart_grace = plan.supervision.restart_grace;
    settings.shutdown_timeout = plan.supervision.shutdown_timeout;
    return settings;
}

core::CoordinatorSettings coordinator_settings(const plan::LaunchPlan& plan, const std::string& nonce) {
    core::CoordinatorSettings settings;
    settings.terms = job_terms(plan);
    settings.endpoint_host = local_master_address(plan);
    settings.endpoint_text = endpoint_text(plan);
    settings.local_name = plan.node_name;
    settings.join_timeout = plan.rendezvous.join_timeout;
    settings.last_call_timeout = plan.rendezvous.last_call_timeout;
    settings.rejoin_timeout = plan.rendezvous.rejoin_timeout;
    settings.farewell_timeout = plan.supervision.shutdown_timeout + kFarewellMargin;
    settings.restart_grace = plan.supervision.restart_grace;
    settings.restart_rules = {plan.supervision.max_restarts,      plan.supervision.restart_window,
                              plan.supervision.no_restart_codes,  plan.supervision.restart_backoff,
                              plan.supervision.crash_loop_window, plan.supervision.free_node_loss};
    settings.scale_up = plan.rendezvous.scale_up;
    settings.scale_up_deadline = plan.rendezvous.scale_up_deadline;
    settings.self = own_contact(plan, nonce);
    settings.candidates_only = plan.rendezvous.endpoints.size() > 1;
    settings.authority_outside = plan.rendezvous.kind == plan::Rendezvous::kEtcd;
    return settings;
}

core::TakeoverSettings takeover_settings(const plan::LaunchPlan& plan, const std::string& nonce) {
    core::TakeoverSettings settings;
    settings.terms = job_terms(plan);
    settings.self = own_contact(plan, nonce);
    if (plan.rendezvous.takeover) {
        for (const plan::Endpoint& endpoint : plan.rendezvous.endpoints) {
            const std::string text = host_and_port(endpoint.host, endpoint.port);
            settings.endpoints.push_back({text, "endpoint " + text, endpoint.host, endpoint.port});
        }
    }
    return settings;
}

core::NodeSettings node_settings(const plan::LaunchPlan& plan, const std::string& nonce) {
    return {agent_settings(plan, nonce), coordinator_settings(plan, nonce), takeover_settings(plan, nonce)};
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
