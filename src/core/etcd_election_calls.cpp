#include <algorithm>
#include <chrono>
#include <utility>

#include "core/etcd_election.hpp"
#include "wire/etcd_records.hpp"

namespace ddl::core {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(50);
constexpr Duration kLongestPause = std::chrono::seconds(1);
constexpr Duration kComplainAfter = std::chrono::seconds(3);
// A lease must survive the loss of a few calls, yet etcd may need a moment to choose a new leader of its own.
constexpr Duration kShortestCall = std::chrono::milliseconds(400);
constexpr Duration kLongestCall = std::chrono::seconds(2);
// The last round is forgotten when nobody has led for this long: a job of the same name is a new one then.
constexpr std::int64_t kRoundSeconds = 60;

wire::StoredRound stored(const RoundRecord& record) {
    wire::StoredRound round{record.generation, record.restart_count, {}};
    for (const FormerPlace& place : record.places) {
        round.places.push_back({place.name, place.workers});
    }
    return round;
}

}  // namespace

// ---- what should be under way -----------------------------------------------------------------------------------

void EtcdElection::pump() {
    if (role_ == Role::kOff || (retry_at_ && *retry_at_ > now_)) {
        return;
    }
    retry_at_.reset();
    if (hold_until_ && *hold_until_ <= now_) {
        hold_until_.reset();
    }
    if (!signed_in()) {
        if (!slot(Kind::kSignIn)) {
            send(Kind::kSignIn, wire::kEtcdAuthenticate,
                 wire::encode(wire::EtcdUser{settings_.user, settings_.password}));
        }
        return;
    }
    if (!to_revoke_.empty() && !slot(Kind::kRevoke)) {
        send(Kind::kRevoke, wire::kEtcdRevoke, wire::encode(wire::EtcdLeaseId{to_revoke_.front()}));
    }
    if (role_ == Role::kLeft) {
        return;
    }
    if (!lease_) {
        if (!slot(Kind::kGrant)) {
            send(Kind::kGrant, wire::kEtcdGrant, wire::encode(wire::EtcdGrant{lease_seconds()}));
        }
        return;
    }
    if (lease_->keep_at <= now_ && !slot(Kind::kKeep)) {
        send(Kind::kKeep, wire::kEtcdKeepAlive, wire::encode(wire::EtcdLeaseId{lease_->id}));
    }
    if (!looked_ && role_ == Role::kLeading && !slot(Kind::kRead)) {
        send(Kind::kRead, wire::kEtcdRange, wire::encode(wire::EtcdRange{key("leader")}));
    } else if (!looked_ && role_ != Role::kLeading) {
        campaign();
    }
    if (looked_ && !slot(Kind::kWatch)) {
        send(Kind::kWatch, wire::kEtcdWatch, wire::encode(wire::EtcdWatch{key("leader"), revision_ + 1}));
    }
    pump_vote();
    pump_lead();
}

void EtcdElection::campaign() {
    if (slot(Kind::kCampaign) || hold_until_) {
        return;
    }
    const std::string leader =
        wire::encode(wire::LeaderRecord{settings_.node, settings_.incarnation, address_, start_.port, lease_->id});
    send(Kind::kCampaign, wire::kEtcdTxn,
         wire::encode(wire::EtcdTxn{key("leader"),
                                    0,
                                    {wire::EtcdPut{key("leader"), leader, lease_->id}, wire::EtcdRange{key("round")}},
                                    {wire::EtcdRange{key("leader")}, wire::EtcdRange{key("round")}}}));
}

void EtcdElection::pump_vote() {
    const bool wanted = members_ > 0;
    if (role_ != Role::kFollowing || wanted == voted_ || slot(Kind::kVote)) {
        return;
    }
    const std::string votes = key("ended/" + std::to_string(leader_revision_) + "/");
    const std::string own = votes + settings_.incarnation;
    std::vector<wire::EtcdOperation> then;
    if (wanted) {
        then = {wire::EtcdPut{own, "", lease_->id}, wire::EtcdRange{votes, true, true}};
    } else {
        then = {wire::EtcdDelete{own}};
    }
    send(Kind::kVote, wire::kEtcdTxn,
         wire::encode(wire::EtcdTxn{key("leader"), leader_revision_, std::move(then), {}}));
    slot(Kind::kVote)->vote = wanted;
}

