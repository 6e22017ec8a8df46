// Where the coordinator is: what this agent tells others, and whom of two it believes.

#include <algorithm>
#include <utility>

#include "core/takeover.hpp"

namespace ddl::core {
namespace {

constexpr auto kEndNoticed = std::chrono::seconds(1);  // by everybody else, after the end of the leader's process
constexpr auto kFollowLimit = std::chrono::seconds(2);

}  // namespace

bool Takeover::same_job(const wire::JobTerms& theirs) const {
    const wire::JobTerms& ours = settings_.terms;
    const bool same_id = theirs.job_id == ours.job_id || (!theirs.job_id_typed && !ours.job_id_typed);
    return same_id && theirs.min_nodes == ours.min_nodes && theirs.max_nodes == ours.max_nodes &&
           theirs.command_digest == ours.command_digest;
}

void Takeover::redirected(const wire::Redirect& redirect) {
    const wire::Contact& leader = redirect.leader;
    const wire::Contact self = own_contact();
    const bool own =
        leader.incarnation == self.incarnation || (leader.address == self.address && leader.port == self.port);
    // Others notice the end of that leader a moment later.
    const bool ended = ended_ && ended_->address == leader.address && ended_->port == leader.port &&
                       redirect.term <= term_ && now_ < ended_at_ + kEndNoticed;
    if (own || ended || !same_job(redirect.terms)) {
        return;
    }
    seen_ = std::max(seen_, redirect.term);
    switch (state_) {
        case State::kLeading:
            if (yields_to(redirect)) {
                effects_.emplace_back(StepDown{redirect});
                effects_.emplace_back(HangUp{});
                calls_.clear();
                up_.clear();
                follow(redirect);
            }
            break;
        case State::kFollowing:
            if (redirect.term > term_) {
                follow(redirect);
            }
            break;
        case State::kSearching:
            if (!leader_ || redirect.term > term_) {
                follow(redirect);
            }
            break;
    }
}

// Of two that lead the later goes on. But an owner of the endpoint that has come back was not elected, whatever its
// term: as long as it has opened no round, it gives way to whoever has, and nobody who has gives way to it.
bool Takeover::yields_to(const wire::Redirect& redirect) const {
    const auto elected = [](std::uint32_t term) {
        return term % 2 == 0 && term > 0;
    };
    if (redirect.term > term_) {
        return redirect.opened || !opened_ || elected(redirect.term);
    }
    return redirect.opened && !opened_ && !elected(term_);
}

void Takeover::on(const LeavingJob& /*event*/) {
    leaving_ = true;
    candidacy_ = 0;
    campaign_at_.reset();
}

void Takeover::on(const LeadsIn& event) {
    if (state_ != State::kLeading) {
        return;
    }
    term_ = event.term;
    const bool first_round = event.opened && !opened_;
    opened_ = event.opened;
    for (const std::string& voter : up_) {
        effects_.emplace_back(SayTo{voter, redirect()});
    }
    if (first_round && !calls_.empty()) {
        hang_up_on_voters();
    }
}

void Takeover::follow(const wire::Redirect& redirect) {
    state_ = State::kSearching;
    term_ = std::max(term_, redirect.term);
    leader_ = redirect.leader;
    candidacy_ = 0;
    follow_until_ = now_ + kFollowLimit;
    plan_campaign(*follow_until_);
    say(Severity::kInfo, "node " + redirect.leader.name + " (" + redirect.leader.address + ") coordinates now");
    effects_.emplace_back(Follow{redirect.term, redirect.leader});
}

void Takeover::tell_leader_to_all() {
    if (!leader_) {
        return;
    }
    for (const std::string& voter : up_) {
        effects_.emplace_back(SayTo{voter, redirect()});
    }
    for (const auto& [caller, request] : std::exchange(waiting_, {})) {
        seekers_.insert(caller);
    }
    for (const PeerId caller : std::exchange(seekers_, {})) {
        effects_.emplace_back(Reply{caller, redirect()});
    }
}

wire::Redirect Takeover::redirect() const {
    return {settings_.terms, term_, state_ == State::kLeading ? opened_ : config_.generation.term == term_, *leader_};
}

}  // namespace ddl::core
