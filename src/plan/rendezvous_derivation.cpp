#include "plan/rendezvous_derivation.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "plan/quoted.hpp"
#include "plan/rdzv_conf.hpp"

namespace ddl::plan {

namespace {

using std::chrono_literals::operator""s;

constexpr int kMaxPort = 65'535;
constexpr std::size_t kLongestJobId = 200;

enum class Backend : std::uint8_t { kUnsaid, kC10d, kStatic };

Result<Backend> parse_backend(std::string_view text) {
    if (text == "c10d") {
        return Backend::kC10d;
    }
    if (text == "static") {
        return Backend::kStatic;
    }
    if (text == "etcd" || text == "etcd-v2") {
        return fail(quoted(text) + " is not available; try c10d with an address of one of the nodes as endpoint");
    }
    return fail(quoted(text) + " is not a known backend; try c10d or static");
}

Result<std::string> parse_job_id(std::string_view text) {
    const bool printable = std::all_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) != 0x7F;
    });
    if (!printable || text.empty() || text.size() > kLongestJobId) {
        return fail(quoted(text) + " is not a name of 1 to 200 characters without blanks");
    }
    return std::string(text);
}

// All that was said about the meeting point, parsed, nothing decided.
struct Meeting {
    Backend backend = Backend::kUnsaid;
    std::optional<Endpoint> endpoint;
    std::string master_addr;
    std::uint16_t master_port = 0;  // 0: not given, or left to us by a 0
    std::optional<int> node_rank;
    RdzvConf conf;
};

Meeting read_meeting(Asked& asked) {
    Meeting meeting;
    meeting.backend = asked.value(Flag::kRdzvBackend, Backend::kUnsaid, parse_backend);
    const std::uint16_t default_port = meeting.backend == Backend::kStatic ? kStaticPort : kRendezvousPort;
    if (!trim(asked.text(Flag::kRdzvEndpoint)).empty()) {
        meeting.endpoint = asked.value(Flag::kRdzvEndpoint, Endpoint{}, [default_port](std::string_view text) {
            return parse_endpoint(text, default_port);
        });
    }
    meeting.master_addr = asked.value(Flag::kMasterAddr, std::string(), parse_host);
    meeting.master_port = static_cast<std::uint16_t>(
        asked.value(Flag::kMasterPort, 0, [](std::string_view text) { return parse_count(text, 0, kMaxPort); }));
    if (asked.given(Flag::kNodeRank)) {
        meeting.node_rank =
            asked.value(Flag::kNodeRank, 0, [](std::string_view text) { return parse_count(text, 0, kMaxNodes - 1); });
    }
    meeting.conf = asked.value(Flag::kRdzvConf, RdzvConf{}, parse_rdzv_conf);
    for (const std::string& key : meeting.conf.no_effect) {
        asked.note_no_effect(Flag::kRdzvConf, key);
    }
    return meeting;
}

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
    if (meeting.backend == Backend::kStatic) {
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

void plan_dynamic(Asked& asked, const Meeting& meeting, LaunchPlan& plan) {
    plan.rendezvous.kind = Rendezvous::kDynamic;
    plan.rendezvous.endpoint = *meeting.endpoint;
    check_reachable(asked, Flag::kRdzvEndpoint, *meeting.endpoint, plan, plan.rendezvous.is_host.has_value());
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
    plan_dynamic(asked, meeting, plan);
}

void refuse_nowhere_to_meet(Asked& asked, const Meeting& meeting) {
    const std::string host = meeting.master_addr.empty() ? "HOST" : meeting.master_addr;
    asked.refuse(Flag::kNnodes, quoted(asked.text(Flag::kNnodes)) + " needs a place where the nodes meet; try " +
                                    "--rdzv-endpoint " + host + ":29400, the same on all nodes");
}

void read_limits(Asked& asked, const Meeting& meeting, RendezvousPlan& rendezvous) {
    rendezvous.join_timeout = meeting.conf.join_timeout.value_or(600s);
    rendezvous.last_call_timeout = meeting.conf.last_call_timeout.value_or(30s);
    rendezvous.rejoin_timeout = meeting.conf.rejoin_timeout.value_or(60s);
    rendezvous.is_host = meeting.conf.is_host;
    const Duration shortcut = asked.value(Flag::kJoinTimeout, rendezvous.join_timeout, [](std::string_view text) {
        return parse_duration(text, 0.001, 365.0 * 86'400);
    });
    if (meeting.conf.join_timeout && shortcut != rendezvous.join_timeout) {
        asked.refuse(Flag::kJoinTimeout,
                     "contradicts join_timeout in " + asked.origin(Flag::kRdzvConf) + "; leave one of the two out");
    }
    rendezvous.join_timeout = shortcut;
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
           meeting.backend == Backend::kStatic;
}

void plan_alone(Asked& asked, Meeting meeting, LaunchPlan& plan) {
    if (meeting.endpoint && !is_loopback_host(meeting.endpoint->host) && meeting.master_addr.empty()) {
        meeting.master_addr = meeting.endpoint->host;
    }
    if (meeting.endpoint && meeting.backend == Backend::kStatic && meeting.master_port == 0) {
        meeting.master_port = meeting.endpoint->port;
    }
    plan_local(asked, meeting, plan);
}

}  // namespace

void derive_rendezvous(Asked& asked, const HostFacts& host, LaunchPlan& plan) {
    read_job(asked, host, plan);
    read_worker_store(asked, host, plan);
    const Meeting meeting = read_meeting(asked);
    read_limits(asked, meeting, plan.rendezvous);
    plan.rendezvous.node_rank = meeting.node_rank;
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
    plan_dynamic(asked, meeting, plan);
}

}  // namespace ddl::plan
