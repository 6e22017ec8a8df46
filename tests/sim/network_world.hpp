// N whole nodes (agent, vote, coordinator) in one thread, joined by a network that can be delayed, cut in one or both
// directions, partitioned and reset; processes that are killed, paused and started again; workers that die or ignore
// signals. Virtual time, one random source.
//
// A connection is what TCP makes of it: in order, without loss or duplicates as long as it stands. While a direction is
// blocked nothing arrives; after healing, what was sent arrives, unless the connection was given up meanwhile. A reset
// loses what is under way. A process that is paused keeps its connections and its workers, and finds its events later.
//
// After every event the world checks what must hold (violation()); DESIGN.md lists it.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/node.hpp"

namespace ddl::sim {

struct WorldSettings {
    int slots = 3;  // hosts; host 0 owns the endpoint
    int min_nodes = 2;
    int max_nodes = 3;
    int max_restarts = 1000;
    int endpoints = 1;  // the first hosts own one each
    Duration lease = std::chrono::seconds(5);
    bool takeover = true;
};

class World {
public:
    World(WorldSettings settings, std::uint64_t seed);

    // Faults and repairs.
    void start(int slot);
    void kill(int slot);
    void pause(int slot);
    void resume(int slot);
    void terminate(int slot);      // SIGTERM
    void block(int from, int to);  // this direction only
    void heal_all();
    void reset_connections(int a, int b);  // both ends notice, in their own time
    void end_worker(int slot, int status);
    void ignore_term(int slot, bool ignores);
    void finish_workers();  // from now on workers end with 0 after a moment

    void run(Duration time);

    [[nodiscard]] bool alive(int slot) const;  // its process exists and has not finished
    [[nodiscard]] bool paused(int slot) const;
    [[nodiscard]] bool works(int slot) const;      // it has running workers
    [[nodiscard]] bool took_part(int slot) const;  // its last workers ended by themselves
    [[nodiscard]] int running_nodes() const;       // of one round
    [[nodiscard]] int coordinators() const;
    [[nodiscard]] std::optional<int> exit_code(int slot) const;  // of its last process
    [[nodiscard]] const std::string& violation() const {
        return violation_;
    }
    [[nodiscard]] const std::deque<std::string>& log() const {
        return log_;
    }
    std::mt19937_64& random() {
        return random_;
    }
    int below(int limit) {
        return static_cast<int>(random_() % static_cast<std::uint64_t>(limit));
    }

private:
    struct Worker {
        bool running = false;
        bool stopped = false;
        bool killed = false;
    };
    struct Process {
        std::unique_ptr<core::Node> node;
        std::string incarnation;
        std::uint16_t port = 0;
        bool paused = false;
        bool finished = false;
        bool may_leave = false;
        bool ignores_term = false;
        std::vector<std::function<void()>> inbox;  // what happens when it goes on
        std::vector<Worker> workers;
        Generation generation;
        int life = 0;  // of the job: one that forgot everything begins anew
        Instant resumed_at{};
        int stores = 0;
        std::map<std::string, int> calls;  // connections by the voter's incarnation; "": the link
        std::map<std::string, std::optional<wire::Contact>> wanted;  // what is to be dialled; none: the endpoints
        std::optional<int> exit_code;
        std::map<std::string, std::uint64_t> dialling;  // key -> token of the latest try
        std::optional<Instant> armed;
        int at_this_instant = 0;
    };
    struct Connection {
        int client = 0;
        int server = 0;
        std::string client_incarnation;
        std::string server_incarnation;
        std::string key;  // of the call; empty: the link
        PeerId peer{};
        bool client_open = true;
        bool server_open = true;
        std::array<Instant, 2> last_arrival{};  // to the server, to the client
    };
    struct Event {
        Instant at;
        std::uint64_t order;
        std::function<void()> happen;
        bool operator<(const Event& other) const {
            return at != other.at ? at > other.at : order > other.order;
        }
    };
    struct Held {
        int from;
        int to;
        std::function<void()> happen;
    };

    void at(Instant when, std::function<void()> happen);
    void deliver(int slot, const std::string& incarnation, const core::NodeEvent& event);
    void when_it_runs(int slot, std::function<void()> happen);
    void step(int slot, const core::NodeEvent& event);
    void arm(int slot);
    [[nodiscard]] Duration delay();
    void over_network(int from, int to, Instant earliest, std::function<void()> happen);

    void dial(int slot, const std::string& key, std::optional<wire::Contact> contact);
    void hang_up(int slot, const std::string& key);
    void try_to_connect(int slot, const std::string& key, std::uint64_t token, std::size_t target, Duration pause);
    void connect(int slot, const std::string& key, int server);
    [[nodiscard]] std::vector<std::pair<int, std::uint16_t>> targets(int slot, const std::string& key) const;
    void send(int connection, bool to_server, wire::Message message);
    void close(int connection, bool by_client);
    void lose_all_connections(int slot);

    void perform(int slot, const core::PrepareStore& effect);
    void perform(int slot, const core::StartWorkers& effect);
    void perform(int slot, const core::SignalWorkers& effect);
    void perform(int slot, const core::SweepFamilies& effect);
    void perform(int slot, const core::Say& effect);
    void perform(int slot, const core::Report& effect);
    void perform(int slot, const core::Finish& effect);
    void perform(int slot, const core::ToPort& effect);
    void perform(int slot, const core::DropAtPort& effect);
    void perform(int slot, const core::ToLink& effect);
    void perform(int slot, const core::Dial& effect);
    void perform(int slot, const core::StopDialling& effect);
    void perform(int slot, const core::Call& effect);
    void perform(int slot, const core::HangUp& effect);
    void perform(int slot, const core::SayTo& effect);
    void perform(int slot, const core::MayLeave& effect);
    template <class OfEtcd>  // and CloseStore
    void perform(int /*slot*/, const OfEtcd& /*effect*/) {
    }
    void check_round(int slot, const wire::Assignment& round);
    void check_one_world(int slot, Generation generation, Duration again_in);
    [[nodiscard]] bool runs_unharmed(const Process& process) const;
    void worker_ended(int slot, int local, bool signalled, int status);
    void say(int slot, const std::string& text);
    void violate(const std::string& text);
    void leave_if_done(int slot);

    WorldSettings settings_;
    std::mt19937_64 random_;
    Instant now_{};
    std::uint64_t orders_ = 0;
    std::priority_queue<Event> events_;
    std::vector<Process> processes_;
    std::map<int, Connection> connections_;
    int last_connection_ = 0;
    std::uint32_t last_peer_ = 0;
    std::uint64_t last_token_ = 0;
    int incarnations_ = 0;
    std::set<std::pair<int, int>> blocked_;
    std::deque<Held> held_;
    bool logging_;
    bool finishing_ = false;
    std::string violation_;
    std::deque<std::string> log_;

    [[nodiscard]] static std::string host_name(int slot) {
        return "h" + std::to_string(slot);
    }

    // What is known of the rounds that have begun.
    struct Round {
        std::string opener;  // the coordinator's incarnation, or where the store is
        int world_size = 0;
        std::set<int> ranks;
    };
    std::map<Generation, Round> rounds_;
    int life_ = 0;
};

}  // namespace ddl::sim
