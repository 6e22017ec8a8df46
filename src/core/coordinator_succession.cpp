// From one coordinator to the next: what is taken over from a former one, and how the office is handed over.

#include <algorithm>
#include <utility>

#include "core/coordinator.hpp"

namespace ddl::core {

// What an agent knows of the job's last round: its own place there, and all that a restarted coordinator has forgotten.
void Coordinator::adopt(Peer& peer, const wire::Hello& hello) {
    const bool knows_more = hello.last.counter > last_run_;
    if (generation_.counter == 0) {
        adopt_authority(peer, hello);
        policy_.adopt(hello.restart_count, hello.restart_ages, now_);
    }
    if (knows_more) {
        last_run_ = hello.last.counter;
        last_counter_ = std::max(last_counter_, last_run_);
    }
    const bool placed = hello.last_group_rank >= 0 && hello.last_group_rank < settings_.terms.max_nodes;
    if (hello.last.counter == 0 || hello.last.counter != last_run_ || !placed) {
        return;
    }
    peer.survivor_of = hello.last_group_rank;
    if (generation_.counter > 0) {
        return;
    }
    if (knows_more) {
        places_.clear();
    }
    const auto rank = static_cast<std::size_t>(hello.last_group_rank);
    places_.resize(std::max(places_.size(), rank + 1));
    places_[rank] = {hello.node.name, hello.node.workers};
    judge_former();
}

// The former coordinator's node is lost, whatever became of its workers.
void Coordinator::judge_former() {
    if (settings_.handed_over || std::exchange(former_judged_, true)) {
        return;
    }
    wire::Death lost;
    lost.kind = wire::DeathKind::kNodeLost;
    lost.node = lost_coordinator();
    lost.message = "it had the coordinator";
    static_cast<void>(judge({lost}, Duration::zero()));
}

// What the agents know of earlier rounds decides who must agree to the next. Whoever owns the endpoint of a former
// coordinator could not listen there if that one were still alive, so it stands for its vote.
void Coordinator::adopt_authority(const Peer& /*peer*/, const wire::Hello& hello) {
    if (!settings_.terms.takeover) {
        return;
    }
    if (settings_.last.empty() && hello.promised >= generation_.term && hello.promised > 0) {
        settings_.term = generation_.term = (hello.promised + 1) | 1U;  // odd: nobody was elected
    }
    const Generation told = hello.pending ? hello.pending->generation : hello.config.generation;
    if (told <= quorum_.latest()) {
        return;
    }
    std::vector<wire::RoundConfig> rounds = {hello.config};
    if (hello.pending) {
        rounds.push_back(*hello.pending);
    }
    const bool owner = settings_.last.empty();
    std::set<std::string> inherited;
    for (const wire::RoundConfig& round : rounds) {
        if (owner && !round.voters.empty() && round.voters.front().port == settings_.self.port &&
            round.voters.front().address == settings_.self.address) {
            inherited.insert(round.voters.front().incarnation);
        }
        last_counter_ = std::max(last_counter_, round.generation.counter);
        expected_ = std::max(expected_, round.nodes - (owner ? 0 : 1));
    }
    quorum_.challenge(std::move(rounds), std::move(inherited));
}

// The node that had the coordinator before this one.
std::string Coordinator::lost_coordinator() const {
    if (settings_.last.empty()) {
        return settings_.local_name;
    }
    const std::vector<wire::Contact>& voters = settings_.last.front().voters;
    return voters.empty() ? "(unknown)" : voters.front().name;
}

// All nodes that the job may have are here, and every voter's host is among them, though some with new agents: there is
// nobody left who could go on elsewhere, so the agents stand for the voters of their hosts.
void Coordinator::inherit_if_all_are_back() {
    std::set<std::string> replaced;
    for (const wire::Contact& voter : quorum_.voters()) {
        bool here = voter.incarnation == settings_.self.incarnation;
        bool again = voter.name == settings_.local_name && voter.address == settings_.self.address;
        for (const auto& [id, peer] : peers_) {
            const bool known = peer.hello.has_value();
            here = here || (known && peer.hello->node.incarnation == voter.incarnation);
            again = again || (known && peer.hello->node.name == voter.name &&
                              (peer.address == voter.address || peer.hello->node.announced_address == voter.address));
        }
        if (!here && !again) {
            return;
        }
        if (!here) {
            replaced.insert(voter.incarnation);
        }
    }
    quorum_.inherit(replaced);
}

// ---- handing over -----------------------------------------------------------------------------------------------

void Coordinator::local_gone(const std::string& why) {
    if (phase_ == Phase::kGathering && last_counter_ > 0 && successor() != PeerId::kLocal) {
        retiring_ = true;  // it was leaving already when this coordinator was elected
        hand_over();
        return;
    }
    wire::JobOver over;
    over.exit_code = kExitInternal;
    over.origin = wire::ExitOrigin::kLauncher;
    over.why = "the coordinator's node " + settings_.local_name + " failed: " + why;
    end_job(std::move(over));
}

std::vector<wire::Contact> Coordinator::successors() const {
    return has_opened() ? quorum_config_.voters : quorum_.voters();
}

PeerId Coordinator::successor() const {
    PeerId first = PeerId::kLocal;
    const auto able = [&](const wire::Contact& voter) {
        const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const auto& entry) {
            const auto& [id, peer] = entry;
            return id != PeerId::kLocal && peer.hello && !peer.leaving &&
                   peer.hello->node.incarnation == voter.incarnation;
        });
        first = found == peers_.end() ? PeerId::kLocal : found->first;
        return found != peers_.end();
    };
    if (settings_.authority_outside) {
        const auto any = std::find_if(peers_.begin(), peers_.end(), [](const auto& entry) {
            return entry.first != PeerId::kLocal && entry.second.hello && !entry.second.leaving;
        });
        return any == peers_.end() ? PeerId::kLocal : any->first;
    }
    const std::vector<wire::Contact> voters = successors();
    static_cast<void>(std::any_of(voters.begin(), voters.end(), able));
    return first;
}

// Nothing runs anywhere: the successor opens the next round.
void Coordinator::hand_over() {
    const PeerId next = successor();
    if (next == PeerId::kLocal) {
        wire::JobOver over;
        over.exit_code = kExitStopped;
        over.origin = wire::ExitOrigin::kLauncher;
        over.why = "node " + settings_.local_name + " was told to stop, and nobody is left to hand over to";
        end_job(std::move(over));
        return;
    }
    const std::string why = "node " + settings_.local_name + " was told to stop and hands over";
    wire::Retire retire{(settings_.term / 2 + 1) * 2, {}, why};
    if (!settings_.authority_outside) {
        const std::string& incarnation = peers_.at(next).hello->node.incarnation;
        const std::vector<wire::Contact> voters = successors();
        retire.successor = *std::find_if(voters.begin(), voters.end(),
                                         [&](const wire::Contact& voter) { return voter.incarnation == incarnation; });
    }
    say(Severity::kWarning, "handing over to node " + peers_.at(next).hello->node.name);
    phase_ = Phase::kOver;
    ended_ = true;
    gathering_until_.reset();
    next_notice_.reset();
    lease_tick_.reset();
    for (const auto& [id, peer] : std::exchange(peers_, {})) {
        if (id != PeerId::kLocal) {
            send(id, retire);
            effects_.emplace_back(DropPeer{id});
        }
    }
    effects_.emplace_back(HandedOver{});
}

}  // namespace ddl::core
