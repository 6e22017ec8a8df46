#include "scenario/cluster.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.hpp"
#include "core/restart_policy.hpp"

namespace ddl::scenario {
namespace {

constexpr int kPidsPerNode = 1000;
constexpr int kPortsPerNode = 100;
constexpr std::uint16_t kFirstPort = 40000;

wire::Message through_bytes(const wire::Message& message) {
    wire::MessageReader reader;
    reader.feed(wire::encode(message));
    auto read = reader.next();
    return read && *read ? **read : wire::Message(wire::Refused{"a message did not survive its bytes"});
}

std::string range(int first, int count) {
    const std::string last = std::to_string(first + count - 1);
    return count == 1 ? last : std::to_string(first) + "-" + last;
}

// n7 -> 7: addresses, ports and pids of a node follow from its name.
int number_in(const std::string& name) {
    return static_cast<int>(parse_integer(name.substr(1)).value_or(0));
}

std::string address_of(int index) {
    return "10.0.0." + std::to_string(index + 1);
}

}  // namespace

Cluster::Cluster(Settings settings) : settings_(std::move(settings)) {
}

Cluster::Node& Cluster::at(const std::string& node) {
    return nodes_.at(node);
}

Cluster::Node* Cluster::with_peer(PeerId peer) {
    for (auto& [name, node] : nodes_) {
        if (node.connected && node.peer == peer) {
            return &node;
        }
    }
    return nullptr;
}

void Cluster::violate(const std::string& text) {
    if (violation_.empty()) {
        violation_ = text;
    }
}

// ---- what a transcript does -------------------------------------------------------------------------------------

void Cluster::start(const NodeOptions& options) {
    const int index = number_in(options.name);
    Node& node = nodes_[options.name];
    node = Node{};
    node.options = options;
    node.index = index;
    core::AgentSettings& agent = node.options.agent;
    agent.hosts = options.host;
    agent.node.name = options.name;
    agent.node.incarnation = options.name + "." + std::to_string(++incarnations_);
    agent.node.addresses = {address_of(index)};
    node.agent.emplace(agent, now_);
    if (options.host) {
        host_ = options.name;
        coordination_ended_ = false;
        core::CoordinatorSettings coordinator = settings_.coordinator;
        coordinator.terms = agent.terms;
        coordinator.restart_rules.max_restarts = agent.terms.max_restarts;
        coordinator.local_name = options.name;
        coordinator_.emplace(coordinator, now_);
        for (auto& [name, other] : nodes_) {
            if (other.agent && !other.connected && !other.finished && !other.link_cut) {
                connect(other);
            }
        }
    } else if (coordinator_) {
        connect(node);
    } else {
        put(node, core::SessionRetry{"connection refused"});
    }
    settle();
}

void Cluster::connect(Node& node) {
    node.connected = true;
    node.held = false;
    const bool local = node.options.name == host_;
    node.peer = local ? PeerId::kLocal : static_cast<PeerId>(next_peer_++);
    const std::string own = local ? "" : address_of(node.index);
    put(core::PeerArrived{node.peer, node.options.behind_nat ? "192.168.0.1" : own});
    put(node, core::SessionUp{own});
}

void Cluster::disconnect(Node& node, const std::string& why, bool coordinator_notices) {
    if (!node.connected) {
        return;
    }
    node.connected = false;
    node.was_cut_off = true;
    node.in_network.clear();
    if (coordinator_notices && coordinator_) {
        put(core::PeerGone{node.peer, why});
    }
    if (node.agent && !node.finished) {
        put(node, core::SessionDown{why});
    }
}

void Cluster::kill(const std::string& name) {
    Node& node = at(name);
    node.agent.reset();
    node.workers.clear();
    if (name == host_) {
        coordinator_.reset();
        host_.clear();
        node.connected = false;
        for (auto& [other_name, other] : nodes_) {
            disconnect(other, "connection closed", false);
        }
    }
    disconnect(node, "connection closed", true);
    settle();
}

void Cluster::cut(const std::string& name) {
    at(name).link_cut = true;
    disconnect(at(name), "connection reset", true);
    settle();
}

bool Cluster::alive(const std::string& name) const {
    const auto found = nodes_.find(name);
    return found != nodes_.end() && found->second.agent && !found->second.finished;
}

std::vector<int> Cluster::running(const std::string& name) const {
    std::vector<int> ranks;
    for (const Worker& worker : nodes_.at(name).workers) {
        if (worker.running) {
            ranks.push_back(worker.rank);
        }
    }
    return ranks;
}

void Cluster::notice_broken_links() {
    for (const PeerId peer : std::exchange(unnoticed_, {})) {
        put(core::PeerGone{peer, "no answer"});
    }
    settle();
}

void Cluster::cut_unnoticed(const std::string& name) {
    if (at(name).connected) {
        unnoticed_.push_back(at(name).peer);
    }
    at(name).link_cut = true;
    disconnect(at(name), "connection reset", false);
    settle();
}

void Cluster::link(const std::string& name) {
    Node& node = at(name);
    node.link_cut = false;
    if (coordinator_ && node.agent && !node.finished && !node.connected) {
        connect(node);
    }
    settle();
}

void Cluster::hold(const std::string& name) {
    at(name).held = true;
}

void Cluster::release(const std::string& name) {
    Node& node = at(name);
    node.held = false;
    for (const wire::Message& message : std::exchange(node.in_network, {})) {
        put(core::PeerSaid{node.peer, message});
    }
    settle();
}

void Cluster::end_worker(const std::string& name, int rank, bool signalled, int status) {
    Node& node = at(name);
    for (std::size_t i = 0; i < node.workers.size(); ++i) {
        Worker& worker = node.workers[i];
        if (worker.rank == rank && worker.running) {
            worker.running = false;
            core::WorkerEnded ended;
            ended.local_rank = static_cast<int>(i);
            ended.signalled = signalled;
            ended.status = status;
            ended.stopped = worker.signalled;
            ended.stderr_tail = {"last words of rank " + std::to_string(rank)};
            put(node, std::move(ended));
            settle();
            return;
        }
    }
    violate("rank " + std::to_string(rank) + " does not run on " + name);
}

void Cluster::exit_all(const std::string& name) {
    for (const int rank : running(name)) {
        end_worker(name, rank, false, 0);
    }
}

void Cluster::signal(const std::string& name, int number) {
    put(at(name), core::SignalCame{number});
    settle();
}

void Cluster::fail_system(const std::string& name, const std::string& what) {
    put(at(name), core::SystemFailed{what});
    settle();
}

void Cluster::ignore_term(const std::string& name) {
    at(name).ignores_term = true;
}

void Cluster::make_unkillable(const std::string& name) {
    at(name).ignores_term = true;
    at(name).unkillable = true;
}

void Cluster::leave_families(const std::string& name, std::deque<int> remaining) {
    at(name).families = std::move(remaining);
}

void Cluster::fail_start(const std::string& name, int local_rank, int error) {
    at(name).start_errors[local_rank] = error;
}

// ---- time -------------------------------------------------------------------------------------------------------

void Cluster::advance(Duration by) {
    constexpr int kMostAtOneInstant = 100;
    const Instant until = now_ + by;
    int at_this_instant = 0;
    for (auto due = next_deadline(); due && *due <= until; due = next_deadline()) {
        at_this_instant = *due > now_ ? 0 : at_this_instant + 1;
        if (at_this_instant > kMostAtOneInstant) {
            violate("a deadline stays due for ever");
            return;
        }
        now_ = std::max(now_, *due);
        fire_due();
    }
    now_ = until;
}

std::optional<Instant> Cluster::next_deadline() const {
    std::optional<Instant> next = coordinator_ ? coordinator_->next_deadline() : std::nullopt;
    for (const auto& [name, node] : nodes_) {
        const auto deadline = node.agent ? node.agent->next_deadline() : std::nullopt;
        if (deadline && (!next || *deadline < *next)) {
            next = deadline;
        }
    }
    return next;
}

void Cluster::fire_due() {
    if (coordinator_ && coordinator_->next_deadline() && *coordinator_->next_deadline() <= now_) {
        put(core::TimePassed{});
    }
    for (auto& [name, node] : nodes_) {
        if (node.agent && node.agent->next_deadline() && *node.agent->next_deadline() <= now_) {
            put(node, core::AgentTime{});
        }
    }
    settle();
}

// ---- events -----------------------------------------------------------------------------------------------------

void Cluster::put(const Node& node, core::AgentEvent event) {
    queue_.emplace_back(ToAgent{node.options.name, std::move(event)});
}

void Cluster::put(core::CoordinatorEvent event) {
    queue_.emplace_back(std::move(event));
}

void Cluster::settle() {
    while (!queue_.empty()) {
        const Queued item = std::move(queue_.front());
        queue_.pop_front();
        std::visit([this](const auto& event) { step(event); }, item);
    }
    if (coordinator_ && coordination_ended_ && at(host_).finished) {
        kill(host_);  // nothing keeps the process any more
    }
}

void Cluster::step(const ToAgent& item) {
    Node& node = at(item.node);
    if (!node.agent) {
        return;
    }
    const auto effects = node.agent->step(item.event, now_);
    if (node.finished && !effects.empty()) {
        violate(item.node + " goes on after it has finished");
    }
    for (const auto& effect : effects) {
        std::visit([&](const auto& e) { perform(node, e); }, effect);
    }
}

void Cluster::step(const core::CoordinatorEvent& event) {
    if (!coordinator_) {
        return;
    }
    for (const auto& effect : coordinator_->step(event, now_)) {
        std::visit([this](const auto& e) { perform(e); }, effect);
    }
}

// ---- effects of agents ------------------------------------------------------------------------------------------

void Cluster::perform(Node& node, const core::ToCoordinator& effect) {
    if (!node.connected) {
        return;
    }
    wire::Message message = through_bytes(effect.message);
    if (node.held) {
        node.in_network.push_back(std::move(message));
    } else {
        put(core::PeerSaid{node.peer, std::move(message)});
    }
}

void Cluster::perform(Node& node, const core::DropSession& effect) {
    disconnect(node, effect.why, true);
}

void Cluster::perform(Node& node, const core::PrepareStore& /*effect*/) {
    ++node.stores;
    put(node, core::StorePrepared{static_cast<std::uint16_t>(kFirstPort + kPortsPerNode * node.index + node.stores)});
}

void Cluster::perform(Node& node, const core::CloseStore& /*effect*/) {
    said_.push_back({node.options.name, "(store closed)"});
}

void Cluster::perform(Node& node, const core::StartWorkers& effect) {
    const wire::Assignment& round = effect.assignment;
    const int count = node.options.agent.node.workers;
    std::string text = "start ranks " + range(round.base_rank, count) + " of " + std::to_string(round.world_size) +
                       " generation " + std::to_string(round.generation.number()) + " restarts " +
                       std::to_string(round.restart_count) + " master " +
                       host_and_port(round.master_addr, round.master_port);
    if (node.options.agent.node.role != "default") {
        text += " " + node.options.agent.node.role + " " + range(round.base_role_rank, count) + " of " +
                std::to_string(round.role_world_size);
    }
    entries_.push_back({node.options.name, text});
    check_no_older_workers(node, round);
    node.workers.clear();
    node.generation = round.generation;
    node.was_cut_off = false;
    for (int local = 0; local < count; ++local) {
        const auto error = node.start_errors.find(local);
        if (error != node.start_errors.end()) {
            put(node, core::StartFailed{local, "exec ./train", error->second});
            node.start_errors.clear();
            return;
        }
        const int pid = kPidsPerNode * (node.index + 1) + static_cast<int>(round.generation.counter) * 100 + local;
        node.workers.push_back({round.base_rank + local, pid, true, false});
        put(node, core::WorkerStarted{local, pid});
    }
}

// One world at a time: when a round starts, no node whose session held may still run workers of an older one. A node
// that was cut off ends its workers by itself and may need its grace for that.
void Cluster::check_no_older_workers(const Node& starting, const wire::Assignment& assignment) {
    if (assignment.serves_store != (assignment.group_rank == 0)) {
        violate("the store is not served by group rank 0");
    }
    for (const auto& [name, node] : nodes_) {
        const bool running =
            std::any_of(node.workers.begin(), node.workers.end(), [](const Worker& w) { return w.running; });
        if (running && node.connected && !node.was_cut_off && node.generation < assignment.generation) {
            violate(starting.options.name + " starts round " + std::to_string(assignment.generation.number()) +
                    " while " + name + " still runs workers of round " + std::to_string(node.generation.number()));
        }
    }
}

void Cluster::perform(Node& node, const core::SignalWorkers& effect) {
    std::vector<std::string> ranks;
    for (const int local : effect.local_ranks) {
        const auto index = static_cast<std::size_t>(local);
        Worker& worker = node.workers.at(index);
        ranks.push_back(std::to_string(worker.rank));
        worker.signalled = true;
        const bool ends = effect.signal == SIGKILL ? !node.unkillable : !node.ignores_term;
        if (ends && worker.running) {
            worker.running = false;
            put(node, core::WorkerEnded{local, true, effect.signal, true, "", {}, ""});
        }
    }
    entries_.push_back({node.options.name, "signal " + join(ranks, ",") + " " + signal_name(effect.signal).substr(3)});
}

// Without a line in the transcript the workers have left nothing. A negative number stays: a family that never ends.
void Cluster::perform(Node& node, const core::SweepFamilies& effect) {
    if (node.families.empty()) {
        put(node, core::Swept{0, true, ""});
        return;
    }
    const int remaining = node.families.front();
    const std::string text = effect.signal == 0 ? "look" : signal_name(effect.signal).substr(3);
    if (remaining >= 0) {
        node.families.pop_front();
    }
    if (remaining >= 0 || node.last_sweep != text) {
        entries_.push_back({node.options.name, "sweep " + text});
    }
    node.last_sweep = text;
    put(node, core::Swept{remaining < 0 ? 1 : remaining, false, "helper (pid 77)"});
}

void Cluster::perform(Node& node, const core::Say& effect) {
    said_.push_back({node.options.name, effect.text});
}

void Cluster::perform(Node& node, const core::Report& effect) {
    const wire::JobOver& over = effect.over;
    static constexpr const char* kOrigins[] = {"success", "worker", "launcher"};
    said_.push_back({node.options.name, std::string("report: ") + kOrigins[static_cast<int>(over.origin)] + ": " +
                                            over.why + "; restarts " + std::to_string(over.restart_count)});
    for (const wire::Death& death : over.deaths) {
        said_.push_back({node.options.name, "death: " + core::describe(death)});
    }
}

void Cluster::perform(Node& node, const core::Finish& effect) {
    if (node.finished) {
        violate(node.options.name + " finishes twice");
    }
    node.finished = true;
    entries_.push_back({node.options.name, "finish " + std::to_string(effect.exit_code)});
    if (node.options.name == host_) {
        put(core::PeerGone{PeerId::kLocal, "it has finished"});
    } else {
        disconnect(node, "connection closed", true);
    }
}

// ---- effects of the coordinator ---------------------------------------------------------------------------------

void Cluster::perform(const core::SendTo& effect) {
    if (const Node* node = with_peer(effect.peer)) {
        put(*node, core::FromCoordinator{through_bytes(effect.message)});
    }
}

void Cluster::perform(const core::DropPeer& effect) {
    if (effect.peer == PeerId::kLocal) {
        violate("the coordinator drops its own agent");
    }
    if (Node* node = with_peer(effect.peer)) {
        disconnect(*node, "closed by the coordinator", false);
    }
}

void Cluster::perform(const core::Say& effect) {
    said_.push_back({host_, effect.text});
}

void Cluster::perform(const core::CoordinationEnded& /*effect*/) {
    if (coordination_ended_) {
        violate("coordination ends twice");
    }
    coordination_ended_ = true;
}

}  // namespace ddl::scenario
