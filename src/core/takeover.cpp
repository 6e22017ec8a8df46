#include "core/takeover.hpp"

#include <algorithm>
#include <utility>

namespace ddl::core {
namespace {

constexpr auto kHeadStart = std::chrono::seconds(1);  // of a candidate that has a vote, of an appointed successor
constexpr auto kBeacon = std::chrono::seconds(1);

}  // namespace

Takeover::Takeover(TakeoverSettings settings, Instant now) : settings_(std::move(settings)), now_(now) {
}

std::vector<TakeoverEffect> Takeover::step(const TakeoverEvent& event, Instant now) {
    now_ = now;
    std::visit([this](const auto& e) { on(e); }, event);
    return std::exchange(effects_, {});
}

std::optional<Instant> Takeover::next_deadline() const {
    std::optional<Instant> next = campaign_at_;
    const auto consider = [&next](std::optional<Instant> deadline) {
        if (deadline && (!next || *deadline < *next)) {
            next = deadline;
        }
    };
    consider(follow_until_);
    consider(state_ == State::kLeading ? beacon_at_ : std::nullopt);
    consider(waiting_.empty() ? std::nullopt : std::optional(promise_until_));
    return next;
}

// ---- the leader -------------------------------------------------------------------------------------------------

void Takeover::on(const LeaderWelcomed& event) {
    if (state_ == State::kLeading) {
        return;
    }
    state_ = State::kFollowing;
    term_ = event.term;
    settings_.terms.job_id = event.job_id;
    leader_has_quorum_ = true;
    campaign_at_.reset();
    follow_until_.reset();
    candidacy_ = 0;
    leader_ = event.leader;
    tell_leader_to_all();
    effects_.emplace_back(HangUp{});
    calls_.clear();
    up_.clear();
}

void Takeover::on(const LeaderLost& event) {
    if (state_ != State::kFollowing) {
        return;
    }
    if (event.ended) {
        promise_until_ = now_;
        ended_ = leader_;
        ended_at_ = now_;
    }
    search(Duration::zero());
}

void Takeover::on(const LeaderSaid& event) {
    if (const auto* lease = std::get_if<wire::Lease>(&event.message)) {
        heard(*lease);
    } else if (const auto* propose = std::get_if<wire::Propose>(&event.message)) {
        heard(*propose);
    } else if (const auto* assignment = std::get_if<wire::Assignment>(&event.message)) {
        heard(*assignment);
    } else if (const auto* retire = std::get_if<wire::Retire>(&event.message)) {
        heard(*retire);
    }
}

void Takeover::heard(const wire::Lease& lease) {
    leader_has_quorum_ = lease.limit > Duration::zero();
    promise_until_ = now_ + settings_.terms.lease;
}

void Takeover::heard(const wire::Propose& propose) {
    const Generation generation = propose.config.generation;
    if (propose.agreed) {
        learn(propose.config);
        return;
    }
    const bool own_term = generation.term == latest().term;
    const bool fresh = generation > latest() && generation.term >= promised_;
    const bool knows_enough = own_term || propose.previous >= latest();
    const bool agreed = generation == latest() || (fresh && knows_enough);
    if (agreed && generation != latest()) {
        pending_ = propose.config;
        promised_ = generation.term;
    }
    if (agreed) {
        promise_until_ = now_ + settings_.terms.lease;
    }
    effects_.emplace_back(ToLeader{wire::Accepted{generation, agreed, promised_}});
}

void Takeover::heard(const wire::Assignment& assignment) {
    learn(assignment.config);
}

// That round is agreed on.
void Takeover::learn(const wire::RoundConfig& config) {
    if (config.generation <= config_.generation || config.generation.term < promised_) {
        return;
    }
    config_ = config;
    promised_ = config.generation.term;
    promise_until_ = now_ + settings_.terms.lease;
    if (pending_ && pending_->generation <= config_.generation) {
        pending_.reset();
    }
}

// The retiring coordinator's vote comes with its word, so that even of two voters one can go on.
void Takeover::heard(const wire::Retire& retire) {
    if (state_ != State::kFollowing) {
        return;
    }
    promise_until_ = now_;
    ended_ = leader_;
    ended_at_ = now_;
    const bool successor = retire.successor.incarnation == settings_.self.incarnation && retire.term > promised_;
    search(successor ? Duration::zero() : Duration(kHeadStart));
    if (!successor || !may_campaign()) {
        return;
    }
    candidacy_ = retire.term;
    appointed_ = true;
    trial_ = false;
    promised_ = retire.term;
    voted_for_ = settings_.self.incarnation;
    votes_ = {settings_.self.incarnation, config_.voters.front().incarnation};
    campaign_at_ = now_ + kHeadStart;
    if (elected()) {
        lead();
    }
}

void Takeover::search(Duration head_start) {
    state_ = State::kSearching;
    leader_.reset();
    follow_until_.reset();
    candidacy_ = 0;
    if (!settings_.terms.takeover) {
        return;
    }
    for (const wire::Contact& voter : voters()) {
        if (voter.incarnation != settings_.self.incarnation && calls_.insert(voter.incarnation).second) {
            effects_.emplace_back(Call{voter});
        }
    }
    plan_campaign(std::max(now_, promise_until_) + head_start);
    say_if_hopeless();
}

void Takeover::say_if_hopeless() {
    if (may_campaign() && config_.voters.size() == 2) {
        say(Severity::kWarning, "no takeover is possible: of the 2 nodes of round " +
                                    std::to_string(config_.generation.number()) +
                                    " only this one is left, which is no majority; waiting for " +
                                    config_.voters.front().name + " to come back");
    }
}

// ---- other agents, at this agent's port -------------------------------------------------------------------------

void Takeover::on(const CallerSaid& event) {
    if (const auto* request = std::get_if<wire::VoteRequest>(&event.message)) {
        asked(event.caller, *request);
    } else if (const auto* redirect = std::get_if<wire::Redirect>(&event.message)) {
        redirected(*redirect);
        if (state_ == State::kLeading) {
            effects_.emplace_back(Reply{event.caller, this->redirect()});
        }
    } else {
        sought(event.caller);
    }
}

void Takeover::on(const CallerGone& event) {
    seekers_.erase(event.caller);
    waiting_.erase(event.caller);
}

void Takeover::sought(PeerId caller) {
    if (leader_ && state_ != State::kSearching) {
        effects_.emplace_back(Reply{caller, redirect()});
    } else {
        seekers_.insert(caller);
    }
}

void Takeover::asked(PeerId caller, const wire::VoteRequest& request) {
    seen_ = std::max(seen_, request.term - 1);
    if (state_ == State::kFollowing && !leader_has_quorum_ && settings_.terms.takeover) {
        effects_.emplace_back(Abandon{"it has no quorum, and node " + request.candidate.name + " campaigns"});
        search(kHeadStart);  // the promise is kept until it ends
    }
    if (state_ != State::kSearching) {
        effects_.emplace_back(Reply{caller, wire::Vote{request.term, request.trial, false, promised_}});
        sought(caller);
    } else if (now_ < promise_until_) {
        waiting_[caller] = request;
    } else {
        give_vote(caller, request);
    }
}

wire::Vote Takeover::answer(const wire::VoteRequest& request) const {
    wire::Vote vote{request.term, request.trial, false, promised_};
    const bool again = request.term == promised_ && voted_for_ == request.candidate.incarnation;
    vote.granted = settings_.terms.takeover && request.job_id == settings_.terms.job_id &&
                   (request.term > promised_ || again) && request.last >= latest();
    return vote;
}

void Takeover::give_vote(PeerId caller, const wire::VoteRequest& request) {
    const wire::Vote vote = answer(request);
    if (vote.granted && !request.trial) {
        promised_ = request.term;
        voted_for_ = request.candidate.incarnation;
        candidacy_ = 0;
        plan_campaign(now_ + kHeadStart);
    } else if (!vote.granted && request.last < latest() && may_campaign() && candidacy_ == 0) {
        campaign_at_ = now_;  // this node knows of a later round: it is the better candidate
    }
    effects_.emplace_back(Reply{caller, vote});
    seekers_.insert(caller);
}

void Takeover::on(const TakeoverTime& /*event*/) {
    if (!waiting_.empty() && promise_until_ <= now_) {
        for (const auto& [caller, request] : std::exchange(waiting_, {})) {
            give_vote(caller, request);
        }
    }
    if (follow_until_ && *follow_until_ <= now_) {  // whoever pointed it out may have been wrong
        follow_until_.reset();
        leader_.reset();
        effects_.emplace_back(LookElsewhere{});
        for (const std::string& voter : up_) {
            effects_.emplace_back(SayTo{voter, wire::Seek{settings_.terms.job_id, settings_.self.incarnation}});
        }
    }
    if (state_ == State::kLeading && beacon_at_ && *beacon_at_ <= now_) {
        beacon_at_ = now_ + kBeacon;
        for (const std::string& other : up_) {
            effects_.emplace_back(SayTo{other, redirect()});
        }
    }
    if (campaign_at_ && *campaign_at_ <= now_) {
        campaign_at_.reset();
        if (state_ == State::kSearching && promise_until_ <= now_) {
            campaign();
        } else if (state_ == State::kSearching) {
            plan_campaign(promise_until_);
        }
    }
}

// ---- facts ------------------------------------------------------------------------------------------------------

void Takeover::describe(wire::Hello& hello) const {
    hello.config = config_;
    hello.pending = pending_;
    hello.promised = promised_;
}

Generation Takeover::latest() const {
    return pending_ ? pending_->generation : config_.generation;
}

std::vector<wire::Contact> Takeover::voters() const {
    std::vector<wire::Contact> all = config_.voters;
    for (const wire::Contact& voter : pending_ ? pending_->voters : std::vector<wire::Contact>()) {
        if (std::none_of(all.begin(), all.end(), [&](const auto& c) { return c.incarnation == voter.incarnation; })) {
            all.push_back(voter);
        }
    }
    return all;
}

wire::Contact Takeover::own_contact() const {
    for (const wire::Contact& voter : voters()) {
        if (voter.incarnation == settings_.self.incarnation) {
            return voter;
        }
    }
    return settings_.self;
}

void Takeover::say(Severity severity, std::string text) {
    effects_.emplace_back(Say{severity, std::move(text)});
}

}  // namespace ddl::core
