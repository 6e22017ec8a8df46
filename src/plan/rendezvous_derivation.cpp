#include "plan/rendezvous_derivation.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "plan/authority_derivation.hpp"
#include "plan/meeting.hpp"
#include "plan/quoted.hpp"

namespace ddl::plan {

namespace {

void fix_store_port(Asked& asked, LaunchPlan& plan, std::uint16_t port, const std::string& because) {
    const PortRange fixed{port, port};
    if (plan.store_ports.first != 0 && (plan.store_ports.first != port || plan.store_ports.last != port)) {
        asked.refuse(Flag::kStorePort, "MASTER_PORT is already " + std::to_string(port) + " by " + because +
                                           "; leave one of the two out");
    }
    plan.store_ports = fixed;
}

void check_node_rank(Asked& asked, const RendezvousPlan& rendezvous) {
    if (rendezvous.node_rank && *rendezvous.node_rank >= rendezvous.max_nodes) {
        asked.refuse(Flag::kNodeRank, std::to_string(*rendezvous.node_rank) + " is not below the number of nodes, " +
                                          std::to_string(rendezvous.max_nodes));
    }
}

// One node and nobody to wait for.
void plan_local(Asked& asked, const Meeting& meeting, LaunchPlan& plan) {
    plan.rendezvous.kind = Rendezvous::kLocal;
    check_node_rank(asked, plan.rendezvous);
    plan.rendezvous.node_rank.reset();
    plan.master_addr = meeting.master_addr.empty() ? plan.rendezvous.local_addr : meeting.master_addr;
    plan.loopback_only = plan.master_addr.empty() || is_loopback_host(plan.master_addr);
    if (meeting.master_port != 0) {
        fix_store_port(asked, plan, meeting.master_port, asked.origin(Flag::kMasterPort));
    }
}

void plan_standalone(Asked& asked, Meeting meeting, LaunchPlan& plan) {
    if (plan.rendezvous.max_nodes > 1) {
        asked.refuse(Flag::kStandalone, "is for one node, but " + asked.origin(Flag::kNnodes) + " asks for " +
                                            asked.text(Flag::kNnodes) + "; try --rdzv-endpoint HOST:PORT instead");
    }
    // A variable that an operator sets for every pod gives way to what was typed; two typed wishes contradict.
    if (meeting.endpoint && asked.typed(Flag::kRdzvEndpoint) && !is_loopback_host(meeting.endpoint->host)) {
        asked.refuse(Flag::kStandalone, "means that no other node takes part, but " +
                                            asked.origin(Flag::kRdzvEndpoint) + " names " + meeting.endpoint->host +
                                            "; leave one of the two out");
    }
    if (meeting.backend == Backend::kStatic || meeting.backend == Backend::kEtcd) {
        asked.note_no_effect(Flag::kRdzvBackend);
    }
    plan_local(asked, meeting, plan);
}

// Several nodes that all call their meeting point "this machine" would each wait alone, unless somebody said who hosts.
void check_reachable(Asked& asked, Flag flag, const Endpoint& endpoint, const LaunchPlan& plan, bool host_is_said) {
    if (endpoint.port == 0) {
        asked.refuse(flag, "port 0 is a different port on every start; name one that all nodes can use");
    }
    if (plan.rendezvous.max_nodes > 1 && is_loopback_host(endpoint.host) && !host_is_said) {
        asked.refuse(flag, quoted(endpoint.host) + " is a different machine for every node; name an address of one " +
                               "node, or, for several agents on this machine, say who hosts: --rdzv-conf is_host=1 "
                               "on one, is_host=0 on the others");
    }
}

// Who of several agents on one machine owns which of its endpoints cannot be told.
void check_endpoint_list(Asked& asked, const LaunchPlan& plan) {
    for (const Endpoint& endpoint : plan.rendezvous.endpoints) {
        if (plan.rendezvous.max_nodes > 1 && is_loopback_host(endpoint.host)) {
            asked.refuse(Flag::kRdzvEndpoint, quoted(endpoint.host) + " is a different machine for every node; in a " +
                                                  "list, name addresses that all nodes can reach");
        }
        check_reachable(asked, Flag::kRdzvEndpoint, endpoint, plan, true);
    }
}

// At one of the nodes, or through etcd: an etcd on every node's localhost (a gateway) is one etcd nevertheless.
void plan_at_endpoint(Asked& asked, const Meeting& meeting, LaunchPlan& plan) {
    const bool etcd = meeting.backend == Backend::kEtcd;
    plan.rendezvous.kind = etcd ? Rendezvous::kEtcd : Rendezvous::kDynamic;
    plan.rendezvous.endpoint = *meeting.endpoint;
    plan.rendezvous.endpoints = meeting.endpoints;
    if (!etcd && meeting.endpoints.size() > 1) {
        check_endpoint_list(asked, plan);
    } else {
        check_reachable(asked, Flag::kRdzvEndpoint, *meeting.endpoint, plan,
                        etcd || plan.rendezvous.is_host.has_value());
    }
    check_node_rank(asked, plan.rendezvous);
}

// Node rank 0's address and port, from whichever flags say it.
Endpoint static_endpoint(Asked& asked, const Meeting& meeting) {
    const std::uint16_t port = meeting.master_port != 0 ? meeting.master_port : kStaticPort;
    const Endpoint by_master{meeting.master_addr, port};
    if (!meeting.endpoint) {
        return by_master;
    }
    const bool other_host = !meeting.master_addr.empty() && meeting.master_addr != meeting.endpoint->host;
    const bool other_port = meeting.master_port != 0 && meeting.master_port != meeting.endpoint->port;
    if (other_host || other_port) {
        asked.refuse(Flag::kRdzvEndpoint, "says " + host_and_port(meeting.endpoint->host, meeting.endpoint->port) +
                                              ", but --master-addr and --master-port say " +
                                              host_and_port(other_host ? meeting.master_addr : meeting.endpoint->host,
                                                            other_port ? meeting.master_port : meeting.endpoint->port) +
                                              "; leave one of the two out");
    }
    return *meeting.endpoint;
}

// Node rank 0 hosts, so its address must be its own. Without --node-rank every node would take itself for it.
void check_master_is_here(Asked& asked, const Meeting& meeting, const HostFacts& host, LaunchPlan& plan) {
    const RendezvousPlan& rendezvous = plan.rendezvous;
    const std::string& address = rendezvous.endpoint.host;
    if (*rendezvous.node_rank != 0 || rendezvous.is_host || !is_numeric_address(address) || is_loopback_host(address) ||
        host.owns_address(address)) {
        return;
    }
    const Flag flag = meeting.endpoint ? Flag::kRdzvEndpoint : Flag::kMasterAddr;
    const std::string last = std::to_string(rendezvous.max_nodes - 1);
    if (meeting.node_rank) {
        plan.notes.push_back(asked.origin(flag) + ": " + address + " is no address of this node, though it is node " +
                             "rank 0; the others must reach it there");
    } else {
        asked.refuse(flag, address + " is no address of this node, so it cannot be node rank 0; give --node-rank (" +
                               (rendezvous.max_nodes > 2 ? "1 to " + last : last) +
                               ") here, or --rdzv-conf is_host=1 if the address is mapped to this node");
    }
}

void plan_static(Asked& asked, const Meeting& meeting, const HostFacts& host, LaunchPlan& plan) {
    RendezvousPlan& rendezvous = plan.rendezvous;
    rendezvous.kind = Rendezvous::kStatic;
    rendezvous.node_rank = meeting.node_rank.value_or(0);
    rendezvous.endpoint = static_endpoint(asked, meeting);
    rendezvous.endpoints = {rendezvous.endpoint};
    if (meeting.endpoints.size() > 1) {
        asked.refuse(Flag::kRdzvEndpoint, quoted(asked.text(Flag::kRdzvEndpoint)) +
                                              " is a list, but node rank 0 alone hosts a static rendezvous; try its "
                                              "address, or --rdzv-backend c10d");
    }
    check_node_rank(asked, rendezvous);
    check_reachable(asked, meeting.endpoint ? Flag::kRdzvEndpoint : Flag::kMasterAddr, rendezvous.endpoint, plan,
                    meeting.node_rank.has_value() || rendezvous.is_host.has_value());
    if (rendezvous.min_nodes != rendezvous.max_nodes) {
        asked.refuse(Flag::kNnodes, quoted(asked.text(Flag::kNnodes)) +
                                        " is a range, but a static rendezvous has a fixed number of nodes; try "
                                        "--rdzv-endpoint HOST:PORT with --rdzv-backend c10d");
    }
    if (rendezvous.is_host && *rendezvous.is_host != (*rendezvous.node_rank == 0)) {
        asked.refuse(Flag::kRdzvConf, "is_host contradicts --node-rank " + std::to_string(*rendezvous.node_rank) +
                                          ": node rank 0 hosts a static rendezvous; leave is_host out");
    }
    if (plan.worker_store == WorkerStore::kWorker && asked.given(Flag::kWorkerStore)) {
        asked.refuse(Flag::kWorkerStore, "worker leaves " + std::to_string(rendezvous.endpoint.port) +
                                             " to rank 0, but the agents of a static rendezvous meet there; add "
                                             "--rdzv-endpoint HOST:PORT with another port");
    }
    check_master_is_here(asked, meeting, host, plan);
    plan.worker_store = WorkerStore::kAgent;
    fix_store_port(asked, plan, rendezvous.endpoint.port, "the static rendezvous");
}

// Workers that host MASTER_PORT themselves on several nodes, with a meeting point of their own for the agents.
bool is_static_beside_endpoint(const Asked& asked, const Meeting& meeting, const LaunchPlan& plan) {
    return plan.worker_store == WorkerStore::kWorker && asked.given(Flag::kWorkerStore) && meeting.endpoint &&
           !meeting.master_addr.empty() && plan.rendezvous.max_nodes > 1;
}

void plan_static_beside_endpoint(Asked& asked, Meeting meeting, LaunchPlan& plan) {
    const std::uint16_t port = meeting.master_port != 0 ? meeting.master_port : kStaticPort;
    if (meeting.endpoint->port == port && meeting.endpoint->host == meeting.master_addr) {
        asked.refuse(Flag::kRdzvEndpoint, "is where rank 0 will listen, too; give the agents another port");
    }
    plan.master_addr = meeting.master_addr;
    fix_store_port(asked, plan, port, "--master-port");
    plan.rendezvous.node_rank = meeting.node_rank.value_or(0);
    plan_at_endpoint(asked, meeting, plan);
}

void refuse_nowhere_to_meet(Asked& asked, const Meeting& meeting) {
    const std::string host = meeting.master_addr.empty() ? "HOST" : meeting.master_addr;
    const std::string example = meeting.backend == Backend::kEtcd ? "E1:2379,E2:2379" : host + ":29400";
    asked.refuse(Flag::kNnodes, quoted(asked.text(Flag::kNnodes)) + " needs a place where the nodes meet; try " +
                                    "--rdzv-endpoint " + example + ", the same on all nodes");
}

void read_job(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    const NodeRange nodes = asked.value(Flag::kNnodes, NodeRange{}, parse_node_range);
    plan.rendezvous.min_nodes = nodes.min;
    plan.rendezvous.max_nodes = nodes.max;
    plan.rendezvous.job_id_typed = !asked.text(Flag::kRdzvId).empty();
    plan.rendezvous.job_id =
        plan.rendezvous.job_id_typed ? asked.value(Flag::kRdzvId, host.fresh_id, parse_job_id) : host.fresh_id;
    plan.rendezvous.local_addr = asked.value(Flag::kLocalAddr, std::string(), parse_host);
    plan.store_ports = asked.value(Flag::kStorePort, PortRange{}, parse_port_range);
}

void read_worker_store(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    const bool unshared = lookup(host.environment, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE").value == "1";
    plan.worker_store = asked.value(Flag::kWorkerStore, unshared ? WorkerStore::kWorker : WorkerStore::kAgent,
                                    [](std::string_view text) -> Result<WorkerStore> {
                                        if (text == "agent" || text == "worker") {
                                            return text == "agent" ? WorkerStore::kAgent : WorkerStore::kWorker;
                                        }
                                        return fail(quoted(text) + " is neither agent nor worker");
                                    });
}

// One node, with an endpoint that nobody else can or need reach.
bool is_alone(const Meeting& meeting, const RendezvousPlan& rendezvous) {
    if (rendezvous.max_nodes > 1) {
        return false;
    }
    return !meeting.endpoint || is_loopback_host(meeting.endpoint->host) || meeting.endpoint->port == 0 ||
           meeting.backend == Backend::kStatic || meeting.backend == Backend::kEtcd;
}

void plan_alone(Asked& asked, Meeting meeting, LaunchPlan& plan) {
    if (meeting.backend == Backend::kEtcd) {
        asked.note_no_effect(Flag::kRdzvBackend, asked.text(Flag::kRdzvBackend) + " (one node, nobody to find)");
        meeting.endpoint.reset();
    }
    if (meeting.endpoint && !is_loopback_host(meeting.endpoint->host) && meeting.master_addr.empty()) {
        meeting.master_addr = meeting.endpoint->host;
    }
    if (meeting.endpoint && meeting.backend == Backend::kStatic && meeting.master_port == 0) {
        meeting.master_port = meeting.endpoint->port;
    }
    plan_local(asked, meeting, plan);
}

void plan_meeting(Asked& asked, const Meeting& meeting, const HostFacts& host, LaunchPlan& plan) {
    if (asked.on(Flag::kStandalone)) {
        return plan_standalone(asked, meeting, plan);
    }
    if (is_alone(meeting, plan.rendezvous)) {
        return plan_alone(asked, meeting, plan);
    }
    if (is_static_beside_endpoint(asked, meeting, plan)) {
        return plan_static_beside_endpoint(asked, meeting, plan);
    }
    const bool meets_at_master = meeting.backend == Backend::kUnsaid && !meeting.endpoint;
    if (meeting.backend == Backend::kStatic || meets_at_master) {
        const bool somewhere = meeting.endpoint || !meeting.master_addr.empty();
        return somewhere ? plan_static(asked, meeting, host, plan) : refuse_nowhere_to_meet(asked, meeting);
    }
    if (!meeting.endpoint) {
        return refuse_nowhere_to_meet(asked, meeting);
    }
    asked.note_no_effect(Flag::kMasterAddr);
    asked.note_no_effect(Flag::kMasterPort);
    plan_at_endpoint(asked, meeting, plan);
}

}  // namespace

void derive_rendezvous(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    read_job(asked, host, plan);
    read_worker_store(asked, host, plan);
    const Meeting meeting = read_meeting(asked);
    read_limits(asked, meeting, plan.rendezvous);
    plan.rendezvous.node_rank = meeting.node_rank;
    plan_meeting(asked, meeting, host, plan);
    derive_authority(asked, meeting, host, plan);
}

}  // namespace ddl::plan
