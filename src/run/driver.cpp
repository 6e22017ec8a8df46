#include "run/driver.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.hpp"
#include "core/restart_policy.hpp"
#include "os/clock.hpp"
#include "os/host.hpp"
#include "run/report.hpp"
#include "run/result_file.hpp"
#include "run/settings.hpp"

namespace ddl::run {
namespace {

constexpr int kMostGuardsLost = 20;  // whoever kills that many will kill the next one, too
constexpr auto kLeaveLimit = std::chrono::seconds(2);

}  // namespace

Driver::Driver(const plan::LaunchPlan& plan, DriverParts parts, Console& console, ConsoleOutputs outputs)
    : plan_(plan),
      parts_(std::move(parts)),
      console_(console),
      outputs_(outputs),
      pump_(
          loop_, plan, [this](const std::string& text) { console_.warn(text); }, outputs),
      store_(loop_, plan, [this](const std::string& text) { console_.warn(text); }),
      workers_(loop_, plan, parts_.estate.nonce, parts_.guard, parts_.cgroup, pump_, parts_.events,
               [this](core::AgentEvent event) { happened(std::move(event)); }),
      rendezvous_(loop_, plan,
                  {.happened = [this](core::NodeEvent event) { happened(std::move(event)); },
                   .store_client = [this](int fd, std::string bytes) { store_.adopt(fd, std::move(bytes)); },
                   .warn = [this](const std::string& text) { console_.warn(text); },
                   .became_idle =
                       [this] {
                           leave_when_told();
                       }}),
      node_(node_settings(plan, parts_.estate.nonce), os::now()) {
    pump_.when_deadline_is_earlier([this] { arm(); });
}

Driver::~Driver() = default;

int Driver::run() {
    pump_.keep_error_files_in(parts_.estate.directory);
    watch_guard();
    signal_watch_ = loop_.watch_readable(parts_.signals.fd(), [this] { signal_ready(); });
    rendezvous_.begin();
    work();
    if (!loop_stopped_) {
        loop_.run();
    }
    signal_watch_.reset();
    guard_watch_.reset();
    parts_.guard.let_go();  // it takes a moment to exit: the rest is cleared away meanwhile
    pump_.close();
    store_.release();
    drain_console();
    parts_.guard.dismiss();
    return *exit_code_;
}

// ---- the queue --------------------------------------------------------------------------------------------------

void Driver::put(core::NodeEvent event) {
    queue_.push_back(std::move(event));
}

void Driver::happened(core::NodeEvent event) {
    put(std::move(event));
    work();
}

void Driver::work() {
    if (working_) {
        return;
    }
    working_ = true;
    while (!queue_.empty()) {
        const core::NodeEvent event = std::move(queue_.front());
        queue_.pop_front();
        for (const core::NodeEffect& effect : node_.step(event, os::now())) {
            std::visit([this](const auto& e) { perform(e); }, effect);
        }
    }
    working_ = false;
    leave_when_told();
    arm();
}

void Driver::arm() {
    std::optional<Instant> next;
    const auto consider = [&next](std::optional<Instant> deadline) {
        if (deadline && (!next || *deadline < *next)) {
            next = deadline;
        }
    };
    consider(node_.next_deadline());
    consider(pump_.next_deadline());
    consider(rendezvous_.next_deadline());
    consider(leave_by_);
    loop_.set_alarm(next, [this] { alarm(); });
}

void Driver::alarm() {
    const Instant now = os::now();
    const auto due = [now](std::optional<Instant> deadline) {
        return deadline && *deadline <= now;
    };
    if (due(node_.next_deadline())) {
        put(core::NodeTime{});
    }
    if (due(pump_.next_deadline())) {
        pump_.tick(now);
    }
    rendezvous_.tick(now);
    work();
}

void Driver::signal_ready() {
    while (const std::optional<int> signal = parts_.signals.next()) {
        if (*signal == SIGCHLD) {
            workers_.reap_orphans();
            continue;
        }
        const std::vector<int>& forwarded = plan_.supervision.forward_signals;
        const bool stops = std::find(forwarded.begin(), forwarded.end(), *signal) == forwarded.end();
        if (exit_code_ && stops) {  // only others are waited for: no more patience
            leave();
            return;
        }
        put(core::AgentEvent(core::SignalCame{*signal}));
    }
    work();
}

void Driver::watch_guard() {
    guard_watch_ = loop_.watch_readable(parts_.guard.pidfd(), [this] { guard_ended(); });
}

// Somebody killed it, or the machine ran out of memory: the job goes on, and is guarded by another from now on.
void Driver::guard_ended() {
    guard_watch_.reset();
    parts_.guard.dismiss();  // reaps it
    Result<os::Guard> next = fail("too many were killed");
    if (++guards_lost_ <= kMostGuardsLost) {
        next = os::Guard::start(parts_.estate);
    }
    pump_.end_line();
    if (!next) {
        console_.warn("the guard process was killed, and there will be no other (" + next.error().message +
                      "): if this agent is killed too, descendants of its workers may stay");
        return;
    }
    parts_.guard = std::move(*next);
    workers_.tell_guard();
    watch_guard();
    console_.warn("the guard process (ddl-guard) was killed; a new one was started");
}

// ---- effects of the agent ---------------------------------------------------------------------------------------

void Driver::perform(const core::PrepareStore& /*effect*/) {
    const Result<std::uint16_t> port = store_.prepare();
    if (port) {
        put(core::AgentEvent(core::StorePrepared{*port}));
    } else {
        put(core::AgentEvent(core::SystemFailed{"worker store: " + port.error().message}));
    }
}

void Driver::perform(const core::CloseStore& /*effect*/) {
    store_.close();
    pump_.close_round();
}

void Driver::perform(const core::StartWorkers& effect) {
    const wire::Assignment& round = effect.assignment;
    parts_.events.write("round", {{"generation", static_cast<std::int64_t>(round.generation.number())},
                                  {"restart_count", round.restart_count},
                                  {"group_rank", round.group_rank},
                                  {"world_size", round.world_size}});
    if (!round.serves_store) {
        store_.withdraw();
    } else if (auto served = store_.serve(round.store_clients, round.world_size); !served) {
        put(core::AgentEvent(core::SystemFailed{"worker store: " + served.error().message}));
        return;
    }
    workers_.start(round, effect.job_id);
}

void Driver::perform(const core::SignalWorkers& effect) {
    workers_.signal(effect.local_ranks, effect.signal, effect.forwarded);
}

void Driver::perform(const core::SweepFamilies& effect) {
    workers_.sweep(effect.signal);
}

void Driver::perform(const core::Say& effect) {
    pump_.end_line();
    switch (effect.severity) {
        case core::Severity::kInfo:
            console_.note(effect.text);
            break;
        case core::Severity::kWarning:
            console_.warn(effect.text);
            break;
        case core::Severity::kError:
            console_.error(effect.text);
            break;
    }
}

void Driver::perform(const core::Report& effect) {
    const wire::JobOver& over = effect.over;
    pump_.close_round();
    parts_.events.write("job_over", {{"exit_code", over.exit_code}, {"restart_count", over.restart_count}},
                        {{"why", over.why}});
    if (over.exit_code != 0) {
        console_.print(failure_report(over));
    }
    if (!plan_.result_file.empty()) {
        if (auto written = write_result_file(plan_.result_file, over); !written) {
            console_.warn(written.error().message);
        }
    }
    reported_exit_code_ = plan_.exit_code_class ? exit_code_class(over) : over.exit_code;
}

void Driver::perform(const core::Finish& effect) {
    exit_code_ = reported_exit_code_.value_or(effect.exit_code);
    rendezvous_.close_when_sent();
}

void Driver::perform(const core::MayLeave& /*effect*/) {
    may_leave_ = true;
}

// ---- leaving ----------------------------------------------------------------------------------------------------

// The coordinator's process stays until the other agents have left; every process stays until its last words are sent.
void Driver::leave_when_told() {
    if (!exit_code_ || (node_.coordinates() && !may_leave_)) {
        return;
    }
    if (!leave_by_) {
        leave_by_ = os::now() + kLeaveLimit;
    }
    if (rendezvous_.idle() || *leave_by_ <= os::now()) {
        leave();
    }
}

void Driver::leave() {
    loop_stopped_ = true;
    loop_.stop();
}

// The job is over: a reader that is slow gets its time, unless a signal says that it is not waited for.
void Driver::drain_console() {
    drain(outputs_, parts_.signals.fd(), [this] {
        bool stop = false;
        while (const std::optional<int> signal = parts_.signals.next()) {
            stop = stop || *signal != SIGCHLD;
        }
        return stop;
    });
}

}  // namespace ddl::run
