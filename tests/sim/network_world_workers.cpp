// The workers of the simulated world, and what must hold when they start.

#include <algorithm>
#include <csignal>

#include "base/text.hpp"
#include "sim/network_world.hpp"

namespace ddl::sim {
namespace {

using std::chrono::milliseconds;

constexpr auto kKillTakes = milliseconds(2);
// From a new round's first worker until the last of an older one must be dead: what is under way arrives, KILL works.
constexpr auto kOverlapAllowed = milliseconds(250);

constexpr Duration kToldToEnd = std::chrono::seconds(4);

}  // namespace

void World::perform(int slot, const core::StartWorkers& effect) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    const wire::Assignment& round = effect.assignment;
    say(slot, "starts ranks from " + std::to_string(round.base_rank) + " of " + std::to_string(round.world_size) +
                  " in round " + std::to_string(round.generation.number()));
    if (works(slot)) {
        violate(host_name(slot) + " starts workers while others still run");
    }
    check_round(slot, round);
    process.generation = round.generation;
    process.life = life_;
    process.workers.assign(2, Worker{true, false, false});
    at(now_ + kOverlapAllowed,
       [this, slot, generation = round.generation] { check_one_world(slot, generation, kToldToEnd); });
    for (int local = 0; local < 2; ++local) {
        at(now_, [this, slot, local, incarnation = process.incarnation] {
            deliver(slot, incarnation, core::AgentEvent(core::WorkerStarted{local, 1000 + local}));
        });
    }
    if (finishing_) {
        finish_workers();
    }
}

void World::check_round(int slot, const wire::Assignment& assignment) {
    const std::string opener = assignment.config.voters.empty() ? processes_.front().incarnation
                                                                : assignment.config.voters.front().incarnation;
    const auto known = rounds_.find(assignment.generation);
    const bool another = known != rounds_.end() && known->second.opener != opener;
    const auto lives = [this](const std::string& incarnation) {
        return std::any_of(processes_.begin(), processes_.end(),
                           [&](const Process& process) { return process.node && process.incarnation == incarnation; });
    };
    // The job has ended, or nobody who is left knows of its last rounds: another one begins.
    const bool begins_anew = assignment.generation == Generation{0, 1} || !settings_.takeover;
    if (another && !begins_anew && lives(known->second.opener)) {
        violate("two coordinators opened round " + std::to_string(assignment.generation.number()));
    }
    const bool goes_back =
        known == rounds_.end() && !rounds_.empty() && assignment.generation < rounds_.rbegin()->first;
    if (another || (begins_anew && goes_back)) {
        rounds_.clear();
        ++life_;
    }
    Round& round = rounds_[assignment.generation];
    if (round.ranks.empty()) {
        round.world_size = assignment.world_size;
        round.opener = opener;
    }
    for (int rank = assignment.base_rank; rank < assignment.base_rank + 2; ++rank) {
        if (rank < 0 || rank >= assignment.world_size || !round.ranks.insert(rank).second) {
            violate("rank " + std::to_string(rank) + " of round " + std::to_string(assignment.generation.number()) +
                    " was given twice or does not exist");
        }
    }
    if (assignment.world_size != round.world_size) {
        violate("two world sizes in round " + std::to_string(assignment.generation.number()));
    }
    if (assignment.restart_count > settings_.max_restarts) {
        violate("more restarts than the budget allows");
    }
    for (const auto& [other, round_of_other] : rounds_) {
        const bool same_order =
            (other.term < assignment.generation.term) == (other.counter < assignment.generation.counter);
        const bool same_term = other.term == assignment.generation.term;
        // Whoever opened a round that nobody else ever heard of took the knowledge of it into the grave.
        if (other != assignment.generation && !same_term && !same_order && settings_.takeover &&
            lives(round_of_other.opener)) {
            violate(host_name(slot) + " begins round " + std::to_string(assignment.generation.number()) +
                    ", but round " + std::to_string(other.number()) +
                    " had begun: two coordinators went on from the same round");
        }
    }
}

