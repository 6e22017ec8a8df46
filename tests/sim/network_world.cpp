#include "sim/network_world.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/text.hpp"
#include "core/restart_policy.hpp"

namespace ddl::sim {
namespace {

using std::chrono::seconds;

constexpr std::uint16_t kEndpointPort = 29400;

}  // namespace

World::World(WorldSettings settings, std::uint64_t seed)
    : settings_(settings),
      random_(seed),
      processes_(static_cast<std::size_t>(settings.slots)),
      logging_(std::getenv("DDLAUNCH_SIM_SEED") != nullptr) {
}

// ---- time and events --------------------------------------------------------------------------------------------

void World::at(Instant when, std::function<void()> happen) {
    events_.push({std::max(when, now_), ++orders_, std::move(happen)});
}

void World::run(Duration time) {
    const Instant until = now_ + time;
    while (!events_.empty() && events_.top().at <= until && violation_.empty()) {
        Event event = events_.top();
        events_.pop();
        now_ = event.at;
        event.happen();
    }
    now_ = until;
}

void World::deliver(int slot, const std::string& incarnation, const core::NodeEvent& event) {
    when_it_runs(slot, [this, slot, incarnation, event] {
        const Process& process = processes_[static_cast<std::size_t>(slot)];
        if (process.node && process.incarnation == incarnation) {
            step(slot, event);
        }
    });
}

void World::when_it_runs(int slot, std::function<void()> happen) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    if (process.node && process.paused) {
        process.inbox.push_back(std::move(happen));
    } else {
        happen();
    }
}

void World::step(int slot, const core::NodeEvent& event) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    for (const core::NodeEffect& effect : process.node->step(event, now_)) {
        std::visit([&](const auto& e) { perform(slot, e); }, effect);
        if (!process.node) {
            return;
        }
    }
    leave_if_done(slot);
    arm(slot);
}

void World::arm(int slot) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    const auto deadline = process.node ? process.node->next_deadline() : std::nullopt;
    if (!deadline || (process.armed && *process.armed <= std::max(*deadline, now_))) {
        return;
    }
    process.at_this_instant = *deadline <= now_ ? process.at_this_instant + 1 : 0;
    if (process.at_this_instant > 100) {
        violate(host_name(slot) + ": a deadline stays due for ever");
        return;
    }
    process.armed = std::max(*deadline, now_);
    at(*deadline, [this, slot, incarnation = process.incarnation, when = *process.armed] {
        Process& same = processes_[static_cast<std::size_t>(slot)];
        if (!same.node || same.incarnation != incarnation || same.paused) {
            return;
        }
        if (same.armed == when) {
            same.armed.reset();
        }
        const auto due = same.node->next_deadline();
        if (due && *due <= now_) {
            step(slot, core::NodeTime{});
        } else {
            arm(slot);
        }
    });
}

// ---- processes --------------------------------------------------------------------------------------------------

void World::start(int slot) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    if (process.node) {
        return;
    }
    process = Process{};
    process.incarnation = host_name(slot) + "." + std::to_string(++incarnations_);
    process.port = slot < settings_.endpoints ? kEndpointPort : static_cast<std::uint16_t>(30000 + incarnations_);
    core::NodeSettings settings;
    wire::JobTerms& terms = settings.agent.terms;
    terms = {"job", true, settings_.min_nodes, settings_.max_nodes, settings_.max_restarts, "c10d", "digest"};
    terms.lease = settings_.lease;
    terms.takeover = settings_.takeover;
    settings.agent.node.name = host_name(slot);
    settings.agent.node.incarnation = process.incarnation;
    settings.agent.node.workers = 2;
    settings.agent.node.addresses = {host_name(slot)};
    settings.agent.endpoint_text = "h0:29400";
    settings.agent.join_timeout = seconds(3600);
    settings.agent.rejoin_timeout = seconds(1800);
    settings.agent.restart_grace = seconds(2);
    settings.agent.shutdown_timeout = seconds(5);
    core::CoordinatorSettings& coordinator = settings.coordinator;
    coordinator.terms = terms;
    coordinator.endpoint_host = "h0";
    coordinator.endpoint_text = "h0:29400";
    coordinator.local_name = host_name(slot);
    coordinator.join_timeout = seconds(3600);
    coordinator.last_call_timeout = seconds(3);
    coordinator.rejoin_timeout = seconds(1800);
    coordinator.farewell_timeout = seconds(20);
    coordinator.restart_grace = seconds(2);
    coordinator.restart_rules.max_restarts = settings_.max_restarts;
    coordinator.candidates_only = settings_.endpoints > 1;
    coordinator.self = {host_name(slot), process.incarnation, host_name(slot), 0};
    settings.takeover.terms = terms;
    settings.takeover.self = coordinator.self;
    for (int i = 0; i < settings_.endpoints; ++i) {
        settings.takeover.endpoints.push_back({host_name(i), "endpoint " + host_name(i), host_name(i), kEndpointPort});
    }
    process.node = std::make_unique<core::Node>(settings, now_);
    say(slot, "starts");
    if (settings_.takeover || slot == 0) {
        step(slot, core::PortOpened{process.port, settings_.endpoints > 1 && slot < settings_.endpoints});
    }
    if (slot == 0) {
        step(slot, core::OwnsEndpoint{});
    } else {
        dial(slot, "", std::nullopt);
    }
}

