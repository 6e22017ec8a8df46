#include <algorithm>
#include <chrono>
#include <utility>

#include "core/etcd_election.hpp"

namespace ddl::core {
namespace {

constexpr std::int64_t kLongestLease = 86'400;

bool lease_is_gone(const HttpReply& reply) {
    return reply.status == 404 && wire::etcd_error(reply.status, reply.body).find("lease") != std::string::npos;
}

tl::unexpected<Error> short_reply() {
    return fail("its reply to a transaction has too few parts");
}

}  // namespace

Result<void> EtcdElection::replied(Kind kind, const Pending& call, const HttpReply& reply) {
    switch (kind) {
        case Kind::kSignIn:
            token_good_ = false;
            return wire::decode_etcd_token(reply.body).map([this](std::string token) { token_ = std::move(token); });
        case Kind::kGrant:
            return granted(call, reply);
        case Kind::kKeep:
            return kept(call, reply.body);
        case Kind::kCampaign:
            return campaigned(reply.body);
        case Kind::kRead:
            return read(reply.body);
        case Kind::kVote:
            return voted(call, reply.body);
        case Kind::kRevoke:
            to_revoke_.erase(to_revoke_.begin());
            return {};
        case Kind::kGrantRound:
            return round_granted(call, reply.body);
        case Kind::kKeepRound:
            return round_kept(call, reply.body);
        case Kind::kCommit:
            return committed(call, reply.body);
        case Kind::kWatch:
        case Kind::kKinds:
            break;
    }
    return fail("the watch ended");
}

// Without a call's success, what it was for is tried again after a pause; here is what does better than that.
void EtcdElection::refused(Kind kind, const HttpReply& reply) {
    const std::string why = wire::etcd_error(reply.status, reply.body);
    if (kind == Kind::kSignIn && why.find("not enabled") != std::string::npos) {
        no_signing_in_ = true;
        say(Severity::kInfo, "etcd does not ask for a user; going on without");
        return;
    }
    if (kind == Kind::kRevoke && reply.status != 401 && reply.status < 500) {
        to_revoke_.erase(to_revoke_.begin());  // it has ended already, or cannot be ended by this user
        return;
    }
    if (lease_is_gone(reply) && (kind == Kind::kCampaign || kind == Kind::kVote) && lease_) {
        lease_over("etcd no longer knows its lease");
        return;
    }
    if (lease_is_gone(reply) && kind == Kind::kCommit) {
        round_lease_.reset();
        return;
    }
    if (reply.status == 401) {
        token_.clear();
        if (std::exchange(token_good_, false)) {
            return;  // it has only become too old: sign in at once
        }
    }
    failed(kind, kind == Kind::kSignIn ? "user " + settings_.user + ": " + why : why);
}

Result<void> EtcdElection::granted(const Pending& call, const HttpReply& reply) {
    const Result<wire::EtcdLease> lease = wire::decode_etcd_lease(reply.body);
    if (!lease || lease->seconds <= 0) {
        return lease ? fail("it granted a lease of no time") : tl::unexpected(lease.error());
    }
    lease_length_ = std::chrono::seconds(std::min<std::int64_t>(lease->seconds, kLongestLease));
    lease_ = Lease{lease->id, call.sent_at + lease_length_, call.sent_at + lease_length_ / 3};
    address_ = !start_.address.empty() ? start_.address : reply.local_address;
    const bool loopback = address_.starts_with("127.") || address_ == "::1";
    if (start_.address.empty() && loopback && !start_.fallback_address.empty()) {
        address_ = start_.fallback_address;
    }
    return {};
}

Result<void> EtcdElection::kept(const Pending& call, const std::string& body) {
    const Result<wire::EtcdLease> lease = wire::decode_etcd_lease(body);
    if (!lease) {
        return tl::unexpected(lease.error());
    }
    if (lease->seconds <= 0) {
        lease_over("etcd has ended its lease");
        return {};
    }
    lease_length_ = std::chrono::seconds(std::min<std::int64_t>(lease->seconds, kLongestLease));
    lease_->until = call.sent_at + lease_length_;
    lease_->keep_at = call.sent_at + lease_length_ / 3;
    if (role_ == Role::kLeading) {
        effects_.emplace_back(MayLeadUntil{lease_->until});
    }
    check_lease();
    return {};
}

// If the watch has been faster, another look is due.
Result<void> EtcdElection::look_at(std::int64_t revision) {
    if (revision < revision_) {
        return fail("its reply is older than what it has said before");
    }
    looked_ = true;
    revision_ = revision;
    return {};
}

Result<void> EtcdElection::campaigned(const std::string& body) {
    const Result<wire::EtcdTxnReply> reply = wire::decode_etcd_txn(body);
    if (!reply || reply->results.size() != 2) {
        return reply ? short_reply() : tl::unexpected(reply.error());
    }
    if (Result<void> news = look_at(reply->revision); !news) {
        return news;
    }
    if (reply->succeeded) {
        return win(reply->revision, reply->results[1]);
    }
    if (reply->results[0].pairs.empty()) {
        return fail("its reply to a candidacy names no leader");
    }
    const wire::EtcdKeyValue& leader = reply->results[0].pairs.front();
    if (leader.lease == lease_->id) {  // an earlier candidacy whose reply was lost
        return win(leader.create_revision, reply->results[1]);
    }
    follow(leader);
    return {};
}

Result<void> EtcdElection::read(const std::string& body) {
    const Result<wire::EtcdRangeReply> reply = wire::decode_etcd_range(body);
    if (!reply) {
        return tl::unexpected(reply.error());
    }
    if (Result<void> news = look_at(reply->revision); !news) {
        return news;
    }
    if (reply->found.pairs.empty() || reply->found.pairs.front().create_revision != leader_revision_) {
        lease_over("its key in etcd is gone");
    }
    return {};
}

Result<void> EtcdElection::voted(const Pending& call, const std::string& body) {
    const Result<wire::EtcdTxnReply> reply = wire::decode_etcd_txn(body);
    if (!reply || (reply->succeeded && call.vote && reply->results.size() != 2)) {
        return reply ? short_reply() : tl::unexpected(reply.error());
    }
    voted_ = call.vote;
    if (reply->succeeded && call.vote && members_ > 0 && 2 * reply->results[1].count > members_) {
        revoke(leader_lease_);
    }
    return {};  // if it did not succeed, the watch will tell who leads
}

Result<void> EtcdElection::round_granted(const Pending& call, const std::string& body) {
    const Result<wire::EtcdLease> lease = wire::decode_etcd_lease(body);
    if (!lease) {
        return tl::unexpected(lease.error());
    }
    const Duration length = std::chrono::seconds(std::clamp<std::int64_t>(lease->seconds, 1, kLongestLease));
    round_lease_ = Lease{lease->id, {}, call.sent_at + length / 3};
    return {};
}

Result<void> EtcdElection::round_kept(const Pending& call, const std::string& body) {
    const Result<wire::EtcdLease> lease = wire::decode_etcd_lease(body);
    if (!lease) {
        return tl::unexpected(lease.error());
    }
    if (lease->seconds > 0) {
        return round_granted(call, body);
    }
    round_lease_.reset();
    record_written_ = false;  // it went with its lease: write it again
    return {};
}

Result<void> EtcdElection::committed(const Pending& call, const std::string& body) {
    const Result<wire::EtcdTxnReply> reply = wire::decode_etcd_txn(body);
    if (!reply) {
        return tl::unexpected(reply.error());
    }
    if (!reply->succeeded) {
        lease_over("another node leads by now");
    } else if (record_->generation == call.generation) {
        record_written_ = true;
        if (std::exchange(answer_due_, false)) {
            effects_.emplace_back(RoundWritten{call.generation, true});
        }
    }
    return {};
}

}  // namespace ddl::core