void EtcdElection::pump_lead() {
    if (role_ != Role::kLeading) {
        return;
    }
    if (record_ && !record_written_ && !round_lease_ && !slot(Kind::kGrantRound)) {
        const std::int64_t seconds = std::max(kRoundSeconds, 10 * lease_seconds());
        send(Kind::kGrantRound, wire::kEtcdGrant, wire::encode(wire::EtcdGrant{seconds}));
    }
    if (record_ && !record_written_ && round_lease_ && !slot(Kind::kCommit)) {
        commit();
    }
    if (round_lease_ && round_lease_->keep_at <= now_ && !slot(Kind::kKeepRound)) {
        send(Kind::kKeepRound, wire::kEtcdKeepAlive, wire::encode(wire::EtcdLeaseId{round_lease_->id}));
    }
}

void EtcdElection::commit() {
    send(Kind::kCommit, wire::kEtcdTxn,
         wire::encode(wire::EtcdTxn{key("leader"),
                                    leader_revision_,
                                    {wire::EtcdPut{key("round"), wire::encode(stored(*record_)), round_lease_->id}},
                                    {}}));
    slot(Kind::kCommit)->generation = record_->generation;
}

void EtcdElection::revoke(std::int64_t lease) {
    if (lease != 0 && std::find(to_revoke_.begin(), to_revoke_.end(), lease) == to_revoke_.end()) {
        to_revoke_.push_back(lease);
    }
}

void EtcdElection::send(Kind kind, const char* path, std::string body) {
    const auto id = static_cast<CallId>(++calls_);
    slot(kind) = Pending{id, now_, false, {}};
    const Duration limit = std::clamp(lease_length_ / 5, kShortestCall, kLongestCall);
    effects_.emplace_back(
        HttpCall{id, path, std::move(body), kind == Kind::kSignIn ? "" : token_, kind == Kind::kWatch, limit});
}

void EtcdElection::cancel(Kind kind) {
    if (const auto call = std::exchange(slot(kind), std::nullopt)) {
        effects_.emplace_back(CancelCall{call->id});
    }
}

std::optional<EtcdElection::Kind> EtcdElection::kind_of(CallId id) const {
    for (std::size_t kind = 0; kind < pending_.size(); ++kind) {
        if (pending_[kind] && pending_[kind]->id == id) {
            return static_cast<Kind>(kind);
        }
    }
    return std::nullopt;
}

// ---- trouble ----------------------------------------------------------------------------------------------------

void EtcdElection::failed(Kind kind, const std::string& why) {
    trouble_text_ = why;
    if (!trouble_) {
        failures_ = 0;
        complain_at_ = now_ + kComplainAfter;
    }
    trouble_ = kind;
    trouble_at_ = now_;
    retry_at_ = now_ + std::min(kFirstPause * (1 << std::min(failures_, 5)), kLongestPause);
    ++failures_;
    stop_watching();  // the transport goes on to the next member: the watch must, too, or it may be deaf
    if (role_ == Role::kLeft && kind == Kind::kRevoke && failures_ > 3) {
        to_revoke_.clear();  // it ends by itself
        retry_at_.reset();
    }
}

void EtcdElection::succeeded(Kind kind) {
    token_good_ = token_good_ || kind != Kind::kSignIn;
    // What failed may never be tried again; what is tried fails again within this time.
    if (!trouble_ || (trouble_ != kind && now_ - trouble_at_ < kLongestCall + 2 * kLongestPause)) {
        return;
    }
    trouble_.reset();
    complain_at_.reset();
    if (std::exchange(complained_, false)) {
        say(Severity::kInfo, "etcd at " + settings_.etcd_text + " answers again");
    }
}

void EtcdElection::stop_watching() {
    cancel(Kind::kWatch);
    looked_ = false;
}

bool EtcdElection::signed_in() const {
    return settings_.user.empty() || !token_.empty() || no_signing_in_;
}

void EtcdElection::say(Severity severity, std::string text) {
    effects_.emplace_back(Say{severity, std::move(text)});
}

std::string EtcdElection::key(const std::string& name) const {
    return "/ddlaunch/" + settings_.job_id + "/" + name;
}

std::int64_t EtcdElection::lease_seconds() const {
    return std::max<std::int64_t>(2, std::chrono::ceil<std::chrono::seconds>(settings_.lease_timeout).count());
}

}  // namespace ddl::core
