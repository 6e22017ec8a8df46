// Who coordinates when the coordinator is gone: one agent's vote, and its candidacy.
//
// Owned by run::Rendezvous beside the agent, on every node of a job with takeover=majority; it hears all that the agent
// hears of the coordinator's authority (Lease, Propose, Assignment, Retire), and what other agents say at this agent's
// port or answer to its calls. Pure: step(event, now) -> effects; the driver arms one timer for next_deadline().
//
//                | following a leader        | searching                          | leading
//  --------------+---------------------------+------------------------------------+--------------------------
//  leader lost   | call the voters; search   | -                                  | search
//  seek          | redirect                  | remember, answer later             | redirect to itself
//  vote request  | no, redirect; leave a     | yes, no, or when its promise ends  | no, redirect to itself
//                |  leader without a quorum  |                                    |
//  vote          | -                         | count; lead at more than half      | -
//  redirect      | if later: follow          | follow                             | if later: step down, follow
//  retire        | vote as told; search      | -                                  | -
//  time          | -                         | campaign; say that none is possible| -
//
// A voter follows no coordinator of an earlier term than it has promised, and whoever is elected knows of every round
// that may have been agreed on, since a voter refuses a candidate that knows less than itself. A candidate needs more
// than half of the voters of the last round agreed on, and of a round that it has accepted since. The first of the last
// round's voters that is left campaigns at once, the next a moment later, so elections seldom meet. After a silence
// (not after the end of a connection, which proves that the leader's process or its host's network is gone for good) a
// voter keeps its promise until the lease timeout has passed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "core/say.hpp"
#include "wire/agent_message.hpp"

namespace ddl::core {

struct TakeoverSettings {
    wire::JobTerms terms;                  // job_id as typed; replaced by the coordinator's when it is known
    wire::Contact self;                    // address may be empty: others tell it by the round's configuration
    std::vector<wire::Contact> endpoints;  // where newcomers look; told of a leader that is elsewhere
};

// ---- events -----------------------------------------------------------------------------------------------------

struct LeaderWelcomed {  // the session with a coordinator has begun
    std::string job_id;
    std::uint32_t term = 0;
    wire::Contact leader;
};
struct LeaderLost {
    bool ended = false;  // its connection ended; else it was only silent
};
struct LeaderSaid {  // Lease, Propose, Assignment or Retire
    wire::Message message;
};
struct CallerSaid {  // at this agent's port: Seek, VoteRequest, Redirect; or a Hello, while it does not lead
    PeerId caller{};
    wire::Message message;
};
struct CallerGone {
    PeerId caller{};
};
struct CallUp {
    std::string incarnation;  // of the voter that was called; of an endpoint: its text
};
struct CallSaid {
    std::string incarnation;
    wire::Message message;
};
struct CallDown {
    std::string incarnation;
};
struct Deposed {  // the coordinator in this process has been told that there is a later one
    std::uint32_t promised = 0;
};
struct LeadsIn {  // the coordinator in this process has a later term now, or has opened its first round in it
    std::uint32_t term = 0;
    bool opened = false;
};
struct LeavingJob {};  // this node was told to stop: it votes, but does not campaign
struct TakeoverTime {};
using TakeoverEvent = std::variant<LeaderWelcomed, LeaderLost, LeaderSaid, CallerSaid, CallerGone, CallUp, CallSaid,
                                   CallDown, Deposed, LeadsIn, LeavingJob, TakeoverTime>;

// ---- effects ----------------------------------------------------------------------------------------------------

struct Call {  // dial, again and again until HangUp; answered by CallUp
    wire::Contact contact;
};
struct HangUp {
    std::string incarnation;  // empty: all
};
struct SayTo {  // on a call
    std::string incarnation;
    wire::Message message;
};
struct Reply {  // to a caller
    PeerId caller{};
    wire::Message message;
};
struct ToLeader {  // on the agent's session with the coordinator
    wire::Message message;
};
struct Lead {  // become the coordinator
    std::uint32_t term = 0;
    std::vector<wire::RoundConfig> last;  // the last one agreed on, and a later one that may be
    bool handed_over = false;             // by the coordinator before
    std::string own_address;              // as the others know it; empty if they were never told
};
struct Follow {  // the coordinator is there: dial it instead of the endpoint
    std::uint32_t term = 0;
    wire::Contact leader;
};
struct LookElsewhere {};  // the coordinator that was pointed out does not answer
struct StepDown {
    std::optional<wire::Redirect> redirect;  // where the agents here shall go
};                                           // end the coordinator of this process: there is a later one
struct Abandon {  // end the session with the coordinator: it has no quorum, and somebody else could have one
    std::string why;
};
using TakeoverEffect =
    std::variant<Call, HangUp, SayTo, Reply, ToLeader, Lead, Follow, LookElsewhere, StepDown, Abandon, Say>;

class Takeover {
public:
    Takeover(TakeoverSettings settings, Instant now);

