// Joins the pure core to the world: every readiness becomes an event, every effect a call.
//
// One per process, on the main thread. A callback from the loop puts an event into the queue; the queue is worked off
// (step, perform effects, which may queue more), and the loop's alarm is set to the nearest deadline of core and logs.
// So a handler never nests and core sees one event at a time.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/node.hpp"
#include "net/loop.hpp"
#include "os/cgroup.hpp"
#include "os/guard.hpp"
#include "os/signals.hpp"
#include "plan/launch_plan.hpp"
#include "run/console.hpp"
#include "run/event_log.hpp"
#include "run/log_pump.hpp"
#include "run/rendezvous.hpp"
#include "run/store_host.hpp"
#include "run/workers.hpp"

namespace ddl::run {

struct DriverParts {
    std::optional<os::WorkerCgroup> cgroup;
    os::SignalSource signals;
    os::Guard guard;
    os::Estate estate;
    EventLog events;
};

class Driver {
public:
    Driver(const plan::LaunchPlan& plan, DriverParts parts, Console& console, ConsoleOutputs outputs);
    ~Driver();

    // Blocks until this node's part of the job is over; returns the process's exit code.
    [[nodiscard]] int run();

private:
    void put(core::NodeEvent event);
    void happened(core::NodeEvent event);
    void work();
    void arm();
    void alarm();
    void signal_ready();
    void watch_guard();
    void guard_ended();

    void perform(const core::PrepareStore& effect);
    void perform(const core::CloseStore& effect);
    void perform(const core::StartWorkers& effect);
    void perform(const core::SignalWorkers& effect);
    void perform(const core::SweepFamilies& effect);
    void perform(const core::Say& effect);
    void perform(const core::Report& effect);
    void perform(const core::Finish& effect);
    void perform(const core::MayLeave& effect);
    template <class OfRendezvous>
    void perform(const OfRendezvous& effect) {
        rendezvous_.perform(effect);
    }

    void leave_when_told();
    void leave();
    void drain_console();

    const plan::LaunchPlan& plan_;
    DriverParts parts_;
    Console& console_;
    ConsoleOutputs outputs_;
    net::Loop loop_;
    LogPump pump_;
    StoreHost store_;
    Workers workers_;
    Rendezvous rendezvous_;
    core::Node node_;
    std::unique_ptr<net::Watch> signal_watch_;
    std::unique_ptr<net::Watch> guard_watch_;
    int guards_lost_ = 0;
    std::deque<core::NodeEvent> queue_;
    bool working_ = false;
    std::optional<Instant> leave_by_;  // with what is still to be sent
    std::optional<int> reported_exit_code_;
    std::optional<int> exit_code_;  // set once this node's part is over
    bool may_leave_ = false;
    bool loop_stopped_ = false;
};

}  // namespace ddl::run
