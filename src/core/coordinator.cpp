#include "core/coordinator.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace ddl::core {
namespace {

std::string nodes_text(const wire::JobTerms& terms) {
    const std::string max = std::to_string(terms.max_nodes);
    return terms.min_nodes == terms.max_nodes ? max : std::to_string(terms.min_nodes) + ":" + max;
}

constexpr int kMaxWorkersPerNode = 4096;

std::string duration_text(Duration time) {
    return decimal(seconds(time)) + " s";
}

std::string differs(const char* what, const std::string& theirs, const std::string& ours) {
    return std::string(what) + " is " + theirs + " on this node but " + ours + " in the running job";
}

}  // namespace

Coordinator::Coordinator(CoordinatorSettings settings, Instant now)
    : settings_(std::move(settings)),
      now_(now),
      quorum_(settings_.terms.lease, settings_.self.incarnation),
      policy_(settings_.restart_rules) {
    generation_.term = settings_.term;
    start_leases();
    gather(last_counter_ == 0 ? settings_.join_timeout : settings_.rejoin_timeout);
}

std::vector<CoordinatorEffect> Coordinator::step(const CoordinatorEvent& event, Instant now) {
    const Duration gap = now - std::exchange(now_, now);
    if (gap > 3 * settings_.terms.lease / 10) {
        notice_own_absence();
    }
    std::visit([this](const auto& e) { on(e); }, event);
    return std::exchange(effects_, {});
}

std::optional<Instant> Coordinator::next_deadline() const {
    std::optional<Instant> next;
    for (const auto& deadline : {gathering_until_, last_call_until_, next_notice_, growth_at_, farewell_until_,
                                 stopping_until_, lease_tick_}) {
        if (deadline && (!next || *deadline < *next)) {
            next = deadline;
        }
    }
    return next;
}

void Coordinator::on(const PeerArrived& event) {
    Peer& peer = peers_[event.peer];
    peer.address = event.address;
    peer.heard_at = now_;
}

void Coordinator::on(const PeerSaid& event) {
    const auto found = peers_.find(event.peer);
    if (found == peers_.end()) {
        return;
    }
    found->second.heard_at = now_;
    const bool greets = std::holds_alternative<wire::Hello>(event.message);
    if (!found->second.hello && std::holds_alternative<wire::Beat>(event.message)) {
        effects_.emplace_back(DropPeer{event.peer});  // of a session with an earlier coordinator: it will greet anew
        peers_.erase(found);
        return;
    }
    if (!found->second.hello && !greets) {
        refuse(event.peer, "the first message of a session must be hello");
        return;
    }
    std::visit([&](const auto& message) { heard(event.peer, found->second, message); }, event.message);
}

void Coordinator::on(const PeerGone& event) {
    const auto found = peers_.find(event.peer);
    if (found == peers_.end()) {
        return;
    }
    const Peer peer = std::move(found->second);
    peers_.erase(found);
    if (phase_ == Phase::kOver) {
        end_if_deserted();
        return;
    }
    if (event.peer == PeerId::kLocal && !retiring_) {
        local_gone(event.why);
        return;
    }
    lose(peer, event.why);
    if (event.peer == PeerId::kLocal && phase_ == Phase::kGathering) {
        hand_over();
        return;
    }
    settle_if_all_ready();
    finish_if_all_done();
    open_if_possible();
}

void Coordinator::lose(const Peer& peer, const std::string& why) {
    if (!peer.hello) {
        return;
    }
    quorum_.lost(peer.hello->node.incarnation);
    withdraw_proposal();
    if (peer.leaving || peer.finished) {
        return;
    }
    if (!peer.member) {
        if (phase_ == Phase::kGathering) {
            say(Severity::kWarning, "node " + peer.hello->node.name + " left (" + why + "): " + roster_text());
        }
        return;
    }
    wire::Death lost;
    lost.kind = wire::DeathKind::kNodeLost;
    lost.node = peer.hello->node.name;
    lost.message = why;
    note_death(lost);
    if (phase_ == Phase::kRunning) {
        stop_round(wire::StopReason::kFailure, describe(lost));
    }
}

void Coordinator::on(const TimePassed& /*event*/) {
    const auto due = [this](std::optional<Instant>& deadline) {
        if (!deadline || *deadline > now_) {
            return false;
        }
        deadline.reset();
        return true;
    };
    if (due(lease_tick_)) {
        lease_tick();
    }
    if (due(farewell_until_)) {
        std::erase_if(peers_, [this](const auto& entry) {
            const auto& [id, peer] = entry;
            if (id == PeerId::kLocal) {
                return false;
            }
            say(Severity::kWarning, "node " + (peer.hello ? peer.hello->node.name : peer.address) +
                                        " did not leave in time: it is not waited for");
            effects_.emplace_back(DropPeer{id});
            return true;
        });
        end_if_deserted();
    }
    if (due(stopping_until_)) {
        give_up_stragglers();
    }
    if (due(growth_at_)) {
        growth_limit_.reset();
        const bool still_here =
            std::any_of(peers_.begin(), peers_.end(), [this](const auto& entry) { return may_grow(entry.second); });
        if (still_here) {
            stop_round(wire::StopReason::kMembership, "the job grows: " + roster_text());
        }
    }
    const bool held = due(hold_until_);
    if (held || (last_call_until_ && *last_call_until_ <= now_)) {
        open_if_possible();
    }
    if (due(gathering_until_)) {
        expire_gathering();
    }
    if (due(next_notice_)) {
        constexpr auto kNoticeInterval = std::chrono::seconds(10);
        next_notice_ = now_ + kNoticeInterval;
        send_notice(progress_text());
    }
}

