// The hands that start, watch, signal and reap this node's workers and clear their families.
//
// Owned by run::Driver. Turns core's effects into system calls and what the kernel says into core's events, which go to
// `sink` (as the last thing that a callback does: what comes of it may start the next round). Must live on the main
// thread: parent-death signals are bound to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent.hpp"
#include "net/loop.hpp"
#include "os/cgroup.hpp"
#include "os/guard.hpp"
#include "os/process.hpp"
#include "plan/launch_plan.hpp"
#include "run/event_log.hpp"
#include "run/log_pump.hpp"

namespace ddl::run {

class Workers {
public:
    using Sink = std::function<void(core::AgentEvent)>;

    Workers(net::Loop& loop, const plan::LaunchPlan& plan, std::string nonce, os::Guard& guard,
            std::optional<os::WorkerCgroup>& cgroup, LogPump& pump, EventLog& events, Sink sink);
    ~Workers();

    // Starts all local ranks; stops at the first that cannot be started.
    void start(const wire::Assignment& assignment, const std::string& job_id);
    // A worker that has ended by itself but was not reaped yet is left alone, so that its death stays its own.
    void signal(const std::vector<int>& local_ranks, int signal, bool forwarded = false);
    void sweep(int signal);
    // Orphans of workers are given to this process and would stay zombies. For SIGCHLD.
    void reap_orphans();
    // Tells a new guard of the living workers' sessions.
    void tell_guard();
    void close_round();

private:
    struct Worker {
        int local_rank = 0;
        int serial = 0;
        os::Child child;
        std::unique_ptr<net::Watch> watch;
        std::string error_file;
        bool stopped = false;
        bool killed = false;  // by a SIGKILL of ours
        bool reaped = false;
    };

    [[nodiscard]] bool start_one(const plan::RankPlace& place);
    void ended(std::size_t index);
    [[nodiscard]] std::vector<pid_t> living() const;

    net::Loop& loop_;
    const plan::LaunchPlan& plan_;
    std::string nonce_;
    os::Guard& guard_;
    std::optional<os::WorkerCgroup>& cgroup_;
    LogPump& pump_;
    EventLog& events_;
    Sink sink_;
    std::vector<std::string> inherited_;
    std::optional<std::size_t> descriptor_limit_;  // what the workers should get
    std::vector<Worker> workers_;
    std::uint64_t generation_ = 0;
    int cgroup_directory_ = -1;
    int next_serial_ = 1;
};

}  // namespace ddl::run
