// One node's part of the job: joining, running its workers, ending them, and leaving.
//
// Owned and driven by run::Driver, which turns descriptors, processes and signals into AgentEvents and performs the
// AgentEffects. Pure: no clock, no process, no socket. Exactly one Finish comes out, last.
//
//             | seeking    | joining    | preparing | waiting | running     | finished    | ending
//  -----------+------------+------------+-----------+---------+-------------+-------------+-----------------
//  up         | hello      | -          | -         | -       | -           | -           | hello at end
//  down       | -          | seek       | seek      | seek    | end; seek   | end; seek   | then seek
//  welcome    | -          | prepare    | -         | -       | -           | -           | -
//  port       | -          | -          | ready     | -       | -           | -           | -
//  assignment | -          | -          | -         | start   | -           | -           | -
//  stop       | -          | -          | -         | -       | end; ready  | end; ready  | -
//  refused    | finish     | finish     | finish    | finish  | end; finish | end; finish | then finish
//  job over   | finish     | finish     | finish    | finish  | end; finish | end; finish | then finish
//  started    | -          | -          | -         | -       | note        | -           | end it too
//  worker end | -          | -          | -         | -       | fail/finish | -           | clear at last
//  forwarded  | -          | -          | -         | -       | signal      | -           | -
//  signal     | finish     | leave      | leave     | leave   | leave       | leave       | leave; 2nd kills
//  lease      | -          | -          | note      | note    | note        | note        | note
//  time       | say/finish | say/finish | beat      | beat    | beat; fence | beat; notice| kill; give up; fence
//
// "fence": no lease is left, so this node may have been cut off and replaced: workers are killed at once, without
// grace, and the agent seeks the coordinator anew. A coordinator that does not answer at all is left in the same way.
//
// "ending": TERM, the grace, KILL; when the last worker is reaped its family is cleared in sweeps; only then goes the
// node on to what comes next: ready again, seek again, or finish. "leave": say leaving, end, finish(66), or with
// 128+n as long as no round has started. The store is closed only with the process when the job ends: other nodes'
// workers may need it in their grace.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "core/say.hpp"
#include "core/worker_group.hpp"
#include "wire/agent_message.hpp"

namespace ddl::core {

struct AgentSettings {
    wire::JobTerms terms;
    wire::NodeFacts node;              // connection_address is filled in when the session is up
    std::string endpoint_text;         // for messages
    bool hosts = false;                // the coordinator lives in this process
    std::vector<int> forward_signals;  // passed on to the workers; they stop nothing
    bool keep_children = false;        // leave what workers that exited 0 left behind
    Duration join_timeout{};
    Duration rejoin_timeout{};
    Duration restart_grace{};
    Duration shutdown_timeout{};
};

// ---- events -----------------------------------------------------------------------------------------------------

struct SessionUp {
    std::string own_address;
    bool local = false;  // the coordinator lives in this process
};
struct SessionDown {
    std::string why;
};
struct SessionRetry {  // dialling failed and goes on
    std::string why;
};
struct FromCoordinator {
    wire::Message message;
};
struct StorePrepared {
    std::uint16_t port = 0;
};
struct WorkerStarted {
    int local_rank = 0;
    int pid = 0;
};
struct StartFailed {
    int local_rank = 0;
    std::string what;  // "exec ./train: No such file or directory"
    int error = 0;
};
struct WorkerEnded {
    int local_rank = 0;
    bool signalled = false;
    int status = 0;
    bool stopped = false;  // the launcher had signalled it before it ended
    std::string message;   // from its error file
    std::vector<std::string> stderr_tail;
    std::string error_file;
};
struct Swept {
    int remaining = 0;     // members of the families that were found
    bool certain = false;  // no descendant is left at all: no second look is needed
    std::string example;   // one of them, for messages
};
struct SystemFailed {  // a system resource that the agent cannot do without
    std::string what;
};
struct SignalCame {
    int signal = 0;
};
struct AgentTime {};
using AgentEvent = std::variant<SessionUp, SessionDown, SessionRetry, FromCoordinator, StorePrepared, WorkerStarted,
                                StartFailed, WorkerEnded, Swept, SystemFailed, SignalCame, AgentTime>;

// ---- effects ----------------------------------------------------------------------------------------------------

struct ToCoordinator {
    wire::Message message;
};
struct PrepareStore {};  // take the next round's store port; answered by StorePrepared
struct DropSession {     // end the session with the coordinator, and dial again
    std::string why;
};
struct CloseStore {};  // the round is over: nothing of it is served any more
struct StartWorkers {  // open the store if this node serves it, then start; answered by WorkerStarted / StartFailed
    wire::Assignment assignment;
    std::string job_id;
};
struct SignalWorkers {
    std::vector<int> local_ranks;
    int signal = 0;
    bool forwarded = false;  // by --forward-signals: it is not meant to end them
};
struct SweepFamilies {  // look for what the workers left, and signal it (0: only look); answered by Swept
    int signal = 0;
};
struct Report {  // how the job ended
    wire::JobOver over;
};
struct Finish {
    int exit_code = 0;
};
using AgentEffect = std::variant<ToCoordinator, DropSession, PrepareStore, CloseStore, StartWorkers, SignalWorkers,
                                 SweepFamilies, Say, Report, Finish>;

class Agent {
public:
    Agent(AgentSettings settings, Instant now);

