// The one writer of membership: rounds, their order, their end, and the end of the job.
//
// Lives in the agent that owns the rendezvous endpoint. Agents are its peers, the agent of its own process included
// (PeerId::kLocal, over no socket). Pure: step(event, now) -> effects; the driver arms one timer for next_deadline().
// It never reads a clock or a socket and knows nothing of processes.
//
//             | gathering            | running                  | stopping                | over
//  -----------+----------------------+--------------------------+-------------------------+-----------------
//  hello      | welcome or refuse    | welcome or refuse        | welcome or refuse       | tell: job over
//  ready      | note; open if enough | plan a growth, or stop   | note; settle if all     | -
//  failed     | -                    | note death; stop round   | note death              | -
//  first_exit | -                    | freeze membership        | -                       | -
//  finished   | -                    | success if all           | -                       | -
//  leaving    | forget or end        | stop round or end        | forget or end           | -
//  gone       | forget               | node lost; stop round    | node lost; settle if all| forget; ended if none
//  local gone | end, or hand over    | end                      | end; settle, hand over  | ended if none
//  accepted   | agree on the round   | -                        | -                       | -
//  checkpoint | -                    | stop round for a growth  | -                       | -
//  beat       | lease                | lease                    | lease                   | lease
//  time       | notice; open; expire | stop round for a growth  | notice; give up         | give up on the rest
//             |  evict the silent    |  or a lost quorum; evict |  evict                  |
//
// A hello of an agent that has a session already (its link broke and this end has not noticed) ends the older session
// first. A hello that knows later rounds than this coordinator comes from before its restart: numbers, places and the
// restart count go on from there.
// A round is proposed to the last round's voters first, and opened when enough of them have agreed (core/quorum.hpp).
// "hand over": the local node was told to stop and the job can go on: once its workers have ended, the first of the
// voters that is here is made coordinator, and this one leaves.
// "settle": every member is ready or gone (a leaving one: gone), so no old worker is left and all deaths are known: the
// first cause decides between another round and the end. Only then do agents hear an exit code: all hear the same one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "core/placement.hpp"
#include "core/quorum.hpp"
#include "core/restart_policy.hpp"
#include "core/round_record.hpp"
#include "core/say.hpp"
#include "plan/launch_plan.hpp"
#include "wire/agent_message.hpp"

namespace ddl::core {

struct CoordinatorSettings {
    wire::JobTerms terms;       // job_id is set: typed, or made by the driver
    std::string endpoint_host;  // as typed: MASTER_ADDR while the owner is rank 0
    std::string endpoint_text;  // "h0:29400", for messages
    std::string local_name;     // this node, for messages
    std::uint32_t term = 0;
    Duration join_timeout{};
    Duration last_call_timeout{};
    Duration rejoin_timeout{};
    Duration farewell_timeout{};  // how long agents may take to end a round's workers, or to leave at the end
    RestartRules restart_rules;
    Duration restart_grace{};  // part of how long survivors may take to come after a takeover
    plan::ScaleUp scale_up = plan::ScaleUp::kNow;
    Duration scale_up_deadline{};
    wire::Contact self;              // this agent, as other agents reach it
    bool candidates_only = false;    // several endpoints were given: only their owners are voters
    bool authority_outside = false;  // an election elsewhere (etcd) says until when it may act, and agrees on rounds
    std::optional<Instant> authority_until;
    // Of a coordinator that took over: the last round agreed on, and a later one that may be.
    std::vector<wire::RoundConfig> last;
    bool job_runs_elsewhere = false;  // as far as this node knows: it begins none of its own below MAX
    bool handed_over = false;         // in order, so that nobody was lost
};

struct PeerArrived {
    PeerId peer{};
    std::string address;  // its end of the connection, numeric; empty for the local agent
};
struct PeerSaid {
    PeerId peer{};
    wire::Message message;
};
struct PeerGone {  // also of PeerId::kLocal, when the local agent finishes: the job cannot outlive its coordinator
    PeerId peer{};
    std::string why;
};
struct AuthorityUntil {  // with authority_outside
    Instant until{};
};
struct RoundAgreed {  // with authority_outside: answers AgreeOnRound
    Generation generation;
    bool agreed = false;
};
struct TimePassed {};
using CoordinatorEvent = std::variant<PeerArrived, PeerSaid, PeerGone, AuthorityUntil, RoundAgreed, TimePassed>;

struct SendTo {
    PeerId peer{};
    wire::Message message;
};
struct DropPeer {
    PeerId peer{};
};
// The job is over and every remote agent has left or was given up: the process may end.
struct CoordinationEnded {};
struct AgreeOnRound {  // with authority_outside
    RoundRecord record;
};
struct TermLost {  // a voter follows a later coordinator: this one must end
    std::uint32_t promised = 0;
};
struct HandedOver {};  // the coordinator's office has been given away; every remote agent has been dropped
using CoordinatorEffect = std::variant<SendTo, DropPeer, Say, CoordinationEnded, AgreeOnRound, TermLost, HandedOver>;

class Coordinator {
public:
    Coordinator(CoordinatorSettings settings, Instant now);

