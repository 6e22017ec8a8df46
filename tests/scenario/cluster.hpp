// A job in memory: one Coordinator and N Agents joined by a network without delay, with virtual time and pretended
// workers.
//
// Owned by the transcript runner, which calls one method per line of a transcript. Nothing sleeps, nothing is random.
// Every message goes through its bytes. What agents do is written down in entries(), texts for people in said().
// It also checks what must hold in every transcript (violation()).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/agent.hpp"
#include "core/coordinator.hpp"

namespace ddl::scenario {

struct Settings {
    core::CoordinatorSettings coordinator;
    core::AgentSettings agent;
};

struct NodeOptions {
    std::string name;
    bool host = false;
    bool behind_nat = false;
    core::AgentSettings agent;
};

struct Entry {
    std::string node;
    std::string text;
};

class Cluster {
public:
    explicit Cluster(Settings settings);

    void start(const NodeOptions& options);
    void kill(const std::string& node);           // the whole node at once, its workers too
    void cut(const std::string& node);            // the link breaks and both ends notice
    void cut_unnoticed(const std::string& node);  // only the agent notices
    void notice_broken_links();                   // what cut_unnoticed has broken is noticed at last
    void link(const std::string& node);           // the agent's dialling succeeds again
    void hold(const std::string& node);           // what the agent sends stays in the network
    void release(const std::string& node);
    void advance(Duration by);
    void end_worker(const std::string& node, int rank, bool signalled, int status);
    void exit_all(const std::string& node);
    void signal(const std::string& node, int number);
    void fail_system(const std::string& node, const std::string& what);
    void ignore_term(const std::string& node);
    void make_unkillable(const std::string& node);
    void leave_families(const std::string& node, std::deque<int> remaining);  // answers of the next sweeps
    void fail_start(const std::string& node, int local_rank, int error);

    std::vector<Entry>& entries() {
        return entries_;
    }
    std::vector<Entry>& said() {
        return said_;
    }
    [[nodiscard]] bool coordination_ended() const {
        return coordination_ended_;
    }
    [[nodiscard]] bool has(const std::string& node) const {
        return nodes_.count(node) != 0;
    }
    [[nodiscard]] bool alive(const std::string& node) const;  // its process exists and has not finished
    [[nodiscard]] std::vector<int> running(const std::string& node) const;
    [[nodiscard]] bool hosted() const {  // there is a coordinator
        return coordinator_.has_value();
    }
    [[nodiscard]] const std::string& violation() const {
        return violation_;
    }

private:
    struct Worker {
        int rank = 0;
        int pid = 0;
        bool running = false;
        bool signalled = false;
    };
    struct Node {
        NodeOptions options;
        std::optional<core::Agent> agent;  // none once the process is gone
        int index = 0;
        PeerId peer{};
        bool connected = false;
        bool link_cut = false;
        bool was_cut_off = false;  // since its workers were started
        bool held = false;
        bool finished = false;
        std::vector<wire::Message> in_network;
        std::vector<Worker> workers;
        Generation generation;
        int stores = 0;
        bool ignores_term = false;
        bool unkillable = false;
        std::deque<int> families;
        std::string last_sweep;
        std::map<int, int> start_errors;
    };
    struct ToAgent {
        std::string node;
        core::AgentEvent event;
    };
    using Queued = std::variant<ToAgent, core::CoordinatorEvent>;

    void perform(Node& node, const core::ToCoordinator& effect);
    void perform(Node& node, const core::DropSession& effect);
    void perform(Node& node, const core::PrepareStore& effect);
    void perform(Node& node, const core::CloseStore& effect);
    void perform(Node& node, const core::StartWorkers& effect);
    void perform(Node& node, const core::SignalWorkers& effect);
    void perform(Node& node, const core::SweepFamilies& effect);
    void perform(Node& node, const core::Say& effect);
    void perform(Node& node, const core::Report& effect);
    void perform(Node& node, const core::Finish& effect);
    void perform(const core::SendTo& effect);
    void perform(const core::DropPeer& effect);
    void perform(const core::Say& effect);
    void perform(const core::CoordinationEnded& effect);
    template <class OfTheOffice>  // leases and takeovers: tests/sim
    void perform(const OfTheOffice& /*effect*/) {
        violate("an effect that this cluster does not know");
    }

    void connect(Node& node);
    void disconnect(Node& node, const std::string& why, bool coordinator_notices);
    void put(const Node& node, core::AgentEvent event);
    void put(core::CoordinatorEvent event);
    void settle();
    void step(const ToAgent& item);
    void step(const core::CoordinatorEvent& event);
    [[nodiscard]] std::optional<Instant> next_deadline() const;
    void fire_due();
    void check_no_older_workers(const Node& starting, const wire::Assignment& assignment);
    void violate(const std::string& text);
    [[nodiscard]] Node& at(const std::string& node);
    [[nodiscard]] Node* with_peer(PeerId peer);

    Settings settings_;
    Instant now_{};
    std::optional<core::Coordinator> coordinator_;
    std::map<std::string, Node> nodes_;
    std::deque<Queued> queue_;
    std::vector<Entry> entries_;
    std::vector<Entry> said_;
    std::string host_;
    std::string violation_;
    bool coordination_ended_ = false;
    std::uint32_t next_peer_ = 1;
    int incarnations_ = 0;
    std::vector<PeerId> unnoticed_;
};

}  // namespace ddl::scenario
