#include "core/etcd_election.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "wire/etcd_records.hpp"

namespace ddl::core {
namespace {

// Whoever was asked to stand down without leaving lets others come first.
constexpr Duration kHold = std::chrono::milliseconds(500);

RoundRecord record_of(const wire::StoredRound& stored) {
    RoundRecord record{stored.generation, stored.restart_count, {}};
    for (const wire::StoredPlace& place : stored.places) {
        record.places.push_back({place.name, place.workers});
    }
    return record;
}

}  // namespace

EtcdElection::EtcdElection(ElectionSettings settings)
    : settings_(std::move(settings)), lease_length_(settings_.lease_timeout) {
}

std::vector<ElectionEffect> EtcdElection::step(const ElectionEvent& event, Instant now) {
    now_ = now;
    check_lease();
    std::visit([this](const auto& e) { on(e); }, event);
    pump();
    return std::exchange(effects_, {});
}

std::optional<Instant> EtcdElection::next_deadline() const {
    std::optional<Instant> first;
    const auto at = [&first](const std::optional<Instant>& when) {
        if (when && (!first || *when < *first)) {
            first = when;
        }
    };
    at(retry_at_);
    if (role_ == Role::kOff || role_ == Role::kLeft) {
        return first;
    }
    at(complain_at_);
    if (lease_) {
        at(lease_->until);
    }
    at(hold_until_);
    if (!retry_at_ && signed_in()) {
        if (lease_ && !slot(Kind::kKeep)) {
            at(lease_->keep_at);
        }
        if (round_lease_ && !slot(Kind::kKeepRound)) {
            at(round_lease_->keep_at);
        }
    }
    return first;
}

std::optional<Instant> EtcdElection::lead_until() const {
    return role_ == Role::kLeading && lease_ ? std::optional(lease_->until) : std::nullopt;
}

bool EtcdElection::idle() const {
    return role_ == Role::kOff || (role_ == Role::kLeft && to_revoke_.empty());
}

// ---- events -----------------------------------------------------------------------------------------------------

void EtcdElection::on(const ElectionStart& event) {
    if (role_ == Role::kOff) {
        start_ = event;
        role_ = Role::kSeeking;
    }
}

void EtcdElection::on(const HttpReply& event) {
    const std::optional<Kind> kind = kind_of(event.id);
    if (!kind) {
        return;  // cancelled in the meantime
    }
    const Pending call = *std::exchange(slot(*kind), std::nullopt);
    if (event.status != 200) {
        refused(*kind, event);
        return;
    }
    const Result<void> understood = replied(*kind, call, event);
    if (!understood) {
        failed(*kind, understood.error().message);
    } else {
        succeeded(*kind);
    }
}

void EtcdElection::on(const HttpFailed& event) {
    if (const std::optional<Kind> kind = kind_of(event.id)) {
        slot(*kind).reset();
        failed(*kind, event.why);
    }
}

void EtcdElection::on(const StreamLine& event) {
    if (kind_of(event.id) != Kind::kWatch) {
        return;
    }
    const Result<wire::EtcdWatchLine> line = wire::decode_etcd_watch(event.line);
    if (!line || line->cancelled) {
        const std::string why = line ? line->why : line.error().message;
        if (why.find("auth") != std::string::npos) {
            token_.clear();
        }
        failed(Kind::kWatch, "it ended the watch: " + why);
        return;
    }
    succeeded(Kind::kWatch);
    for (const wire::EtcdChange& change : line->changes) {
        key_changed(change);
    }
}

void EtcdElection::on(const LeaderReached& /*event*/) {
    members_ = 0;
}

void EtcdElection::on(const LeaderGone& event) {
    if (role_ == Role::kFollowing) {
        members_ = event.members;
    }
}

void EtcdElection::on(const CommitRound& event) {
    if (role_ != Role::kLeading) {
        effects_.emplace_back(RoundWritten{event.record.generation, false});
        return;
    }
    if (answer_due_ && record_->generation != event.record.generation) {
        effects_.emplace_back(RoundWritten{record_->generation, false});
    }
    record_ = event.record;
    record_written_ = false;
    answer_due_ = true;
}

void EtcdElection::on(const StandDown& event) {
    if (role_ == Role::kLeft) {
        return;
    }
    if (event.job_over && round_lease_) {
        to_revoke_.push_back(round_lease_->id);
    }
    if (role_ == Role::kLeading || event.leaving) {
        if (lease_) {
            to_revoke_.push_back(lease_->id);
            lease_.reset();
        }
        refuse_commit();
        round_lease_.reset();
        for (std::size_t kind = 0; kind < pending_.size(); ++kind) {
            if (static_cast<Kind>(kind) != Kind::kRevoke) {
                cancel(static_cast<Kind>(kind));
            }
        }
        looked_ = false;
        role_ = role_ == Role::kOff ? Role::kOff : Role::kSeeking;
        hold_until_ = now_ + kHold;
    }
    if (event.leaving) {
        role_ = Role::kLeft;
    }
}

void EtcdElection::on(const ElectionTime& /*event*/) {
    if (complain_at_ && *complain_at_ <= now_ && role_ != Role::kOff && role_ != Role::kLeft) {
        complain_at_ = now_ + std::chrono::minutes(1);
        complained_ = true;
        say(Severity::kWarning, "etcd at " + settings_.etcd_text + ": " + trouble_text_ + "; trying again and again");
    }
}

// ---- roles ------------------------------------------------------------------------------------------------------

void EtcdElection::check_lease() {
    if (lease_ && lease_->until <= now_) {
        lease_over(trouble_ ? "its lease in etcd could not be renewed in time: " + trouble_text_
                            : "its lease in etcd is over: it was not renewed in time");
    }
}

Result<void> EtcdElection::win(std::int64_t revision, const wire::EtcdFound& round) {
    if (revision > std::numeric_limits<std::uint32_t>::max()) {
        lease_over("");
        return fail("its revision " + std::to_string(revision) +
                    " is too large for the number of a term; use an etcd with a fresh data directory");
    }
    role_ = Role::kLeading;
    leader_revision_ = revision;
    members_ = 0;
    voted_ = false;
    record_.reset();
    round_lease_.reset();
    if (!round.pairs.empty()) {
        const Result<wire::StoredRound> stored = wire::decode_round(round.pairs.front().value);
        if (stored) {
            record_ = record_of(*stored);
            round_lease_ = Lease{round.pairs.front().lease, {}, now_};
        } else {
            say(Severity::kWarning, "etcd has an unreadable record of this job's last round; going on without it");
        }
    }
    record_written_ = true;
    effects_.emplace_back(WonElection{static_cast<std::uint32_t>(revision), address_, record_, lease_->until});
    return {};
}

void EtcdElection::follow(const wire::EtcdKeyValue& leader) {
    const bool known = role_ == Role::kFollowing && leader_revision_ == leader.create_revision;
    role_ = Role::kFollowing;
    if (known) {
        return;
    }
    leader_revision_ = leader.create_revision;
    leader_lease_ = leader.lease;
    members_ = 0;
    voted_ = false;
    const Result<wire::LeaderRecord> record = wire::decode_leader(leader.value);
    if (!record) {
        say(Severity::kWarning, "etcd has an unreadable record of this job's coordinator; waiting until it is gone");
    } else if (record->incarnation == settings_.incarnation) {
        revoke(leader.lease);  // of an earlier lease of this agent, which it gave up
    } else {
        effects_.emplace_back(FollowLeader{static_cast<std::uint32_t>(leader.create_revision),
                                           {record->node, record->incarnation, record->address, record->port}});
    }
}

void EtcdElection::key_changed(const wire::EtcdChange& change) {
    if (change.pair.mod_revision <= revision_) {
        return;  // older than what is known
    }
    revision_ = change.pair.mod_revision;
    const bool own = !change.deleted && lease_ && change.pair.lease == lease_->id;
    if (role_ == Role::kLeading && !own) {
        lease_over(change.deleted ? "its key in etcd was deleted" : "its key in etcd was overwritten");
    } else if (change.deleted) {
        role_ = Role::kSeeking;
        looked_ = false;
    } else if (own && role_ != Role::kLeading) {
        looked_ = false;  // the candidacy's own reply is still to come, or was lost
    } else if (role_ != Role::kLeading) {
        follow(change.pair);
    }
}

// Also of an agent that only follows: it may have been paused.
void EtcdElection::lease_over(const std::string& why) {
    revoke(lease_->id);
    lease_.reset();
    for (const Kind kind : {Kind::kKeep, Kind::kCampaign, Kind::kVote}) {
        cancel(kind);
    }
    voted_ = false;
    if (role_ == Role::kLeading) {
        lose(why);
    }
}

void EtcdElection::lose(const std::string& why) {
    role_ = Role::kSeeking;
    for (const Kind kind : {Kind::kRead, Kind::kGrantRound, Kind::kKeepRound, Kind::kCommit}) {
        cancel(kind);
    }
    round_lease_.reset();
    stop_watching();
    refuse_commit();
    effects_.emplace_back(LeadLost{why});
}

void EtcdElection::refuse_commit() {
    if (std::exchange(answer_due_, false)) {
        effects_.emplace_back(RoundWritten{record_->generation, false});
    }
    record_.reset();
    record_written_ = false;
}

}  // namespace ddl::core