void Coordinator::heard(PeerId id, Peer& peer, const wire::Hello& hello) {
    if (phase_ == Phase::kOver) {
        peer.hello = hello;
        send(id, *over_);
        return;
    }
    replace_older_session(id, hello);
    if (phase_ == Phase::kOver) {
        peer.hello = hello;
        send(id, *over_);
        return;
    }
    const std::string why_not = peer.hello ? "hello was sent twice" : objection(id, hello);
    if (!why_not.empty()) {
        refuse(id, "node " + hello.node.name + ": " + why_not);
        return;
    }
    const bool decided = generation_.counter > 0 || !settings_.last.empty();
    if (settings_.terms.takeover && decided && hello.promised > settings_.term) {
        effects_.emplace_back(DropPeer{id});
        effects_.emplace_back(TermLost{hello.promised});  // that agent could not follow: a later term is needed
        on(PeerGone{id, "it has promised to follow a later coordinator"});
        return;
    }
    peer.hello = hello;
    adopt(peer, hello);
    if (phase_ == Phase::kOver) {
        return;
    }
    send(id, wire::Welcome{settings_.terms.job_id, settings_.term, settings_.self});
    if (id != PeerId::kLocal && phase_ == Phase::kGathering) {
        say(Severity::kInfo, "node " + hello.node.name + " (" + peer.address + ") joined: " + count_text());
    }
}

void Coordinator::replace_older_session(PeerId id, const wire::Hello& hello) {
    const auto older = std::find_if(peers_.begin(), peers_.end(), [&](const auto& entry) {
        const auto& known = entry.second.hello;
        return entry.first != id && entry.first != PeerId::kLocal && known &&
               known->node.incarnation == hello.node.incarnation && known->node.name == hello.node.name;
    });
    if (older != peers_.end()) {
        const PeerId older_id = older->first;
        effects_.emplace_back(DropPeer{older_id});
        on(PeerGone{older_id, "it has connected again"});
    }
}

std::string Coordinator::objection(PeerId id, const wire::Hello& hello) const {
    const wire::JobTerms& ours = settings_.terms;
    const wire::JobTerms& theirs = hello.terms;
    if (hello.protocol != wire::kProtocolVersion) {
        return differs("the agent protocol", std::to_string(hello.protocol), std::to_string(wire::kProtocolVersion)) +
               ": run the same ddlaunch release on all nodes";
    }
    if (theirs.job_id_typed && theirs.job_id != ours.job_id) {
        return differs("--rdzv-id", theirs.job_id, ours.job_id);
    }
    if (theirs.min_nodes != ours.min_nodes || theirs.max_nodes != ours.max_nodes) {
        return differs("--nnodes", nodes_text(theirs), nodes_text(ours));
    }
    if (theirs.max_restarts != ours.max_restarts) {
        return differs("--max-restarts", std::to_string(theirs.max_restarts), std::to_string(ours.max_restarts));
    }
    if (theirs.lease != ours.lease) {
        return differs("lease_timeout", duration_text(theirs.lease), duration_text(ours.lease));
    }
    if (theirs.takeover != ours.takeover) {
        return differs("takeover", theirs.takeover ? "majority" : "off", ours.takeover ? "majority" : "off");
    }
    if (theirs.backend != ours.backend) {
        return differs("--rdzv-backend", theirs.backend, ours.backend);
    }
    if (theirs.command_digest != ours.command_digest) {
        return "the program or its arguments differ from those of the running job (digest " + theirs.command_digest +
               ", job " + ours.command_digest + ")";
    }
    if (hello.node.workers < 1 || hello.node.workers > kMaxWorkersPerNode) {
        return "--nproc-per-node is " + std::to_string(hello.node.workers) + "; possible are 1 to " +
               std::to_string(kMaxWorkersPerNode);
    }
    for (const auto& [other_id, other] : peers_) {
        if (other_id != id && other.hello && hello.node.requested_rank &&
            other.hello->node.requested_rank == hello.node.requested_rank && !other.leaving) {
            return "--node-rank " + std::to_string(*hello.node.requested_rank) + " is taken by node " +
                   other.hello->node.name;
        }
    }
    return "";
}

