// An agent's own candidacy: campaigning, counting votes, leading.

#include <algorithm>
#include <utility>

#include "core/takeover.hpp"

namespace ddl::core {
namespace {

// From one voter's campaign to the next one's: longer than an election takes.
constexpr auto kCampaignStep = std::chrono::milliseconds(150);
constexpr auto kCampaignAgain = std::chrono::milliseconds(300);
constexpr auto kHeadStart = std::chrono::seconds(1);
constexpr auto kBeacon = std::chrono::seconds(1);

}  // namespace

void Takeover::plan_campaign(Instant earliest) {
    campaign_at_.reset();
    if (settings_.terms.takeover && may_campaign()) {
        campaign_at_ = earliest + place_among_voters() * kCampaignStep;
    }
}

void Takeover::campaign() {
    // Elected coordinators have even terms; the odd ones are for an owner of the endpoint that comes back.
    candidacy_ = (std::max({promised_, seen_, term_, latest().term}) / 2 + 1) * 2;
    trial_ = true;
    appointed_ = false;
    votes_ = {settings_.self.incarnation};
    campaign_at_ = now_ + kCampaignAgain + place_among_voters() * kCampaignStep;
    for (const std::string& voter : up_) {
        request_votes(voter);
    }
}

void Takeover::request_votes(const std::string& voter) {
    effects_.emplace_back(
        SayTo{voter, wire::VoteRequest{settings_.terms.job_id, candidacy_, trial_, latest(), own_contact()}});
}

void Takeover::on(const CallUp& event) {
    up_.insert(event.incarnation);
    if (state_ == State::kLeading) {
        effects_.emplace_back(SayTo{event.incarnation, redirect()});
        beacon_at_ = now_ + kBeacon;
        return;
    }
    effects_.emplace_back(SayTo{event.incarnation, wire::Seek{settings_.terms.job_id, settings_.self.incarnation}});
    if (candidacy_ != 0) {
        request_votes(event.incarnation);
    }
}

void Takeover::on(const CallDown& event) {
    up_.erase(event.incarnation);
}

void Takeover::on(const CallSaid& event) {
    if (const auto* vote = std::get_if<wire::Vote>(&event.message)) {
        counted(event.incarnation, *vote);
    } else if (const auto* redirect = std::get_if<wire::Redirect>(&event.message)) {
        redirected(*redirect);
    }
}

void Takeover::counted(const std::string& voter, const wire::Vote& vote) {
    seen_ = std::max(seen_, vote.promised);
    const bool wanted = state_ == State::kSearching && vote.term == candidacy_ && vote.trial == trial_;
    if (!wanted || !vote.granted) {
        return;
    }
    votes_.insert(voter);
    if (!elected()) {
        return;
    }
    if (!trial_) {
        lead();
        return;
    }
    trial_ = false;
    promised_ = candidacy_;
    voted_for_ = settings_.self.incarnation;
    votes_ = {settings_.self.incarnation};
    for (const std::string& other : up_) {
        request_votes(other);
    }
}

void Takeover::lead() {
    state_ = State::kLeading;
    opened_ = false;
    term_ = candidacy_;
    leader_ = own_contact();
    campaign_at_.reset();
    follow_until_.reset();
    beacon_at_ = now_ + kBeacon;
    candidacy_ = 0;
    say(Severity::kWarning, "this node coordinates from now on (term " + std::to_string(term_) + ")");
    std::vector<wire::RoundConfig> last = {config_};
    if (pending_) {
        last.push_back(*pending_);
    }
    effects_.emplace_back(Lead{term_, std::move(last), std::exchange(appointed_, false), leader_->address});
    tell_leader_to_all();
    for (const wire::Contact& endpoint : settings_.endpoints) {
        effects_.emplace_back(Call{endpoint});
    }
}

// Until its first round is open the voters are called, since one of them may lead in a later term; from then on the
// former coordinator alone, who may not know.
void Takeover::hang_up_on_voters() {
    const std::string former = config_.voters.front().incarnation;
    for (const std::string& voter : std::exchange(calls_, {former})) {
        if (voter != former) {
            effects_.emplace_back(HangUp{voter});
            up_.erase(voter);
        }
    }
}

void Takeover::lead_as_owner(const std::string& job_id, std::uint32_t term) {
    term_ = term;
    state_ = State::kLeading;
    opened_ = false;
    settings_.terms.job_id = job_id;
    leader_ = settings_.self;
}

std::uint32_t Takeover::term_to_resume() const {
    return (std::max({promised_, seen_, term_, latest().term}) + 1) | 1U;
}

void Takeover::on(const Deposed& event) {
    if (state_ != State::kLeading) {
        return;
    }
    seen_ = std::max(seen_, event.promised);
    effects_.emplace_back(StepDown{std::nullopt});
    effects_.emplace_back(HangUp{});
    calls_.clear();
    up_.clear();
    search(kHeadStart);
}

bool Takeover::may_campaign() const {
    if (leaving_) {
        return false;
    }
    const std::vector<wire::Contact> all = voters();
    return std::any_of(all.begin(), all.end(),
                       [&](const wire::Contact& voter) { return voter.incarnation == settings_.self.incarnation; });
}

int Takeover::place_among_voters() const {
    const std::vector<wire::Contact> all = voters();
    const auto found = std::find_if(all.begin(), all.end(), [&](const wire::Contact& voter) {
        return voter.incarnation == settings_.self.incarnation;
    });
    const auto index = found - all.begin();
    return static_cast<int>(index == 0 ? static_cast<std::ptrdiff_t>(all.size()) : index - 1);
}

bool Takeover::elected() const {
    const auto by = [this](const wire::RoundConfig& round) {
        const auto votes = std::count_if(round.voters.begin(), round.voters.end(), [&](const wire::Contact& voter) {
            return votes_.count(voter.incarnation) > 0;
        });
        return 2 * votes > static_cast<std::ptrdiff_t>(round.voters.size());
    };
    return by(config_) && (!pending_ || by(*pending_));
}

}  // namespace ddl::core
