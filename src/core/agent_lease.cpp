// How long this node may go on without a word from the coordinator.

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.hpp"
#include "core/agent.hpp"

namespace ddl::core {
namespace {

constexpr int kBeatsPerLease = 5;

}  // namespace

void Agent::start_beats() {
    if (leased()) {
        beat_ = 0;
        lease_until_ = {};
        send_beat();
    }
}

void Agent::stop_beats() {
    beat_at_.reset();
    silent_at_.reset();
}

void Agent::send_beat() {
    beat_before_sent_at_ = std::exchange(beat_sent_at_, now_);
    beat_answered_ = false;
    silent_at_ = now_ + settings_.terms.lease;
    send(wire::Beat{++beat_});
}

// The second beat follows at once: it tells the coordinator that the first lease has arrived.
void Agent::heard(const wire::Lease& lease) {
    if (lease.number != beat_ || beat_answered_) {
        return;
    }
    beat_answered_ = true;
    silent_at_.reset();
    take_lease(lease.number, lease.limit);
    if (lease.number == 1) {
        send_beat();
    } else {
        beat_at_ = std::max(now_, beat_sent_at_ + settings_.terms.lease / kBeatsPerLease);
    }
}

// A limit counts from the sending of the beat that it answers, however long the answer took. The coordinator in this
// process may also take back what it has granted.
void Agent::take_lease(std::uint64_t beat, Duration limit) {
    if (beat != beat_ && beat + 1 != beat_) {
        return;
    }
    const Instant until = (beat == beat_ ? beat_sent_at_ : beat_before_sent_at_) + limit;
    lease_until_ = local_ ? until : std::max(lease_until_, until);
    if (fence_at_) {
        fence_at_ = lease_until_;
    }
}

// An assignment that was long under way may be of a world that is gone.
bool Agent::may_run(const wire::Assignment& assignment) {
    if (!leased()) {
        return true;
    }
    take_lease(assignment.lease_beat, assignment.lease_limit);
    if (lease_until_ <= now_ && local_) {
        send(wire::Ready{assignment.generation, store_port_, {}});  // this process was stopped: another round, please
        return false;
    }
    if (lease_until_ <= now_) {
        leave_session("its assignment to round " + std::to_string(assignment.generation.number()) + " came too late");
        return false;
    }
    fence_at_ = lease_until_;
    return true;
}

void Agent::lease_time() {
    if (due(beat_at_, now_)) {
        send_beat();
    }
    const bool silent = due(silent_at_, now_);
    if (silent && state_ == State::kJoining) {  // it may not be the one, so others are tried
        effects_.emplace_back(DropSession{"no answer"});
        session_ = false;
        seek();
        last_retry_ = "connected, but no answer (is it ddlaunch that listens there, and does it run?)";
    } else if (silent) {
        leave_session("it has been silent for " + decimal(seconds(settings_.terms.lease)) + " s");
    }
    if (due(fence_at_, now_)) {
        fence();
    }
}

void Agent::fence() {
    if (!group_.any_running()) {
        return;
    }
    say(Severity::kWarning,
        "no lease is left: this node may have been cut off and replaced, so its workers are killed");
    if (state_ == State::kEnding) {
        kill_workers();
    } else if (local_ && session_) {
        end_workers(Next::kReadyAgain, Duration::zero(), SIGKILL);
    } else {
        leave_session("it grants no lease");
        kill_workers();
    }
}

// Ends the session from this side; what follows is the same as when the other side ends it.
void Agent::leave_session(const std::string& why) {
    effects_.emplace_back(DropSession{why});
    on(SessionDown{why});
}

}  // namespace ddl::core
