// The life of a round: gathering, opening, stopping, settling; and the end of the job.

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "core/coordinator.hpp"

namespace ddl::core {
namespace {

constexpr auto kNoticeDelay = std::chrono::seconds(10);
constexpr auto kGrowthDebounce = std::chrono::seconds(1);
constexpr auto kGrowthPatience = std::chrono::seconds(5);
constexpr std::size_t kMaxStoreClientBytes = wire::kMaxMessageBytes / 2;  // the assignment must fit into a message
constexpr Duration kLongestAge = std::chrono::hours(24);

}  // namespace

void Coordinator::gather(Duration limit) {
    phase_ = Phase::kGathering;
    frozen_ = false;
    deaths_.clear();
    growth_at_.reset();
    growth_limit_.reset();
    last_call_until_.reset();
    last_call_over_ = false;
    gathering_until_ = hold_until_.value_or(now_) + limit;
    next_notice_ = now_ + kNoticeDelay;
}

// MAX ready nodes open a round at once. Fewer open it when MIN is reached and nobody is still getting ready: in the
// first round after the last call, later at once (who was lost may come back as a growth).
void Coordinator::open_if_possible() {
    if (phase_ != Phase::kGathering || proposal_ || retiring_ || hold_until_) {
        return;
    }
    const int ready = count_ready();
    if (ready >= settings_.terms.max_nodes) {
        inherit_if_all_are_back();
    }
    if (!has_authority()) {
        return;
    }
    if (ready >= settings_.terms.max_nodes) {
        propose_round();
        return;
    }
    const bool waits_for_the_rest = settings_.job_runs_elsewhere && last_counter_ == 0;
    if (ready < settings_.terms.min_nodes || waits_for_the_rest) {
        last_call_until_.reset();
        return;
    }
    const bool all_here = ready == count_present() && ready >= expected_;
    if (last_counter_ > 0 && all_here && (generation_.counter > 0 || expected_ > 0)) {
        propose_round();
        return;
    }
    if (generation_.counter > 0) {
        return;
    }
    if (!last_call_until_ && !last_call_over_) {
        last_call_until_ = now_ + last_call();
    }
    last_call_over_ = last_call_over_ || *last_call_until_ <= now_;
    if (last_call_over_) {
        propose_round();
    }
}

// After a takeover survivors may still be ending their workers. An owner of the endpoint that starts afresh listens
// first whether its job goes on elsewhere (DESIGN 14).
Duration Coordinator::last_call() const {
    if (expected_ > 0) {
        return std::min(settings_.last_call_timeout, settings_.terms.lease + settings_.restart_grace);
    }
    constexpr Duration kListen = std::chrono::seconds(3);
    return settings_.terms.takeover ? std::max(settings_.last_call_timeout, kListen) : settings_.last_call_timeout;
}

void Coordinator::propose_round() {
    Proposal proposal;
    proposal.order = place(candidates(), places_, static_cast<std::size_t>(settings_.terms.max_nodes));
    proposal.config = config_of(proposal.order);
    proposal.config.generation = {generation_.term, last_counter_ + 1};
    ++last_counter_;
    proposal.sent_at = now_;
    last_call_until_.reset();
    proposal_ = std::move(proposal);
    ask_voters();
}

void Coordinator::open_round() {
    const Proposal proposal = std::move(*std::exchange(proposal_, std::nullopt));
    const std::vector<Candidate>& order = proposal.order;
    generation_ = proposal.config.generation;
    last_run_ = generation_.counter;
    quorum_config_ = proposal.config;
    quorum_.agreed(proposal.config, proposal.sent_at);
    expected_ = 0;
    former_judged_ = true;
    opened_at_ = now_;
    phase_ = Phase::kRunning;
    gathering_until_.reset();
    last_call_until_.reset();
    next_notice_.reset();
    places_.clear();
    for (auto& [id, peer] : peers_) {
        peer.member.reset();
        peer.survivor_of = -1;
        peer.finished = false;
    }
    std::vector<wire::Assignment> assignments = assign_ranks(order);
    for (std::size_t i = 0; i < order.size(); ++i) {
        Peer& peer = peers_[order[i].peer];
        peer.member = assignments[i].group_rank;
        peer.survivor_of = assignments[i].group_rank;
        peer.ready = false;
        places_.push_back({order[i].facts.name, order[i].facts.workers});
        send(order[i].peer, complete(std::move(assignments[i]), order));
    }
    for (const auto& [id, peer] : peers_) {
        tell_newcomer(id, peer);
    }
}

wire::Assignment Coordinator::complete(wire::Assignment assignment, const std::vector<Candidate>& order) const {
    const Candidate& first = order.front();
    const Peer& peer = peers_.at(order[static_cast<std::size_t>(assignment.group_rank)].peer);
    assignment.generation = generation_;
    assignment.config = quorum_config_;
    assignment.lease_beat = peer.beat;
    assignment.lease_limit = lease_limit(order[static_cast<std::size_t>(assignment.group_rank)].peer);
    assignment.restart_count = policy_.restart_count();
    assignment.restart_ages = policy_.ages(now_);
    assignment.master_addr = master_address(first);
    assignment.master_port = peers_.at(first.peer).store_port;
    assignment.serves_store = assignment.group_rank == 0;
    if (assignment.serves_store) {
        assignment.store_clients = store_clients(order);
    }
    return assignment;
}

std::string Coordinator::master_address(const Candidate& first) const {
    if (!first.facts.announced_address.empty()) {
        return first.facts.announced_address;
    }
    return first.owns_endpoint ? settings_.endpoint_host : first.facts.connection_address;
}

std::vector<std::string> Coordinator::store_clients(const std::vector<Candidate>& order) const {
    std::set<std::string> addresses;
    std::size_t bytes = 0;
    const auto add = [&](const std::string& address) {
        constexpr std::size_t kPunctuation = 3;
        const std::size_t size = address.size() + kPunctuation;
        if (!address.empty() && bytes + size <= kMaxStoreClientBytes && addresses.insert(address).second) {
            bytes += size;
        }
    };
    for (const Candidate& candidate : order) {
        add(peers_.at(candidate.peer).address);
    }
    for (const Candidate& candidate : order) {
        std::for_each(candidate.facts.addresses.begin(), candidate.facts.addresses.end(), add);
    }
    return {addresses.begin(), addresses.end()};
}

std::vector<Candidate> Coordinator::candidates() const {
    std::vector<Candidate> all;
    for (const auto& [id, peer] : peers_) {
        if (!peer.ready || peer.leaving) {
            continue;
        }
        Candidate& candidate = all.emplace_back();
        candidate.peer = id;
        candidate.facts = peer.hello->node;
        candidate.owns_endpoint = id == PeerId::kLocal;
        candidate.reachable = candidate.owns_endpoint || !candidate.facts.announced_address.empty() ||
                              candidate.facts.connection_address == peer.address;
        candidate.survivor_of = peer.survivor_of;
    }
    return all;
}

bool Coordinator::may_grow(const Peer& peer) const {
    const bool room = places_.size() < static_cast<std::size_t>(settings_.terms.max_nodes);
    return phase_ == Phase::kRunning && !frozen_ && room && peer.ready && !peer.member && !peer.leaving &&
           settings_.scale_up != plan::ScaleUp::kNever;
}

// Nodes that trickle in cost one restart: the round changes when none has come for a moment, or patience ends.
void Coordinator::plan_growth(const Peer& peer) {
    if (!may_grow(peer)) {
        return;
    }
    if (settings_.scale_up == plan::ScaleUp::kAtCheckpoint) {
        growth_at_ = growth_at_.value_or(now_ + settings_.scale_up_deadline);
        return;
    }
    if (!growth_limit_) {
        growth_limit_ = now_ + kGrowthPatience;
    }
    growth_at_ = std::min(now_ + kGrowthDebounce, *growth_limit_);
}

// A death may be told twice, by Failed and by Ready, delayed differently: the earlier date is nearer to the truth.
void Coordinator::note_death(wire::Death death) {
    const Instant at = now_ - std::clamp(death.age, Duration::zero(), kLongestAge);
    const auto known = std::find_if(deaths_.begin(), deaths_.end(), [&](const DatedDeath& other) {
        return death.kind != wire::DeathKind::kNodeLost && other.death.rank == death.rank;
    });
    if (known == deaths_.end()) {
        deaths_.push_back({std::move(death), at});
    } else {
        known->at = std::min(known->at, at);
    }
}

void Coordinator::stop_round(wire::StopReason reason, const std::string& why) {
    phase_ = Phase::kStopping;
    stop_reason_ = reason;
    growth_at_.reset();
    next_notice_ = now_ + kNoticeDelay;
    stopping_until_ = now_ + settings_.farewell_timeout;
    for (const auto& [id, peer] : peers_) {
        if (peer.member && !peer.leaving) {
            send(id, wire::Stop{generation_, reason, why});
        }
    }
}

// A node that does not end its workers is frozen or cut off: it is lost. Its workers find the next round's store
// closed.
void Coordinator::give_up_stragglers() {
    std::vector<PeerId> stragglers;
    for (const auto& [id, peer] : peers_) {
        if (peer.member && !peer.ready && id != PeerId::kLocal) {
            stragglers.push_back(id);
        }
    }
    const std::string limit = std::to_string(static_cast<long>(seconds(settings_.farewell_timeout)));
    for (const PeerId id : stragglers) {
        effects_.emplace_back(DropPeer{id});
        on(PeerGone{id, "did not end its workers within " + limit + " s"});
    }
}

void Coordinator::settle_if_all_ready() {
    if (phase_ != Phase::kStopping) {
        return;
    }
    const bool all_ready = std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) {
        const Peer& peer = entry.second;
        return !peer.member || peer.ready;
    });
    if (all_ready) {
        settle();
    }
}

