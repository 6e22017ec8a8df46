// By what right the coordinator acts, and whom it holds for alive: leases, and the voters' agreement.

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "core/coordinator.hpp"

namespace ddl::core {
namespace {

constexpr int kTicksPerLease = 10;
// What is granted ends this part of the lease timeout before anybody else may act, for the time that killing takes.
constexpr int kMarginPart = 5;
constexpr Duration kForEver = std::chrono::hours(24 * 365);

}  // namespace

void Coordinator::start_leases() {
    authority_until_ = settings_.authority_until;
    for (const wire::RoundConfig& round : settings_.last) {
        last_counter_ = std::max(last_counter_, round.generation.counter);
        expected_ = std::max(expected_, round.nodes - 1);
    }
    quorum_.challenge(settings_.last);
    if (settings_.terms.lease > Duration::zero()) {
        lease_tick_ = now_ + settings_.terms.lease / kTicksPerLease;
    }
}

// This process was stopped for a while: nobody else is to blame for the silence. Its own right to act is counted from
// what it had sent before, so that needs no correction.
void Coordinator::notice_own_absence() {
    for (auto& [id, peer] : peers_) {
        peer.heard_at = now_;
    }
}

void Coordinator::lease_tick() {
    lease_tick_ = now_ + settings_.terms.lease / kTicksPerLease;
    evict_silent();
    const std::optional<Instant> until = authority_until();
    if (phase_ == Phase::kRunning && until && *until - settings_.terms.lease / kMarginPart <= now_) {
        const std::string voters = quorum_.text(now_ + settings_.terms.lease / kMarginPart);
        stop_round(wire::StopReason::kFailure,
                   "this coordinator may have been cut off" + (voters.empty() ? "" : ": " + voters));
    }
    if (phase_ == Phase::kGathering) {
        open_if_possible();
    }
}

void Coordinator::evict_silent() {
    std::vector<PeerId> silent;
    for (const auto& [id, peer] : peers_) {
        if (id != PeerId::kLocal && peer.hello && peer.heard_at + settings_.terms.lease <= now_) {
            silent.push_back(id);
        }
    }
    for (const PeerId id : silent) {
        effects_.emplace_back(DropPeer{id});
        on(PeerGone{id, "silent for " + decimal(seconds(settings_.terms.lease)) + " s"});
    }
}

// ---- leases -----------------------------------------------------------------------------------------------------

void Coordinator::heard(PeerId id, Peer& peer, const wire::Beat& beat) {
    if (peer.beat > 0 && beat.number == peer.beat + 1) {
        quorum_.heard(peer.hello->node.incarnation, peer.lease_sent_at);
    }
    peer.beat = beat.number;
    peer.lease_sent_at = now_;
    send(id, wire::Lease{beat.number, lease_limit(id)});
}

std::optional<Instant> Coordinator::authority_until() const {
    if (settings_.authority_outside) {
        return authority_until_.value_or(Instant{});
    }
    return settings_.terms.takeover ? quorum_.until() : std::nullopt;
}

bool Coordinator::has_authority() const {
    const std::optional<Instant> until = authority_until();
    // A challenger has yet to ask its voters: their agreement gives the authority.
    return !until || *until > now_ || (!settings_.authority_outside && generation_.counter == 0);
}

// The local agent shares this process's fate, so it may run as long as this coordinator may act.
Duration Coordinator::lease_limit(PeerId id) const {
    const Duration lease = settings_.terms.lease;
    const Duration longest = id == PeerId::kLocal ? kForEver : lease - lease / kMarginPart;
    const std::optional<Instant> until = authority_until();
    if (!until) {
        return longest;
    }
    return std::clamp<Duration>(*until - now_ - lease / kMarginPart, Duration::zero(), longest);
}

// ---- the voters' agreement --------------------------------------------------------------------------------------

wire::Contact Coordinator::contact_of(const Candidate& candidate) const {
    if (candidate.peer == PeerId::kLocal) {
        return settings_.self;
    }
    const wire::NodeFacts& facts = candidate.facts;
    const std::string& seen = peers_.at(candidate.peer).address;
    return {facts.name, facts.incarnation, facts.announced_address.empty() ? seen : facts.announced_address,
            facts.hub_port};
}

wire::RoundConfig Coordinator::config_of(const std::vector<Candidate>& order) const {
    wire::RoundConfig config;
    config.nodes = static_cast<int>(order.size());
    if (!settings_.terms.takeover) {
        return config;
    }
    config.voters.push_back(settings_.self);
    for (const Candidate& candidate : order) {
        const bool able = candidate.peer != PeerId::kLocal && candidate.facts.hub_port != 0 && candidate.reachable &&
                          (candidate.facts.candidate || !settings_.candidates_only);
        if (able && config.voters.size() < wire::kMaxVoters) {
            config.voters.push_back(contact_of(candidate));
        }
    }
    return config;
}

void Coordinator::ask_voters() {
    if (settings_.authority_outside) {
        RoundRecord record{proposal_->config.generation, policy_.restart_count(), {}};
        for (const Candidate& candidate : proposal_->order) {
            record.places.push_back({candidate.facts.name, candidate.facts.workers});
        }
        effects_.emplace_back(AgreeOnRound{std::move(record)});
        return;
    }
    if (!settings_.terms.takeover || quorum_.enough({})) {
        open_round();
        return;
    }
    for (const auto& [id, peer] : peers_) {
        if (id != PeerId::kLocal && peer.hello && quorum_.is_voter(peer.hello->node.incarnation)) {
            send(id, wire::Propose{proposal_->config, quorum_.latest(), false});
        }
    }
}

void Coordinator::heard(PeerId id, Peer& peer, const wire::Accepted& accepted) {
    if (accepted.promised > settings_.term) {
        effects_.emplace_back(TermLost{accepted.promised});
        return;
    }
    if (!proposal_ || accepted.generation != proposal_->config.generation || settings_.authority_outside) {
        return;
    }
    if (!accepted.agreed) {
        say(Severity::kWarning, "node " + peer.hello->node.name + " did not agree to round " +
                                    std::to_string(accepted.generation.number()) + ": it knows of a later one");
        effects_.emplace_back(DropPeer{id});
        on(PeerGone{id, "it knows of a later round"});
        return;
    }
    quorum_.heard(peer.hello->node.incarnation, proposal_->sent_at);
    proposal_->agreeing.insert(peer.hello->node.incarnation);
    if (quorum_.enough(proposal_->agreeing)) {
        open_round();
    }
}

void Coordinator::on(const RoundAgreed& event) {
    if (!proposal_ || event.generation != proposal_->config.generation) {
        return;
    }
    if (event.agreed) {
        open_round();
    } else {
        proposal_.reset();
        effects_.emplace_back(TermLost{});
    }
}

void Coordinator::on(const AuthorityUntil& event) {
    authority_until_ = event.until;
    open_if_possible();
}

// Somebody it was made with or by is no longer here: another is made when all are ready again.
void Coordinator::withdraw_proposal() {
    proposal_.reset();
}

void Coordinator::heard(PeerId /*id*/, Peer& peer, const wire::CheckpointDone& done) {
    if (peer.member && done.generation == generation_ && phase_ == Phase::kRunning && growth_at_ &&
        settings_.scale_up == plan::ScaleUp::kAtCheckpoint) {
        growth_at_ = now_;
    }
}

}  // namespace ddl::core
