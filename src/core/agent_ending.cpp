// How a node ends its workers: politely, then not, then their families; and what comes after.

#include <csignal>
#include <utility>

#include "core/agent.hpp"
#include "core/restart_policy.hpp"

namespace ddl::core {
namespace {

// From KILL until a process that still exists is called unkillable (uninterruptible sleep).
constexpr auto kUnkillable = std::chrono::seconds(10);
constexpr auto kFirstSweepPause = std::chrono::milliseconds(2);
constexpr auto kLongestSweepPause = std::chrono::milliseconds(100);

}  // namespace

void Agent::finish_with(wire::JobOver over) {
    over_ = std::move(over);
    if (state_ == State::kEnding) {
        next_ = Next::kFinish;
        return;
    }
    end_workers(Next::kFinish, settings_.shutdown_timeout, SIGTERM);
}

void Agent::launcher_over(int exit_code, std::string why) {
    wire::JobOver over;
    over.exit_code = exit_code;
    over.origin = wire::ExitOrigin::kLauncher;
    over.why = std::move(why);
    over.restart_count = restart_count_;
    finish_with(std::move(over));
}

void Agent::end_workers(Next next, Duration grace, int signal) {
    polite_sweeps_ = state_ == State::kFinished && next == Next::kFinish;
    state_ = State::kEnding;
    ending_ = Ending::kWorkers;
    next_ = next;
    killed_ = false;
    kill_at_ = now_ + grace;
    give_up_at_.reset();
    finished_notice_at_.reset();
    seek_until_.reset();
    seek_notice_at_.reset();
    if (!group_.any_running()) {
        workers_gone();
    } else if (grace == Duration::zero()) {
        kill_workers();
    } else {
        effects_.emplace_back(SignalWorkers{group_.running(), signal});
    }
}

void Agent::kill_workers() {
    if (state_ != State::kEnding || killed_) {
        return;
    }
    killed_ = true;
    polite_sweeps_ = false;
    kill_at_.reset();
    give_up_at_ = now_ + kUnkillable;
    if (ending_ == Ending::kWorkers) {
        effects_.emplace_back(SignalWorkers{group_.running(), SIGKILL});
    } else {
        sweep_at_.reset();
        sweep();
    }
}

void Agent::workers_gone() {
    ending_ = Ending::kFamilies;
    empty_sweeps_ = 0;
    sweep_pause_ = kFirstSweepPause;
    if (clean_ || (settings_.keep_children && polite_sweeps_)) {
        families_gone();
        return;
    }
    if (!polite_sweeps_ && !killed_) {
        killed_ = true;
        kill_at_.reset();
        give_up_at_ = now_ + kUnkillable;
    }
    effects_.emplace_back(SweepFamilies{polite_sweeps_ ? SIGTERM : SIGKILL});
}

void Agent::sweep() {
    effects_.emplace_back(SweepFamilies{killed_ ? SIGKILL : 0});
}

void Agent::on(const Swept& event) {
    if (state_ != State::kEnding || ending_ != Ending::kFamilies) {
        return;
    }
    constexpr int kEmptyIsGone = 2;
    empty_sweeps_ = event.remaining == 0 ? empty_sweeps_ + 1 : 0;
    if ((event.remaining == 0 && event.certain) || empty_sweeps_ >= kEmptyIsGone) {
        families_gone();
        return;
    }
    last_example_ = event.example;
    sweep_at_ = now_ + sweep_pause_;
    sweep_pause_ = std::min<Duration>(2 * sweep_pause_, kLongestSweepPause);
}

void Agent::families_gone() {
    kill_at_.reset();
    give_up_at_.reset();
    sweep_at_.reset();
    fence_at_.reset();
    clean_ = true;
    switch (next_) {
        case Next::kReadyAgain:
            state_ = State::kPreparing;
            effects_.emplace_back(CloseStore{});
            effects_.emplace_back(PrepareStore{});
            break;
        case Next::kSeek:
            effects_.emplace_back(CloseStore{});
            seek();
            break;
        case Next::kFinish:
            finish();
            break;
    }
}

void Agent::ending_time() {
    if (due(kill_at_, now_)) {
        kill_workers();
    }
    if (due(sweep_at_, now_)) {
        sweep();
    }
    constexpr auto kLate = std::chrono::seconds(1);
    if (give_up_at_ && *give_up_at_ + kLate <= now_) {
        give_up_at_ = now_ + kLate;  // this process was stopped itself: it has yet to hear what has ended meanwhile
    }
    if (due(give_up_at_, now_)) {
        const std::vector<int> running = group_.running();
        give_up(running.empty() ? last_example_
                                : "rank " + std::to_string(base_rank_ + running.front()) + " (pid " +
                                      std::to_string(group_.pid(running.front())) + ")");
    }
}

// A process that outlives SIGKILL sits in the kernel: nothing can be done about it from here.
void Agent::give_up(const std::string& who) {
    wire::JobOver over;
    over.exit_code = kExitInternal;
    over.origin = wire::ExitOrigin::kLauncher;
    over.why = who + " does not end although it was killed (uninterruptible sleep?)";
    over.restart_count = restart_count_;
    over_ = std::move(over);
    finish();
}

void Agent::finish() {
    state_ = State::kOver;
    kill_at_.reset();
    give_up_at_.reset();
    sweep_at_.reset();
    seek_until_.reset();
    seek_notice_at_.reset();
    finished_notice_at_.reset();
    fence_at_.reset();
    stop_beats();
    effects_.emplace_back(Report{*over_});
    effects_.emplace_back(Finish{over_->exit_code});
}

}  // namespace ddl::core