void Coordinator::refuse(PeerId id, const std::string& reason) {
    say(Severity::kWarning, "refused the agent at " + peers_[id].address + ": " + reason);
    send(id, wire::Refused{reason});
    effects_.emplace_back(DropPeer{id});
    on(PeerGone{id, "refused"});
}

void Coordinator::heard(PeerId id, Peer& peer, const wire::Ready& ready) {
    if (phase_ == Phase::kOver || peer.leaving) {
        return;
    }
    if (peer.member && ready.ended == generation_ && phase_ == Phase::kRunning) {
        stop_round(wire::StopReason::kFailure,
                   "node " + peer.hello->node.name + " ended its workers for want of a lease");
    }
    const bool of_this_round = ready.ended == generation_ && phase_ == Phase::kStopping;
    if (peer.member && !of_this_round) {
        return;  // a late word about an older round
    }
    if (of_this_round) {
        for (const wire::Death& death : ready.deaths) {
            note_death(death);
        }
    }
    if (phase_ == Phase::kGathering && !peer.ready) {
        withdraw_proposal();  // to be made again with this node in it
    }
    peer.ready = true;
    peer.store_port = ready.store_port;
    settle_if_all_ready();
    open_if_possible();
    plan_growth(peer);
    tell_newcomer(id, peer);
}

void Coordinator::tell_newcomer(PeerId id, const Peer& peer) {
    if (phase_ != Phase::kRunning || peer.member || !peer.ready) {
        return;
    }
    if (settings_.terms.takeover && !quorum_config_.voters.empty()) {
        send(id, wire::Propose{quorum_config_, generation_, true});
    }
    if (may_grow(peer)) {
        const bool at_once = settings_.scale_up == plan::ScaleUp::kNow;
        send(id, wire::Notice{"the job is running: this node takes part from its next round on, " +
                              (at_once ? "in a moment"
                                       : "after the workers' next checkpoint, or in " +
                                             duration_text(settings_.scale_up_deadline) + " at the latest")});
    } else if (frozen_) {
        send(id, wire::Notice{"the job is finishing: this node waits as a spare"});
    } else {
        send(id, wire::Notice{"all " + std::to_string(settings_.terms.max_nodes) +
                              " nodes are taken: this node waits as a spare"});
    }
}

void Coordinator::heard(PeerId /*id*/, Peer& peer, const wire::Failed& failed) {
    if (!peer.member || failed.generation != generation_ || (phase_ != Phase::kRunning && phase_ != Phase::kStopping)) {
        return;
    }
    note_death(failed.death);
    if (phase_ == Phase::kRunning) {
        stop_round(wire::StopReason::kFailure, describe(failed.death));
    }
}

void Coordinator::heard(PeerId /*id*/, Peer& peer, const wire::FirstExit& exit) {
    if (peer.member && exit.generation == generation_ && phase_ == Phase::kRunning) {
        frozen_ = true;
        growth_at_.reset();
    }
}

void Coordinator::heard(PeerId id, Peer& peer, const wire::Finished& finished) {
    if (!peer.member || finished.generation != generation_ || phase_ != Phase::kRunning) {
        return;
    }
    heard(id, peer, wire::FirstExit{finished.generation});
    peer.finished = true;
    finish_if_all_done();
}

void Coordinator::heard(PeerId id, Peer& peer, const wire::Leaving& leaving) {
    if (phase_ == Phase::kOver) {
        return;
    }
    peer.leaving = true;
    peer.ready = false;
    const std::string why = "node " + peer.hello->node.name + " was stopped by " + signal_name(leaving.signal);
    const bool started = last_counter_ > 0;
    const bool took_part = peer.survivor_of >= 0;
    const bool enough = !started || !took_part || count_present() >= settings_.terms.min_nodes;
    const bool can_go_on = enough && (id != PeerId::kLocal || (started && successor() != PeerId::kLocal));
    if (!can_go_on) {
        wire::JobOver over;
        over.exit_code = started ? kExitStopped : kExitSignalBase + leaving.signal;
        over.origin = wire::ExitOrigin::kLauncher;
        over.why = why;
        end_job(std::move(over));
        return;
    }
    say(Severity::kWarning, why);
    retiring_ = retiring_ || id == PeerId::kLocal;
    withdraw_proposal();
    if (phase_ == Phase::kRunning && (peer.member || retiring_)) {
        stop_round(wire::StopReason::kMembership, why);
    }
    open_if_possible();
}

template <class Other>
void Coordinator::heard(PeerId id, Peer& /*peer*/, const Other& /*message*/) {
    refuse(id, "only a coordinator sends this message");
}

void Coordinator::send(PeerId peer, wire::Message message) {
    effects_.emplace_back(SendTo{peer, std::move(message)});
}

void Coordinator::say(Severity severity, std::string text) {
    effects_.emplace_back(Say{severity, std::move(text)});
}

}  // namespace ddl::core