    [[nodiscard]] std::vector<CoordinatorEffect> step(const CoordinatorEvent& event, Instant now);
    [[nodiscard]] std::optional<Instant> next_deadline() const;
    [[nodiscard]] std::uint32_t term() const {
        return generation_.term;
    }
    [[nodiscard]] bool has_opened() const {  // a round
        return generation_.counter > 0;
    }

private:
    enum class Phase : std::uint8_t { kGathering, kRunning, kStopping, kOver };

    struct Peer {
        std::string address;
        std::optional<wire::Hello> hello;  // empty until welcomed
        bool ready = false;                // could take part in a round
        std::uint16_t store_port = 0;
        std::optional<int> member;  // group rank in the current round, while it takes part
        int survivor_of = -1;       // group rank in the last round it took part in as this process
        bool finished = false;      // all its ranks of the current round exited 0
        bool leaving = false;
        Instant heard_at{};       // its last word; it is silent from then on
        std::uint64_t beat = 0;   // number of its last beat
        Instant lease_sent_at{};  // when that was answered
    };

    // A round that waits for its voters' agreement.
    struct Proposal {
        wire::RoundConfig config;
        std::vector<Candidate> order;
        std::set<std::string> agreeing;  // incarnations
        Instant sent_at{};
    };

    void on(const PeerArrived& event);
    void on(const PeerSaid& event);
    void on(const PeerGone& event);
    void on(const AuthorityUntil& event);
    void on(const RoundAgreed& event);
    void on(const TimePassed& event);

    void heard(PeerId id, Peer& peer, const wire::Hello& hello);
    void heard(PeerId id, Peer& peer, const wire::Ready& ready);
    void heard(PeerId id, Peer& peer, const wire::Failed& failed);
    void heard(PeerId id, Peer& peer, const wire::FirstExit& exit);
    void heard(PeerId id, Peer& peer, const wire::Finished& finished);
    void heard(PeerId id, Peer& peer, const wire::Leaving& leaving);
    void heard(PeerId id, Peer& peer, const wire::Beat& beat);
    void heard(PeerId id, Peer& peer, const wire::Accepted& accepted);
    void heard(PeerId id, Peer& peer, const wire::CheckpointDone& done);
    template <class Other>
    void heard(PeerId id, Peer& peer, const Other& message);  // coordinator's own messages: a confused peer

    [[nodiscard]] std::string objection(PeerId id, const wire::Hello& hello) const;
    void refuse(PeerId id, const std::string& reason);
    void replace_older_session(PeerId id, const wire::Hello& hello);
    void adopt(Peer& peer, const wire::Hello& hello);
    void lose(const Peer& peer, const std::string& why);
    void judge_former();
    [[nodiscard]] bool judge(const std::vector<wire::Death>& deaths, Duration round_age);
    void tell_newcomer(PeerId id, const Peer& peer);

