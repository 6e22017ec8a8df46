#include "core/agent.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.hpp"
#include "core/restart_policy.hpp"

namespace ddl::core {
namespace {

constexpr auto kFinishedNotice = std::chrono::seconds(60);
constexpr auto kFirstSeekNotice = std::chrono::seconds(2);
constexpr auto kSeekNotice = std::chrono::seconds(10);

}  // namespace

Agent::Agent(AgentSettings settings, Instant now) : settings_(std::move(settings)), now_(now) {
    if (!settings_.hosts) {
        seek_until_ = now + settings_.join_timeout;
        seek_notice_at_ = now + kFirstSeekNotice;
    }
}

std::vector<AgentEffect> Agent::step(const AgentEvent& event, Instant now) {
    now_ = now;
    if (state_ != State::kOver) {
        std::visit([this](const auto& e) { on(e); }, event);
    }
    return std::exchange(effects_, {});
}

std::optional<Instant> Agent::next_deadline() const {
    std::optional<Instant> next;
    for (const auto& deadline : {kill_at_, give_up_at_, sweep_at_, seek_until_, seek_notice_at_, finished_notice_at_,
                                 beat_at_, silent_at_, fence_at_}) {
        if (deadline && (!next || *deadline < *next)) {
            next = deadline;
        }
    }
    return next;
}

// ---- the session with the coordinator ---------------------------------------------------------------------------

void Agent::on(const SessionUp& event) {
    session_ = true;
    local_ = event.local;
    settings_.node.connection_address = event.own_address;
    if (state_ == State::kSeeking) {
        greet();
    }
}

void Agent::greet() {
    state_ = State::kJoining;
    if (leased() && !local_) {
        silent_at_ = now_ + settings_.terms.lease;
    }
    wire::Hello hello;
    hello.terms = settings_.terms;
    hello.node = settings_.node;
    hello.last = generation_;
    hello.last_group_rank = group_rank_;
    hello.restart_count = restart_count_;
    for (const Instant at : restarts_at_) {
        hello.restart_ages.push_back(now_ - at);
    }
    send(std::move(hello));
}

void Agent::seek() {
    state_ = State::kSeeking;
    last_retry_.clear();
    if (!seek_until_) {  // else nobody has welcomed this agent since the limit was set
        seek_until_ = now_ + seek_limit();
        seek_notice_at_ = now_ + kFirstSeekNotice;
    }
    if (session_) {
        greet();
    }
}

void Agent::on(const SessionDown& event) {
    if (!std::exchange(session_, false) || over_) {
        return;  // on the way out nobody is needed any more
    }
    stop_beats();
    say(Severity::kWarning, "lost the coordinator at " + settings_.endpoint_text + ": " + event.why);
    switch (state_) {
        case State::kJoining:
        case State::kPreparing:
        case State::kWaiting:
            effects_.emplace_back(CloseStore{});
            seek();
            break;
        case State::kRunning:
        case State::kFinished:
            // The coordinator may live and go on without this node: its workers get no time beside the next ones.
            end_workers(Next::kSeek, leased() ? Duration::zero() : settings_.restart_grace, SIGTERM);
            break;
        case State::kEnding:
            if (leased() && next_ != Next::kFinish) {
                kill_workers();
            }
            next_ = Next::kSeek;
            break;
        case State::kSeeking:
        case State::kOver:
            break;
    }
}

void Agent::on(const SessionRetry& event) {
    last_retry_ = event.why;
}

void Agent::on(const FromCoordinator& event) {
    std::visit([this](const auto& message) { heard(message); }, event.message);
}

void Agent::heard(const wire::Welcome& welcome) {
    if (state_ == State::kJoining) {
        state_ = State::kPreparing;
        seek_until_.reset();
        seek_notice_at_.reset();
        job_id_ = welcome.job_id;
        start_beats();
        effects_.emplace_back(PrepareStore{});
    }
}

void Agent::on(const StorePrepared& event) {
    if (state_ != State::kPreparing) {
        return;
    }
    state_ = State::kWaiting;
    store_port_ = event.port;
    wire::Ready ready;
    ready.ended = generation_;
    ready.store_port = store_port_;
    for (const auto& [death, at] : deaths_) {
        ready.deaths.push_back(death);
        ready.deaths.back().age = now_ - at;
    }
    send(std::move(ready));
}

void Agent::heard(const wire::Refused& refused) {
    launcher_over(kExitUsage, "refused by the coordinator at " + settings_.endpoint_text + ": " + refused.reason);
}

void Agent::heard(const wire::Notice& notice) {
    say(Severity::kInfo, notice.text);
}

void Agent::heard(const wire::JobOver& over) {
    finish_with(over);
}

template <class Other>
void Agent::heard(const Other& /*message*/) {
    launcher_over(kExitInternal, "the coordinator sent a message that only agents send");
}

// ---- a round ----------------------------------------------------------------------------------------------------

void Agent::heard(const wire::Assignment& assignment) {
    if (state_ != State::kWaiting || assignment.generation <= generation_ || !may_run(assignment)) {
        return;
    }
    state_ = State::kRunning;
    generation_ = assignment.generation;
    group_rank_ = assignment.group_rank;
    base_rank_ = assignment.base_rank;
    restart_count_ = assignment.restart_count;
    restarts_at_.clear();
    for (const Duration age : assignment.restart_ages) {
        restarts_at_.push_back(now_ - age);
    }
    group_ = WorkerGroup(settings_.node.workers);
    deaths_.clear();
    clean_ = false;
    effects_.emplace_back(StartWorkers{assignment, job_id_});
}

void Agent::heard(const wire::Stop& stop) {
    if ((state_ != State::kRunning && state_ != State::kFinished) || stop.generation != generation_) {
        return;
    }
    say(Severity::kWarning, "stopping round " + std::to_string(generation_.number()) + ": " + stop.why);
    const bool failure = stop.reason == wire::StopReason::kFailure;
    end_workers(Next::kReadyAgain, failure ? settings_.restart_grace : settings_.shutdown_timeout, SIGTERM);
}

void Agent::on(const WorkerStarted& event) {
    group_.started(event.local_rank, event.pid);
    if (state_ == State::kEnding && group_.state(event.local_rank) == WorkerGroup::State::kRunning) {
        ending_ = Ending::kWorkers;  // it was being started when the end was decided
        sweep_at_.reset();
        effects_.emplace_back(SignalWorkers{{event.local_rank}, killed_ ? SIGKILL : SIGTERM});
    }
}

void Agent::on(const StartFailed& event) {
    if (group_.state(event.local_rank) != WorkerGroup::State::kNotStarted ||
        group_.start_failed(event.local_rank) != WorkerGroup::State::kFailed) {
        return;
    }
    wire::Death death = death_of(event.local_rank, wire::DeathKind::kStartFailed, event.error);
    death.message = event.what;
    note_death(std::move(death));
}

void Agent::on(const WorkerEnded& event) {
    if (group_.state(event.local_rank) != WorkerGroup::State::kRunning) {
        return;
    }
    const bool success = !event.signalled && event.status == 0;
    const WorkerGroup::State state = group_.ended(event.local_rank, success, event.stopped);
    if (state == WorkerGroup::State::kFailed) {
        wire::Death death = death_of(
            event.local_rank, event.signalled ? wire::DeathKind::kSignalled : wire::DeathKind::kExited, event.status);
        death.message = event.message;
        death.stderr_tail = event.stderr_tail;
        death.error_file = event.error_file;
        note_death(std::move(death));
    }
    if (state_ == State::kEnding && ending_ == Ending::kWorkers && !group_.any_running()) {
        workers_gone();
    } else if (state_ == State::kRunning && state == WorkerGroup::State::kSucceeded) {
        check_success();
    }
}

void Agent::note_death(wire::Death death) {
    if (state_ == State::kRunning) {
        send(wire::Failed{generation_, death});
    }
    deaths_.emplace_back(std::move(death), now_);
}

void Agent::check_success() {
    if (group_.all_succeeded()) {
        state_ = State::kFinished;
        finished_notice_at_ = now_ + kFinishedNotice;
        send(wire::Finished{generation_});
    } else if (group_.succeeded() == 1) {
        send(wire::FirstExit{generation_});
    }
}

wire::Death Agent::death_of(int local_rank, wire::DeathKind kind, int status) const {
    wire::Death death;
    death.kind = kind;
    death.local_rank = local_rank;
    death.rank = base_rank_ + local_rank;
    death.node = settings_.node.name;
    death.pid = group_.pid(local_rank);
    death.status = status;
    return death;
}

// ---- signals and time -------------------------------------------------------------------------------------------

void Agent::on(const SignalCame& event) {
    const std::vector<int>& forwarded = settings_.forward_signals;
    if (std::find(forwarded.begin(), forwarded.end(), event.signal) != forwarded.end()) {
        if (state_ == State::kRunning) {
            effects_.emplace_back(SignalWorkers{group_.running(), event.signal, true});
        }
        return;
    }
    ++signals_;
    if (signals_ > 1) {
        kill_workers();
        return;
    }
    const bool started = generation_.counter > 0;
    const std::string name = signal_name(event.signal);
    if (session_) {
        send(wire::Leaving{event.signal});
    }
    if (!over_) {
        wire::JobOver over;
        over.exit_code = started ? kExitStopped : kExitSignalBase + event.signal;
        over.origin = wire::ExitOrigin::kLauncher;
        over.why = "stopped by " + name;
        over.restart_count = restart_count_;
        over_ = std::move(over);
    }
    if (state_ == State::kEnding) {
        next_ = Next::kFinish;
        say(Severity::kWarning, name + ": leaving once the workers have ended; a second signal kills at once");
        return;
    }
    const std::size_t running = group_.running().size();
    say(Severity::kWarning, running == 0 ? name + ": leaving"
                                         : name + ": ending " + std::to_string(running) +
                                               (running == 1 ? " worker, " : " workers, ") +
                                               std::to_string(static_cast<int>(seconds(settings_.shutdown_timeout))) +
                                               " s grace; a second signal kills at once");
    end_workers(Next::kFinish, settings_.shutdown_timeout, event.signal);
}

void Agent::on(const AgentTime& /*event*/) {
    if (due(seek_until_, now_)) {
        const bool first = generation_.counter == 0;
        launcher_over(first ? kExitJoinTimeout : kExitTooFewNodes,
                      "no coordinator at " + settings_.endpoint_text + " within " +
                          std::to_string(static_cast<long>(seconds(seek_limit()))) + " s" + seek_text());
        return;
    }
    if (due(seek_notice_at_, now_)) {
        seek_notice_at_ = now_ + kSeekNotice;
        const auto left = std::chrono::ceil<std::chrono::seconds>(seek_until_.value_or(now_) - now_);
        say(Severity::kInfo, "waiting for the coordinator at " + settings_.endpoint_text + seek_text() + "; " +
                                 std::to_string(left.count()) + " s left");
    }
    if (due(finished_notice_at_, now_)) {
        finished_notice_at_ = now_ + kFinishedNotice;
        say(Severity::kInfo, "all workers of this node have finished; waiting for the other nodes");
    }
    if (state_ == State::kEnding) {
        ending_time();
    }
    if (state_ != State::kOver) {
        lease_time();
    }
}

// Before a job's first round it has yet to form, afterwards it has to come back.
Duration Agent::seek_limit() const {
    return generation_.counter == 0 ? settings_.join_timeout : settings_.rejoin_timeout;
}

std::string Agent::seek_text() const {
    if (session_) {
        return ": connected, but no answer (is it ddlaunch that listens there, and does it run?)";
    }
    return ": " + (last_retry_.empty() ? "no answer" : last_retry_);
}

void Agent::on(const SystemFailed& event) {
    launcher_over(kExitInternal, event.what);
}

bool Agent::due(std::optional<Instant>& deadline, Instant now) {
    if (!deadline || *deadline > now) {
        return false;
    }
    deadline.reset();
    return true;
}

void Agent::send(wire::Message message) {
    effects_.emplace_back(ToCoordinator{std::move(message)});
}

void Agent::say(Severity severity, std::string text) {
    effects_.emplace_back(Say{severity, std::move(text)});
}

}  // namespace ddl::core