    [[nodiscard]] std::vector<AgentEffect> step(const AgentEvent& event, Instant now);
    [[nodiscard]] std::optional<Instant> next_deadline() const;

private:
    enum class State : std::uint8_t { kSeeking, kJoining, kPreparing, kWaiting, kRunning, kFinished, kEnding, kOver };
    enum class Next : std::uint8_t { kReadyAgain, kSeek, kFinish };
    enum class Ending : std::uint8_t { kWorkers, kFamilies };

    void on(const SessionUp& event);
    void on(const SessionDown& event);
    void on(const SessionRetry& event);
    void on(const FromCoordinator& event);
    void on(const StorePrepared& event);
    void on(const WorkerStarted& event);
    void on(const StartFailed& event);
    void on(const WorkerEnded& event);
    void on(const Swept& event);
    void on(const SystemFailed& event);
    void on(const SignalCame& event);
    void on(const AgentTime& event);

    void heard(const wire::Welcome& welcome);
    void heard(const wire::Refused& refused);
    void heard(const wire::Notice& notice);
    void heard(const wire::Assignment& assignment);
    void heard(const wire::Stop& stop);
    void heard(const wire::JobOver& over);
    void heard(const wire::Lease& lease);
    template <class Other>
    void heard(const Other& message);  // agents' own messages: a confused coordinator

    void greet();
    void seek();
    void note_death(wire::Death death);
    void check_success();
    [[nodiscard]] Duration seek_limit() const;

    // The lease (agent_lease.cpp).
    void start_beats();
    void send_beat();
    void stop_beats();
    void take_lease(std::uint64_t beat, Duration limit);
    [[nodiscard]] bool may_run(const wire::Assignment& assignment);
    void lease_time();
    void fence();
    void leave_session(const std::string& why);
    [[nodiscard]] bool leased() const {
        return settings_.terms.lease > Duration::zero();
    }

    // Ending (agent_ending.cpp).
    void finish_with(wire::JobOver over);
    void launcher_over(int exit_code, std::string why);
    void end_workers(Next next, Duration grace, int signal);
    void kill_workers();
    void workers_gone();
    void sweep();
    void families_gone();
    void give_up(const std::string& who);
    void ending_time();
    void finish();

    void send(wire::Message message);
    void say(Severity severity, std::string text);
    [[nodiscard]] wire::Death death_of(int local_rank, wire::DeathKind kind, int status) const;
    [[nodiscard]] std::string seek_text() const;
    [[nodiscard]] static bool due(std::optional<Instant>& deadline, Instant now);

    AgentSettings settings_;
    State state_ = State::kSeeking;
    Instant now_{};
    bool session_ = false;
    std::string job_id_;
    Generation generation_;  // of the current or last round
    int group_rank_ = -1;
    int base_rank_ = 0;
    int restart_count_ = 0;
    std::vector<Instant> restarts_at_;  // for a coordinator that takes over
    WorkerGroup group_;
    std::vector<std::pair<wire::Death, Instant>> deaths_;  // of the current or last round

    std::uint16_t store_port_ = 0;
    bool local_ = false;  // the session is with a coordinator in this process

    // The lease: of the session the beats, of the workers the limit.
    std::uint64_t beat_ = 0;  // number of the last one sent
    bool beat_answered_ = false;
    Instant beat_sent_at_{};
    Instant beat_before_sent_at_{};
    Instant lease_until_{};
    std::optional<Instant> beat_at_;
    std::optional<Instant> silent_at_;
    std::optional<Instant> fence_at_;  // while workers may run

    // While ending.
    Next next_ = Next::kReadyAgain;
    Ending ending_ = Ending::kWorkers;
    bool clean_ = true;  // nothing of a worker can be left on this node
    bool killed_ = false;
    bool polite_sweeps_ = false;  // families of workers that succeeded: TERM first
    int empty_sweeps_ = 0;
    std::string last_example_;
    Duration sweep_pause_{};
    std::optional<Instant> kill_at_;
    std::optional<Instant> give_up_at_;
    std::optional<Instant> sweep_at_;

    int signals_ = 0;
    std::optional<wire::JobOver> over_;  // how this agent will finish
    std::optional<Instant> seek_until_;
    std::optional<Instant> seek_notice_at_;
    std::optional<Instant> finished_notice_at_;
    std::string last_retry_;
    std::vector<AgentEffect> effects_;
};

}  // namespace ddl::core