    [[nodiscard]] std::vector<TakeoverEffect> step(const TakeoverEvent& event, Instant now);
    [[nodiscard]] std::optional<Instant> next_deadline() const;

    // What this agent has accepted and promised so far, for its hello.
    void describe(wire::Hello& hello) const;
    void reached_at(std::uint16_t port) {
        settings_.self.port = port;
    }
    // For an owner of the endpoint that coordinates again: odd, later than any term it has heard of.
    [[nodiscard]] std::uint32_t term_to_resume() const;
    // This process has become the coordinator without an election: it owns the endpoint.
    void lead_as_owner(const std::string& job_id, std::uint32_t term);

private:
    enum class State : std::uint8_t { kFollowing, kSearching, kLeading };

    void on(const LeaderWelcomed& event);
    void on(const LeaderLost& event);
    void on(const LeaderSaid& event);
    void on(const CallerSaid& event);
    void on(const CallerGone& event);
    void on(const CallUp& event);
    void on(const CallSaid& event);
    void on(const CallDown& event);
    void on(const Deposed& event);
    void on(const LeadsIn& event);
    void on(const LeavingJob& event);
    void on(const TakeoverTime& event);

    void heard(const wire::Propose& propose);
    void heard(const wire::Assignment& assignment);
    void learn(const wire::RoundConfig& config);
    void heard(const wire::Lease& lease);
    void heard(const wire::Retire& retire);
    void asked(PeerId caller, const wire::VoteRequest& request);
    void sought(PeerId caller);
    void counted(const std::string& voter, const wire::Vote& vote);
    void redirected(const wire::Redirect& redirect);

    void search(Duration head_start);
    void follow(const wire::Redirect& redirect);
    void say(Severity severity, std::string text);
    void plan_campaign(Instant earliest);
    void say_if_hopeless();
    void campaign();
    void request_votes(const std::string& voter);
    [[nodiscard]] wire::Vote answer(const wire::VoteRequest& request) const;
    void give_vote(PeerId caller, const wire::VoteRequest& request);
    void lead();
    void hang_up_on_voters();
    void tell_leader_to_all();
    [[nodiscard]] wire::Redirect redirect() const;
    [[nodiscard]] bool yields_to(const wire::Redirect& redirect) const;
    [[nodiscard]] bool same_job(const wire::JobTerms& theirs) const;
    [[nodiscard]] bool may_campaign() const;
    [[nodiscard]] int place_among_voters() const;  // of those that may be left
    [[nodiscard]] bool elected() const;            // by votes_
    [[nodiscard]] Generation latest() const;
    [[nodiscard]] std::vector<wire::Contact> voters() const;  // of both rounds, each once
    [[nodiscard]] wire::Contact own_contact() const;

    TakeoverSettings settings_;
    State state_ = State::kSearching;
    Instant now_{};
    wire::RoundConfig config_;                  // the last one known to be agreed on
    std::optional<wire::RoundConfig> pending_;  // one accepted since
    std::uint32_t promised_ = 0;                // no coordinator of an earlier term is followed
    std::uint32_t term_ = 0;                    // of the leader, or of the last one
    std::string voted_for_;                     // in the term promised
    std::uint32_t seen_ = 0;                    // the latest term heard of
    Instant promise_until_{};
    std::optional<wire::Contact> ended_;  // the leader whose connection has ended
    Instant ended_at_{};
    std::optional<wire::Contact> leader_;
    bool leader_has_quorum_ = true;
    bool leaving_ = false;
    bool opened_ = false;          // while leading: a round, in its term
    std::set<std::string> calls_;  // incarnations of voters that were called
    std::set<std::string> up_;
    std::set<PeerId> seekers_;
    std::map<PeerId, wire::VoteRequest> waiting_;  // until the promise ends

    std::uint32_t candidacy_ = 0;  // term of its own campaign; 0: none
    bool trial_ = true;
    bool appointed_ = false;  // by the coordinator that retires
    std::set<std::string> votes_;
    std::optional<Instant> campaign_at_;
    std::optional<Instant> beacon_at_;     // while leading: the endpoint's owner may think that it leads
    std::optional<Instant> follow_until_;  // a leader that was pointed out must answer by then
    std::vector<TakeoverEffect> effects_;
};

}  // namespace ddl::core
