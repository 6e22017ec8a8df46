// Who coordinates, decided through etcd v3: one agent's part of the election.
//
// Owned and driven by run::Rendezvous of a job with --rdzv-backend=etcd, beside net::HttpClient, which performs the
// calls. Pure: step(event, now) -> effects; the driver arms a timer for next_deadline(). It never ends a job: an etcd
// that does not answer is tried again and again.
//
// Keys, below /ddlaunch/<job id>/: `leader` exists while somebody leads, bound to that agent's lease; its
// create_revision is the term. `round`, the last round agreed on, is only ever written together with a comparison of
// that revision, so a leader that was replaced cannot open another round. `ended/<term>/<incarnation>` says that an
// agent has seen the leader's connection end; whoever sees more than half of the last round's members there ends the
// leader's lease.
//
//                  | seeking        | following               | leading                     | left
//  ----------------+----------------+-------------------------+-----------------------------+------
//  lease granted   | campaign       | -                       | -                           | -
//  lease ended     | grant anew     | grant anew              | lost; seek with a new lease | -
//  key was created | lead           | lead                    | -                           | -
//  key was there   | follow         | follow, if another      | lost, if not its own        | -
//  key deleted     | campaign       | campaign                | lost; seek with a new lease | -
//  leader gone     | -              | vote; end lease at >1/2 | -                           | -
//  leader reached  | -              | take the vote back      | -                           | -
//  commit round    | refuse         | refuse                  | write it                    | refuse
//  stand down      | leave or wait  | leave or go on          | end the lease; leave or wait| -
//  not signed in   | sign in        | sign in                 | sign in                     | -
//  call failed     | pause; look    | pause; look again       | pause; look again           | -
//  time            | try again      | keep the lease          | keep the leases; lost when the lease is over | -
//
// "over": the lease's seconds, as etcd granted them, counted from the sending of the last keepalive that was answered.
// Whoever has led and lost never uses that lease again, and asks etcd to end it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "core/http_calls.hpp"
#include "core/round_record.hpp"
#include "core/say.hpp"
#include "wire/agent_message.hpp"
#include "wire/etcd.hpp"

namespace ddl::core {

struct ElectionSettings {
    std::string job_id;
    std::string node;
    std::string incarnation;
    Duration lease_timeout{};  // at least 2 s; etcd may grant more
    std::string user;          // empty: no signing in
    std::string password;
    std::string etcd_text;  // "e1:2379,e2:2379", for messages
};

// ---- events: HttpEvent's, and these -----------------------------------------------------------------------------

struct ElectionStart {
    std::string address;           // of this agent's port for others; empty: its end of the connection to etcd
    std::string fallback_address;  // when that end is a loopback address
    std::uint16_t port = 0;
};
struct LeaderReached {};  // the session with the leader that is followed is up
struct LeaderGone {       // the connection ended; not: it is silent
    int members = 0;      // of the last round that this agent was in
};
struct CommitRound {  // answered by RoundWritten
    RoundRecord record;
};
struct StandDown {
    bool leaving = false;   // for good: no candidate any more
    bool job_over = false;  // forget the job's last round
};
struct ElectionTime {};
using ElectionEvent = std::variant<ElectionStart, HttpReply, HttpFailed, StreamLine, LeaderReached, LeaderGone,
                                   CommitRound, StandDown, ElectionTime>;

// ---- effects ----------------------------------------------------------------------------------------------------

struct WonElection {
    std::uint32_t term = 0;
    std::string address;              // under which others find this agent
    std::optional<RoundRecord> last;  // of the leaders before
    Instant until{};

    friend bool operator==(const WonElection&, const WonElection&) = default;
};
struct MayLeadUntil {
    Instant until{};

    friend bool operator==(const MayLeadUntil&, const MayLeadUntil&) = default;
};
struct FollowLeader {
    std::uint32_t term = 0;
    wire::Contact leader;

    friend bool operator==(const FollowLeader&, const FollowLeader&) = default;
};
struct LeadLost {
    std::string why;

    friend bool operator==(const LeadLost&, const LeadLost&) = default;
};
struct RoundWritten {
    Generation generation;
    bool written = false;  // false: another agent leads, or may lead by now

    friend bool operator==(const RoundWritten&, const RoundWritten&) = default;
};
using ElectionEffect =
    std::variant<HttpCall, CancelCall, WonElection, MayLeadUntil, FollowLeader, LeadLost, RoundWritten, Say>;

class EtcdElection {
public:
    explicit EtcdElection(ElectionSettings settings);

    [[nodiscard]] std::vector<ElectionEffect> step(const ElectionEvent& event, Instant now);
    [[nodiscard]] std::optional<Instant> next_deadline() const;