void World::kill(int slot) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    if (!process.node) {
        return;
    }
    say(slot, "is killed");
    process.node.reset();
    process.workers.clear();  // the guard's work
    lose_all_connections(slot);
}

void World::pause(int slot) {
    processes_[static_cast<std::size_t>(slot)].paused = true;
    say(slot, "is paused");
}

void World::resume(int slot) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    if (!std::exchange(process.paused, false) || !process.node) {
        return;
    }
    say(slot, "goes on");
    process.resumed_at = now_;
    process.armed.reset();
    const auto due = process.node->next_deadline();
    if (due && *due <= now_ && below(2) == 0) {  // the timer and what has arrived are ready at once, in any order
        step(slot, core::NodeTime{});
    }
    for (const auto& happen : std::exchange(process.inbox, {})) {
        happen();
    }
    arm(slot);
}

void World::terminate(int slot) {
    say(slot, "gets SIGTERM");
    deliver(slot, processes_[static_cast<std::size_t>(slot)].incarnation, core::AgentEvent(core::SignalCame{SIGTERM}));
}

void World::leave_if_done(int slot) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    if (!process.finished || (process.node->coordinates() && !process.may_leave)) {
        return;
    }
    say(slot, "exits with " + std::to_string(*process.exit_code));
    process.node.reset();
    process.workers.clear();
    lose_all_connections(slot);
}

bool World::alive(int slot) const {
    const Process& process = processes_[static_cast<std::size_t>(slot)];
    return process.node != nullptr && !process.finished;
}

bool World::paused(int slot) const {
    return processes_[static_cast<std::size_t>(slot)].paused;
}

bool World::works(int slot) const {
    const auto& workers = processes_[static_cast<std::size_t>(slot)].workers;
    return std::any_of(workers.begin(), workers.end(), [](const Worker& worker) { return worker.running; });
}

bool World::took_part(int slot) const {
    const auto& workers = processes_[static_cast<std::size_t>(slot)].workers;
    return std::any_of(workers.begin(), workers.end(), [](const Worker& worker) { return !worker.stopped; });
}

int World::running_nodes() const {
    std::map<Generation, int> nodes;
    int most = 0;
    for (int slot = 0; slot < settings_.slots; ++slot) {
        if (works(slot)) {
            most = std::max(most, ++nodes[processes_[static_cast<std::size_t>(slot)].generation]);
        }
    }
    return most;
}

int World::coordinators() const {
    return static_cast<int>(std::count_if(processes_.begin(), processes_.end(), [](const Process& process) {
        return process.node && process.node->coordinates();
    }));
}

std::optional<int> World::exit_code(int slot) const {
    return processes_[static_cast<std::size_t>(slot)].exit_code;
}

// ---- effects of a node ------------------------------------------------------------------------------------------

void World::perform(int slot, const core::PrepareStore& /*effect*/) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    const auto port = static_cast<std::uint16_t>(40000 + 100 * slot + ++process.stores % 100);
    at(now_, [this, slot, incarnation = process.incarnation, port] {
        deliver(slot, incarnation, core::AgentEvent(core::StorePrepared{port}));
    });
}

void World::perform(int slot, const core::SweepFamilies& /*effect*/) {
    const std::string incarnation = processes_[static_cast<std::size_t>(slot)].incarnation;
    at(now_, [this, slot, incarnation] { deliver(slot, incarnation, core::AgentEvent(core::Swept{0, true, ""})); });
}

void World::perform(int slot, const core::Say& effect) {
    say(slot, "says: " + effect.text);
}

void World::perform(int slot, const core::Report& effect) {
    say(slot, "reports: " + effect.over.why);
    // An agent that is paused again and again never hears of its workers' end.
    const bool deaf = effect.over.why.find("does not end although it was killed") != std::string::npos;
    if ((effect.over.exit_code == core::kExitInternal && !deaf) || effect.over.exit_code == core::kExitUsage) {
        violate(host_name(slot) + " ends with " + std::to_string(effect.over.exit_code) + ": " + effect.over.why);
    }
}

void World::perform(int slot, const core::Finish& effect) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    if (process.finished) {
        violate(host_name(slot) + " finishes twice");
    }
    if (works(slot)) {
        violate(host_name(slot) + " finishes while its workers run");
    }
    process.finished = true;
    process.exit_code = effect.exit_code;
}

void World::perform(int slot, const core::MayLeave& /*effect*/) {
    processes_[static_cast<std::size_t>(slot)].may_leave = true;
}

void World::say(int slot, const std::string& text) {
    if (logging_) {
        log_.push_back(decimal(ddl::seconds(now_.time_since_epoch())) + " " + host_name(slot) + " " + text);
    }
}

void World::violate(const std::string& text) {
    if (violation_.empty()) {
        violation_ = "at " + decimal(ddl::seconds(now_.time_since_epoch())) + " s: " + text;
    }
}

}  // namespace ddl::sim