void Coordinator::settle() {
    stopping_until_.reset();
    const std::vector<wire::Death> deaths = in_causal_order(std::exchange(deaths_, {}));
    for (auto& [id, peer] : peers_) {
        peer.member.reset();
        peer.finished = false;
    }
    // A failure while a round changes its membership was caused by nobody's fault that a restart would mend.
    if (stop_reason_ == wire::StopReason::kFailure && !deaths.empty()) {
        if (!judge(deaths, now_ - opened_at_)) {
            return;
        }
    }
    gather(settings_.rejoin_timeout);
    if (retiring_) {
        hand_over();
        return;
    }
    open_if_possible();
}

// Whether there is another round.
bool Coordinator::judge(const std::vector<wire::Death>& deaths, Duration round_age) {
    RestartPolicy::Decision decision = policy_.judge(deaths, round_age, now_);
    if (decision.over) {
        decision.over->deaths = deaths;
        end_job(std::move(*decision.over));
        return false;
    }
    if (decision.delay > Duration::zero()) {
        hold_until_ = now_ + decision.delay;
    }
    send_notice(describe(deaths.front()) + "; " + decision.text);
    return true;
}

void Coordinator::finish_if_all_done() {
    if (phase_ != Phase::kRunning || members_running() > 0) {
        return;
    }
    wire::JobOver over;
    over.why = "all workers have finished";
    over.restart_count = policy_.restart_count();
    end_job(std::move(over));
}