    // Until when this agent may act as the leader; nullopt when it does not lead.
    [[nodiscard]] std::optional<Instant> lead_until() const;
    // After StandDown{leaving}: nothing is left to be told to etcd.
    [[nodiscard]] bool idle() const;

private:
    enum class Role : std::uint8_t { kOff, kSeeking, kFollowing, kLeading, kLeft };
    // At most one call of each kind is under way.
    enum class Kind : std::uint8_t {
        kSignIn,
        kGrant,
        kKeep,
        kCampaign,
        kRead,
        kWatch,
        kVote,
        kRevoke,
        kGrantRound,
        kKeepRound,
        kCommit,
        kKinds
    };
    struct Pending {
        CallId id{};
        Instant sent_at{};
        bool vote = false;      // kVote: given, not taken back
        Generation generation;  // kCommit
    };
    struct Lease {
        std::int64_t id = 0;
        Instant until{};
        Instant keep_at{};
    };

    void on(const ElectionStart& event);
    void on(const HttpReply& event);
    void on(const HttpFailed& event);
    void on(const StreamLine& event);
    void on(const LeaderReached& event);
    void on(const LeaderGone& event);
    void on(const CommitRound& event);
    void on(const StandDown& event);
    void on(const ElectionTime& event);

    // Roles.
    Result<void> win(std::int64_t revision, const wire::EtcdFound& round);
    void follow(const wire::EtcdKeyValue& leader);
    void key_changed(const wire::EtcdChange& change);
    void lease_over(const std::string& why);
    void lose(const std::string& why);
    void refuse_commit();
    void check_lease();

    // Calls (etcd_election_calls.cpp): what should be under way is, as soon as it can be.
    void pump();
    void pump_lead();
    void pump_vote();
    void revoke(std::int64_t lease);
    void campaign();
    void commit();
    void send(Kind kind, const char* path, std::string body);
    void cancel(Kind kind);
    [[nodiscard]] std::optional<Pending>& slot(Kind kind) {
        return pending_[static_cast<std::size_t>(kind)];
    }
    [[nodiscard]] const std::optional<Pending>& slot(Kind kind) const {
        return pending_[static_cast<std::size_t>(kind)];
    }
    [[nodiscard]] std::optional<Kind> kind_of(CallId id) const;

    // What their replies say, or why one cannot be understood (etcd_election_replies.cpp).
    Result<void> replied(Kind kind, const Pending& call, const HttpReply& reply);
    Result<void> granted(const Pending& call, const HttpReply& reply);
    Result<void> kept(const Pending& call, const std::string& body);
    Result<void> campaigned(const std::string& body);
    Result<void> read(const std::string& body);
    Result<void> voted(const Pending& call, const std::string& body);
    Result<void> round_granted(const Pending& call, const std::string& body);
    Result<void> round_kept(const Pending& call, const std::string& body);
    Result<void> committed(const Pending& call, const std::string& body);
    void refused(Kind kind, const HttpReply& reply);
    [[nodiscard]] Result<void> look_at(std::int64_t revision);

    // Trouble: pauses, and what people are told.
    void failed(Kind kind, const std::string& why);
    void succeeded(Kind kind);
    void stop_watching();
    [[nodiscard]] bool signed_in() const;
    void say(Severity severity, std::string text);

    [[nodiscard]] std::string key(const std::string& name) const;
    [[nodiscard]] std::int64_t lease_seconds() const;

    ElectionSettings settings_;
    Role role_ = Role::kOff;
    Instant now_{};
    std::uint64_t calls_ = 0;
    std::array<std::optional<Pending>, static_cast<std::size_t>(Kind::kKinds)> pending_;

    ElectionStart start_;
    std::string address_;
    std::string token_;
    bool token_good_ = false;     // it was accepted once
    bool no_signing_in_ = false;  // etcd has it turned off
    std::optional<Lease> lease_;
    Duration lease_length_{};
    std::vector<std::int64_t> to_revoke_;

    bool looked_ = false;               // `leader` is known, up to what the watch will say
    std::int64_t revision_ = 0;         // of the store when it was last seen
    std::int64_t leader_revision_ = 0;  // of `leader`: this agent's own while it leads
    std::int64_t leader_lease_ = 0;
    std::optional<Instant> hold_until_;  // no candidacy before

    int members_ = 0;  // of the last round; 0: no vote to give
    bool voted_ = false;

    std::optional<RoundRecord> record_;
    bool record_written_ = false;
    bool answer_due_ = false;
    std::optional<Lease> round_lease_;

    std::optional<Kind> trouble_;
    std::string trouble_text_;
    Instant trouble_at_{};  // last
    int failures_ = 0;
    bool complained_ = false;
    std::optional<Instant> retry_at_;
    std::optional<Instant> complain_at_;
    std::vector<ElectionEffect> effects_;
};

}  // namespace ddl::core
