#include "core/node.hpp"

#include <algorithm>
#include <utility>

namespace ddl::core {

Node::Node(NodeSettings settings, Instant now)
    : settings_(std::move(settings)), now_(now), agent_(settings_.agent, now), takeover_(settings_.takeover, now) {
}

std::vector<NodeEffect> Node::step(const NodeEvent& event, Instant now) {
    now_ = now;
    std::visit([this](const auto& e) { on(e); }, event);
    work();
    return std::exchange(effects_, {});
}

std::optional<Instant> Node::next_deadline() const {
    std::optional<Instant> next = agent_.next_deadline();
    for (const auto& deadline :
         {takeover_.next_deadline(), coordinator_ ? coordinator_->next_deadline() : std::nullopt, resume_at_}) {
        if (deadline && (!next || *deadline < *next)) {
            next = deadline;
        }
    }
    return next;
}

// The owner of the endpoint has nobody to ask where the coordinator is: after a while without any it is the one again.
void Node::dial(std::optional<wire::Contact> leader) {
    constexpr auto kResume = std::chrono::seconds(3);
    effects_.emplace_back(Dial{std::move(leader)});
    if (owner_ && !resume_at_ && !settings_.coordinator.authority_outside) {
        resume_at_ = now_ + kResume;
    }
}

void Node::put(Inner event) {
    queue_.push_back(std::move(event));
}

void Node::work() {
    while (!queue_.empty()) {
        const Inner event = std::move(queue_.front());
        queue_.pop_front();
        const auto perform_all = [this](const auto& effects) {
            for (const auto& effect : effects) {
                std::visit([this](const auto& e) { perform(e); }, effect);
            }
        };
        if (const auto* of_agent = std::get_if<AgentEvent>(&event)) {
            perform_all(agent_.step(*of_agent, now_));
        } else if (const auto* of_takeover = std::get_if<TakeoverEvent>(&event)) {
            perform_all(takeover_.step(*of_takeover, now_));
        } else if (coordinator_) {
            const auto effects = coordinator_->step(std::get<CoordinatorEvent>(event), now_);
            const LeadsIn leads{coordinator_->term(), coordinator_->has_opened()};
            if (leads.term != leads_.term || leads.opened != leads_.opened) {
                leads_ = leads;
                put(TakeoverEvent(leads));
            }
            perform_all(effects);
        }
    }
}

// ---- what comes in ----------------------------------------------------------------------------------------------

void Node::on(const AgentEvent& event) {
    if (const auto* signal = std::get_if<SignalCame>(&event)) {
        const std::vector<int>& forwarded = settings_.agent.forward_signals;
        if (std::find(forwarded.begin(), forwarded.end(), signal->signal) == forwarded.end()) {
            put(TakeoverEvent(LeavingJob{}));
        }
    }
    put(event);
}

void Node::on(const OwnsEndpoint& /*event*/) {
    owner_ = true;
    takeover_.lead_as_owner(settings_.coordinator.terms.job_id, settings_.coordinator.term);
    coordinate(settings_.coordinator);
}

void Node::on(const PortOpened& event) {
    port_ = event;
    settings_.coordinator.self.port = event.port;
    takeover_.reached_at(event.port);
}

void Node::on(const PortArrived& event) {
    callers_[event.peer] = event.address;
}

void Node::on(const PortSaid& event) {
    if (callers_.count(event.peer) == 0) {
        return;  // it has been dropped since
    }
    const bool about_office = std::holds_alternative<wire::Seek>(event.message) ||
                              std::holds_alternative<wire::VoteRequest>(event.message) ||
                              std::holds_alternative<wire::Redirect>(event.message);
    if (about_office || !coordinator_) {
        put(TakeoverEvent(CallerSaid{event.peer, event.message}));
        return;
    }
    if (peers_.insert(event.peer).second) {
        put(CoordinatorEvent(PeerArrived{event.peer, callers_[event.peer]}));
    }
    put(CoordinatorEvent(PeerSaid{event.peer, event.message}));
}

void Node::on(const PortGone& event) {
    callers_.erase(event.peer);
    put(TakeoverEvent(CallerGone{event.peer}));
    if (peers_.erase(event.peer) > 0) {
        put(CoordinatorEvent(PeerGone{event.peer, event.why}));
    }
}

void Node::on(const LinkUp& event) {
    if (!coordinator_) {
        linked_ = true;
        put(AgentEvent(SessionUp{event.own_address, false}));
    }
}

void Node::on(const LinkSaid& event) {
    if (linked_) {
        from_coordinator(event.message);
    }
}

void Node::on(const LinkDown& event) {
    lose_link(event.why, true);
}

void Node::lose_link(const std::string& why, bool ended) {
    if (!std::exchange(linked_, false)) {
        return;
    }
    put(AgentEvent(SessionDown{why}));
    put(TakeoverEvent(LeaderLost{ended}));
    dial(std::nullopt);
    if (ended && settings_.coordinator.authority_outside) {
        effects_.emplace_back(CoordinatorEnded{members_});
    }
}

void Node::from_coordinator(const wire::Message& message) {
    if (const auto* welcome = std::get_if<wire::Welcome>(&message)) {
        resume_at_.reset();
        followed_ = followed_ || !coordinator_;
        put(TakeoverEvent(LeaderWelcomed{welcome->job_id, welcome->term, welcome->coordinator}));
    } else if (std::holds_alternative<wire::Redirect>(message)) {
        put(TakeoverEvent(CallSaid{"", message}));
        return;
    } else if (const auto* retire = std::get_if<wire::Retire>(&message)) {
        linked_ = false;
        dial(std::nullopt);
        put(AgentEvent(SessionDown{retire->why}));
        put(TakeoverEvent(LeaderSaid{message}));
        return;
    } else if (std::holds_alternative<wire::Propose>(message)) {
        put(TakeoverEvent(LeaderSaid{message}));
        return;
    } else if (const auto* assignment = std::get_if<wire::Assignment>(&message)) {
        members_ = assignment->group_world_size;
        put(TakeoverEvent(LeaderSaid{message}));
    } else if (std::holds_alternative<wire::Lease>(message)) {
        put(TakeoverEvent(LeaderSaid{message}));
    }
    put(AgentEvent(FromCoordinator{message}));
}

void Node::on(const CallUp& event) {
    put(TakeoverEvent(event));
}

void Node::on(const CallSaid& event) {
    put(TakeoverEvent(event));
}

void Node::on(const CallDown& event) {
    put(TakeoverEvent(event));
}

void Node::on(const OutsideElected& event) {
    CoordinatorSettings settings = settings_.coordinator;
    settings.term = event.term;
    settings.authority_until = event.until;
    if (event.last) {
        settings.last.push_back({event.last->generation, {}, static_cast<int>(event.last->places.size())});
    }
    effects_.emplace_back(StopDialling{});
    coordinate(std::move(settings));
}

void Node::on(const OutsideFollow& event) {
    stop_coordinating("node " + event.leader.name + " coordinates now");
    lose_link("node " + event.leader.name + " coordinates now", false);
    dial(event.leader);
}

void Node::on(const OutsideUntil& event) {
    put(CoordinatorEvent(AuthorityUntil{event.until}));
}

void Node::on(const OutsideLost& event) {
    stop_coordinating(event.why);
}

void Node::on(const RoundAgreed& event) {
    put(CoordinatorEvent(event));
}

void Node::on(const NodeTime& /*event*/) {
    const auto due = [this](const auto& part) {
        const std::optional<Instant> deadline = part.next_deadline();
        return deadline && *deadline <= now_;
    };
    if (due(agent_)) {
        put(AgentEvent(AgentTime{}));
    }
    if (coordinator_ && due(*coordinator_)) {
        put(CoordinatorEvent(TimePassed{}));
    }
    if (due(takeover_)) {
        put(TakeoverEvent(TakeoverTime{}));
    }
    if (resume_at_ && *resume_at_ <= now_ && !coordinator_) {
        resume_at_.reset();
        effects_.emplace_back(StopDialling{});
        CoordinatorSettings settings = settings_.coordinator;
        if (settings.terms.takeover) {
            settings.term = takeover_.term_to_resume();
        }
        settings.job_runs_elsewhere = followed_;
        takeover_.lead_as_owner(settings.terms.job_id, settings.term);
        coordinate(std::move(settings));
    }
}

// ---- the office -------------------------------------------------------------------------------------------------

void Node::coordinate(CoordinatorSettings settings) {
    if (std::exchange(linked_, false)) {
        put(AgentEvent(SessionDown{"this node coordinates now"}));
    }
    resume_at_.reset();
    greeted_ = false;
    leads_ = {settings.term, false};
    coordinator_.emplace(std::move(settings), now_);
    put(CoordinatorEvent(PeerArrived{PeerId::kLocal, ""}));
    put(AgentEvent(SessionUp{"", true}));
}

void Node::stop_coordinating(const std::string& why) {
    if (!coordinator_) {
        return;
    }
    coordinator_.reset();
    for (const PeerId peer : std::exchange(peers_, {})) {
        callers_.erase(peer);
        effects_.emplace_back(DropAtPort{peer});
    }
    dial(std::nullopt);
    put(AgentEvent(SessionDown{why}));
}

void Node::perform(const Lead& effect) {
    CoordinatorSettings settings = settings_.coordinator;
    settings.term = effect.term;
    settings.last = effect.last;
    settings.handed_over = effect.handed_over;
    if (!effect.own_address.empty()) {
        settings.self.address = effect.own_address;
        settings.endpoint_host = effect.own_address;
    }
    effects_.emplace_back(StopDialling{});
    coordinate(std::move(settings));
}

void Node::perform(const Follow& effect) {
    if (std::exchange(linked_, false)) {
        put(AgentEvent(SessionDown{"node " + effect.leader.name + " coordinates now"}));
    }
    dial(effect.leader);
}

void Node::perform(const LookElsewhere& /*effect*/) {
    if (!linked_ && !coordinator_) {
        dial(std::nullopt);
    }
}

void Node::perform(const StepDown& effect) {
    if (effect.redirect) {
        for (const PeerId peer : peers_) {
            effects_.emplace_back(ToPort{peer, *effect.redirect});
        }
    }
    stop_coordinating("another node coordinates now");
}

void Node::perform(const TermLost& effect) {
    if (settings_.coordinator.authority_outside) {
        stop_coordinating("another node coordinates now");
        effects_.emplace_back(Resign{});
    } else {
        put(TakeoverEvent(Deposed{effect.promised}));
    }
}

void Node::perform(const Abandon& effect) {
    if (std::exchange(linked_, false)) {
        put(AgentEvent(SessionDown{effect.why}));
        dial(std::nullopt);
    }
}

void Node::perform(const HandedOver& /*effect*/) {
    coordinator_.reset();
    peers_.clear();
    if (settings_.coordinator.authority_outside) {
        effects_.emplace_back(Resign{});
    }
    effects_.emplace_back(MayLeave{});
}

// ---- between the parts ------------------------------------------------------------------------------------------

void Node::perform(const ToCoordinator& effect) {
    wire::Message message = effect.message;
    if (auto* hello = std::get_if<wire::Hello>(&message)) {
        takeover_.describe(*hello);
        hello->node.hub_port = port_.port;
        hello->node.candidate = port_.candidate;
        greeted_ = coordinator_.has_value();
    }
    if (coordinator_ && !greeted_) {
        return;  // meant for the coordinator before
    }
    if (coordinator_) {
        put(CoordinatorEvent(PeerSaid{PeerId::kLocal, std::move(message)}));
    } else if (linked_) {
        effects_.emplace_back(ToLink{std::move(message)});
    }
}

void Node::perform(const DropSession& /*effect*/) {
    if (std::exchange(linked_, false)) {
        put(TakeoverEvent(LeaderLost{false}));
        dial(std::nullopt);
    }
}

void Node::perform(const Finish& effect) {
    put(CoordinatorEvent(PeerGone{PeerId::kLocal, "its agent has finished"}));
    effects_.emplace_back(effect);
}

void Node::perform(const SendTo& effect) {
    if (effect.peer == PeerId::kLocal) {
        from_coordinator(effect.message);
    } else {
        effects_.emplace_back(ToPort{effect.peer, effect.message});
    }
}

void Node::perform(const DropPeer& effect) {
    if (effect.peer != PeerId::kLocal) {
        peers_.erase(effect.peer);
        callers_.erase(effect.peer);
        effects_.emplace_back(DropAtPort{effect.peer});
    }
}

void Node::perform(const CoordinationEnded& /*effect*/) {
    effects_.emplace_back(MayLeave{});
}

void Node::perform(const Reply& effect) {
    if (callers_.count(effect.caller) > 0) {
        effects_.emplace_back(ToPort{effect.caller, effect.message});
    }
}

void Node::perform(const ToLeader& effect) {
    if (linked_) {
        effects_.emplace_back(ToLink{effect.message});
    }
}

template <class Outward>
void Node::perform(const Outward& effect) {
    effects_.emplace_back(effect);
}

}  // namespace ddl::core