    // Rounds (coordinator_rounds.cpp).
    void gather(Duration limit);
    void open_if_possible();
    [[nodiscard]] Duration last_call() const;
    void propose_round();
    void open_round();
    void plan_growth(const Peer& peer);
    [[nodiscard]] bool may_grow(const Peer& peer) const;
    void note_death(wire::Death death);
    void stop_round(wire::StopReason reason, const std::string& why);
    void give_up_stragglers();
    void settle_if_all_ready();
    void settle();
    void finish_if_all_done();
    void end_job(wire::JobOver over);
    void end_if_deserted();
    void expire_gathering();
    [[nodiscard]] wire::Assignment complete(wire::Assignment assignment, const std::vector<Candidate>& order) const;
    [[nodiscard]] std::string master_address(const Candidate& first) const;
    [[nodiscard]] std::vector<std::string> store_clients(const std::vector<Candidate>& order) const;
    [[nodiscard]] std::vector<Candidate> candidates() const;

    // Leases, quorum and the office itself (coordinator_leases.cpp).
    void start_leases();
    void notice_own_absence();
    void lease_tick();
    void evict_silent();
    [[nodiscard]] Duration lease_limit(PeerId id) const;
    [[nodiscard]] std::optional<Instant> authority_until() const;
    [[nodiscard]] bool has_authority() const;
    void adopt_authority(const Peer& peer, const wire::Hello& hello);
    [[nodiscard]] wire::RoundConfig config_of(const std::vector<Candidate>& order) const;
    [[nodiscard]] wire::Contact contact_of(const Candidate& candidate) const;
    [[nodiscard]] std::string lost_coordinator() const;
    void ask_voters();
    void withdraw_proposal();
    void inherit_if_all_are_back();
    void local_gone(const std::string& why);
    [[nodiscard]] std::vector<wire::Contact> successors() const;
    [[nodiscard]] PeerId successor() const;  // kLocal: there is none
    void hand_over();

    // Who is here (coordinator_roster.cpp).
    [[nodiscard]] int count_ready() const;
    [[nodiscard]] int count_present() const;  // welcomed and not leaving
    [[nodiscard]] int members_running() const;
    [[nodiscard]] std::string missing_text(int here) const;
    [[nodiscard]] std::string count_text() const;
    [[nodiscard]] std::string roster_text() const;
    [[nodiscard]] std::string progress_text() const;  // what is being waited for
    void send_notice(const std::string& text);

    void send(PeerId peer, wire::Message message);
    void say(Severity severity, std::string text);

    CoordinatorSettings settings_;
    Phase phase_ = Phase::kGathering;
    Instant now_{};
    std::map<PeerId, Peer> peers_;
    Generation generation_;           // of this coordinator's current or last round; counter 0 before its first
    std::uint32_t last_counter_ = 0;  // of the job's last round, an earlier coordinator's included; 0: never started
    std::uint32_t last_run_ = 0;      // counter of the last round that any agent here has taken part in
    Quorum quorum_;
    std::optional<Proposal> proposal_;
    wire::RoundConfig quorum_config_;         // of the current or last round of this coordinator
    std::optional<Instant> authority_until_;  // with authority_outside
    int expected_ = 0;                        // nodes that may come after a takeover
    bool retiring_ = false;
    std::vector<FormerPlace> places_;  // of the current or last round, by group rank
    std::vector<DatedDeath> deaths_;   // of the current round
    wire::StopReason stop_reason_ = wire::StopReason::kFailure;
    RestartPolicy policy_;
    Instant opened_at_{};         // the current or last round
    bool former_judged_ = false;  // the loss of the coordinator before this one has been counted
    bool frozen_ = false;         // a worker of this round has exited 0: no growth
    std::optional<wire::JobOver> over_;
    std::optional<Instant> gathering_until_;
    std::optional<Instant> hold_until_;  // no round before, after failures in a row
    std::optional<Instant> last_call_until_;
    bool last_call_over_ = false;
    std::optional<Instant> next_notice_;
    std::optional<Instant> growth_at_;
    std::optional<Instant> growth_limit_;
    std::optional<Instant> farewell_until_;
    std::optional<Instant> stopping_until_;
    std::optional<Instant> lease_tick_;
    bool ended_ = false;
    std::vector<CoordinatorEffect> effects_;
};

}  // namespace ddl::core