void Coordinator::expire_gathering() {
    if (count_ready() >= settings_.terms.min_nodes && has_authority() && !proposal_) {
        propose_round();  // somebody is here but doesn't get ready: not at the cost of the others
        return;
    }
    const bool first = last_counter_ == 0;
    wire::JobOver over;
    over.exit_code = first ? kExitJoinTimeout : kExitTooFewNodes;
    over.origin = wire::ExitOrigin::kLauncher;
    const Duration limit = first ? settings_.join_timeout : settings_.rejoin_timeout;
    over.why = (first ? "nodes did not come within join_timeout " : "too few nodes were left for rejoin_timeout ") +
               std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) + " s at " +
               settings_.endpoint_text + ": " + roster_text();
    if (const std::string voters = quorum_.text(now_); !voters.empty()) {
        over.why += "; " + voters;
    }
    end_job(std::move(over));
}

void Coordinator::end_job(wire::JobOver over) {
    over.restart_count = policy_.restart_count();
    phase_ = Phase::kOver;
    over_ = std::move(over);
    gathering_until_.reset();
    last_call_until_.reset();
    next_notice_.reset();
    growth_at_.reset();
    stopping_until_.reset();
    proposal_.reset();
    hold_until_.reset();
    farewell_until_ = now_ + settings_.farewell_timeout;
    for (const auto& [id, peer] : peers_) {
        send(id, *over_);
    }
    end_if_deserted();
}

void Coordinator::end_if_deserted() {
    const bool deserted =
        std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) { return entry.first == PeerId::kLocal; });
    if (deserted && !ended_) {
        ended_ = true;
        farewell_until_.reset();
        effects_.emplace_back(CoordinationEnded{});
    }
}

}  // namespace ddl::core