bool World::runs_unharmed(const Process& process) const {
    return process.node && !process.paused &&
           std::any_of(process.workers.begin(), process.workers.end(),
                       [](const Worker& worker) { return worker.running && !worker.killed; });
}

// A moment after a round has begun somewhere, nobody who is not paused runs workers of another round, unless that is a
// later one and this round's workers are gone again.
void World::check_one_world(int slot, Generation generation, Duration again_in) {
    const Process& starter = processes_[static_cast<std::size_t>(slot)];
    if (!runs_unharmed(starter) || starter.generation != generation) {
        return;
    }
    for (int other = 0; other < settings_.slots; ++other) {
        const Process& process = processes_[static_cast<std::size_t>(other)];
        if (runs_unharmed(process) &&
            std::pair(process.life, process.generation) < std::pair(starter.life, generation) &&
            now_ >= process.resumed_at + kOverlapAllowed) {
            // A job begun anew while the old one's coordinator could not be heard: it is told to end, once it can be.
            const bool anew = (process.generation.term == 0 && process.life > 0) ||
                              (starter.generation.term == 0 && starter.life > 0);
            const bool apart = !blocked_.empty();
            if (anew && (apart || again_in > Duration::zero())) {
                const Duration later = apart ? again_in : Duration::zero();
                at(now_ + kToldToEnd, [this, slot, generation, later] { check_one_world(slot, generation, later); });
                continue;
            }
            violate(host_name(other) + " still runs workers of round " + std::to_string(process.generation.number()) +
                    " while " + host_name(slot) + " runs round " + std::to_string(generation.number()));
        }
    }
}

void World::perform(int slot, const core::SignalWorkers& effect) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    for (const int local : effect.local_ranks) {
        Worker& worker = process.workers.at(static_cast<std::size_t>(local));
        worker.stopped = true;
        const bool kill = effect.signal == SIGKILL;
        worker.killed = worker.killed || kill;
        if (worker.running && (kill || !process.ignores_term)) {
            const Duration takes = kill ? Duration(kKillTakes) : Duration(milliseconds(below(80)));
            at(now_ + takes, [this, slot, local, signal = effect.signal, generation = process.generation,
                              incarnation = process.incarnation] {
                const Process& same = processes_[static_cast<std::size_t>(slot)];
                if (same.node && same.incarnation == incarnation && same.generation == generation) {
                    worker_ended(slot, local, true, signal);
                }
            });
        }
    }
}

void World::worker_ended(int slot, int local, bool signalled, int status) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    Worker& worker = process.workers.at(static_cast<std::size_t>(local));
    if (!process.node || !worker.running) {
        return;
    }
    worker.running = false;
    core::WorkerEnded ended;
    ended.local_rank = local;
    ended.signalled = signalled;
    ended.status = status;
    ended.stopped = worker.stopped;
    deliver(slot, process.incarnation, core::AgentEvent(std::move(ended)));
}

void World::end_worker(int slot, int status) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    for (std::size_t local = 0; local < process.workers.size(); ++local) {
        if (process.workers[local].running) {
            say(slot, "loses a worker");
            worker_ended(slot, static_cast<int>(local), false, status);
            return;
        }
    }
}

void World::ignore_term(int slot, bool ignores) {
    processes_[static_cast<std::size_t>(slot)].ignores_term = ignores;
}

void World::finish_workers() {
    finishing_ = true;
    for (int slot = 0; slot < settings_.slots; ++slot) {
        const Process& process = processes_[static_cast<std::size_t>(slot)];
        for (std::size_t local = 0; local < process.workers.size(); ++local) {
            at(now_ + milliseconds(100 + below(200)),
               [this, slot, local, generation = process.generation, incarnation = process.incarnation] {
                   const Process& same = processes_[static_cast<std::size_t>(slot)];
                   if (same.node && same.incarnation == incarnation && same.generation == generation) {
                       worker_ended(slot, static_cast<int>(local), false, 0);
                   }
               });
        }
    }
}

}  // namespace ddl::sim
