#include "run/workers.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "os/family.hpp"
#include "os/host.hpp"
#include "plan/worker_environment.hpp"
#include "run/error_file.hpp"

namespace ddl::run {
namespace {

plan::RankPlace place_of(const wire::Assignment& assignment, const std::string& job_id, int local_rank) {
    plan::RankPlace place;
    place.generation = assignment.generation.number();
    place.restart_count = assignment.restart_count;
    place.local_rank = local_rank;
    place.rank = assignment.base_rank + local_rank;
    place.world_size = assignment.world_size;
    place.group_rank = assignment.group_rank;
    place.group_world_size = assignment.group_world_size;
    place.role_rank = assignment.base_role_rank + local_rank;
    place.role_world_size = assignment.role_world_size;
    place.master_addr = assignment.master_addr;
    place.master_port = assignment.master_port;
    place.job_id = job_id;
    return place;
}

}  // namespace

Workers::Workers(net::Loop& loop, const plan::LaunchPlan& plan, std::string nonce, os::Guard& guard,
                 std::optional<os::WorkerCgroup>& cgroup, LogPump& pump, EventLog& events, Sink sink)
    : loop_(loop),
      plan_(plan),
      nonce_(std::move(nonce)),
      guard_(guard),
      cgroup_(cgroup),
      pump_(pump),
      events_(events),
      sink_(std::move(sink)),
      inherited_(os::environment()),
      descriptor_limit_(os::raise_descriptor_limit()) {
}

Workers::~Workers() = default;

void Workers::start(const wire::Assignment& assignment, const std::string& job_id) {
    workers_.clear();
    workers_.reserve(static_cast<std::size_t>(plan_.workers));
    generation_ = assignment.generation.number();
    cgroup_directory_ = cgroup_ ? cgroup_->open_round() : -1;
    for (int local_rank = 0; local_rank < plan_.workers; ++local_rank) {
        if (!start_one(place_of(assignment, job_id, local_rank))) {
            return;
        }
    }
}

bool Workers::start_one(const plan::RankPlace& place_without_files) {
    plan::RankPlace place = place_without_files;
    Result<WorkerStreams> streams = pump_.open(place);
    if (!streams) {
        sink_(core::StartFailed{place.local_rank, streams.error().message, EIO});
        return false;
    }
    place.error_file = streams->error_file;
    os::SpawnRequest request;
    request.arguments = plan::worker_arguments(plan_, place.local_rank);
    for (const plan::Variable& variable : plan::worker_environment(plan_, place, inherited_)) {
        request.environment.push_back(variable.name + "=" + variable.value);
    }
    const int serial = next_serial_++;
    request.environment.push_back(std::string(os::kSpawnIdVariable) + "=" + nonce_ + "." + std::to_string(serial));
    request.standard_out = streams->out ? streams->out.get() : -1;
    request.standard_err = streams->err ? streams->err.get() : -1;
    const bool has_stdin = plan_.stdin_mode == plan::StdinMode::kAll ||
                           (plan_.stdin_mode != plan::StdinMode::kNone && place.local_rank == plan_.stdin_rank);
    request.standard_in = has_stdin ? STDIN_FILENO : -1;
    request.cgroup = cgroup_directory_;
    request.descriptor_limit = descriptor_limit_;
    request.keep_terminal = plan_.stdin_mode == plan::StdinMode::kTerminalForSingleRank;
    auto child = os::spawn(request);
    if (!child) {
        sink_(core::StartFailed{place.local_rank, child.error().text(), child.error().error});
        return false;
    }
    guard_.note_session(child->pid);
    events_.write("worker_exec", {{"generation", static_cast<std::int64_t>(place.generation)},
                                  {"local_rank", place.local_rank},
                                  {"rank", place.rank},
                                  {"pid", child->pid}});
    const std::size_t index = workers_.size();
    Worker& worker = workers_.emplace_back();
    worker.local_rank = place.local_rank;
    worker.serial = serial;
    worker.error_file = place.error_file;
    worker.child = std::move(*child);
    worker.watch = loop_.watch_readable(worker.child.pidfd.get(), [this, index] { ended(index); });
    sink_(core::WorkerStarted{place.local_rank, worker.child.pid});
    return true;
}

void Workers::ended(std::size_t index) {
    Worker& worker = workers_[index];
    const std::optional<os::ExitStatus> status = os::reap(worker.child.pid);
    if (!status) {
        return;
    }
    worker.watch.reset();
    worker.reaped = true;
    pump_.drain(worker.local_rank);
    events_.write("worker_reaped", {{"generation", static_cast<std::int64_t>(generation_)},
                                    {"local_rank", worker.local_rank},
                                    {"pid", worker.child.pid},
                                    {"signalled", status->signalled ? 1 : 0},
                                    {"status", status->number}});
    core::WorkerEnded ended;
    ended.local_rank = worker.local_rank;
    ended.signalled = status->signalled;
    ended.status = status->number;
    // A KILL that we did not send came from elsewhere, whatever we had asked for before.
    ended.stopped = worker.stopped && !(status->signalled && status->number == SIGKILL && !worker.killed);
    const bool failed = !ended.stopped && (status->signalled || status->number != 0);
    if (failed) {
        ended.message = read_error_file(worker.error_file);
        ended.stderr_tail = pump_.stderr_tail(worker.local_rank);
        // A file outside --log-dir goes away with the agent: its text is all that is worth telling.
        const bool stays = !ended.message.empty() && !plan_.logs.directory.empty();
        ended.error_file = stays ? worker.error_file : "";
    }
    sink_(std::move(ended));
}

void Workers::signal(const std::vector<int>& local_ranks, int signal, bool forwarded) {
    for (Worker& worker : workers_) {
        const bool meant = std::find(local_ranks.begin(), local_ranks.end(), worker.local_rank) != local_ranks.end();
        if (!meant || worker.reaped || os::is_ending(worker.child.pid)) {
            continue;
        }
        worker.stopped = worker.stopped || !forwarded;
        worker.killed = worker.killed || signal == SIGKILL;
        const bool whole_group = plan_.stdin_mode != plan::StdinMode::kTerminalForSingleRank &&
                                 (signal == SIGKILL || !plan_.supervision.signal_ranks_only);
        ::kill(whole_group ? -worker.child.pid : worker.child.pid, signal);
    }
}

void Workers::reap_orphans() {
    while (const std::optional<pid_t> pid = os::ended_child()) {
        const auto found = std::find_if(workers_.begin(), workers_.end(),
                                        [&](const Worker& w) { return !w.reaped && w.child.pid == *pid; });
        if (found != workers_.end()) {
            ended(static_cast<std::size_t>(found - workers_.begin()));
        } else {
            static_cast<void>(os::reap(*pid));
        }
    }
}

std::vector<pid_t> Workers::living() const {
    std::vector<pid_t> pids;
    for (const Worker& worker : workers_) {
        if (!worker.reaped) {
            pids.push_back(worker.child.pid);
        }
    }
    return pids;
}

void Workers::sweep(int signal) {
    std::vector<pid_t> spared = living();
    spared.push_back(guard_.pid());
    if (os::reap_strangers(spared) == 0) {
        sink_(core::Swept{0, true, ""});
        return;
    }
    if (cgroup_ && signal == SIGKILL && living().empty()) {
        cgroup_->kill_round();
    }
    os::FamilyQuery query;
    query.nonce = nonce_;
    query.spared = std::move(spared);
    for (const Worker& worker : workers_) {
        query.serials.push_back(worker.serial);
        query.sessions.push_back(worker.child.pid);
    }
    const std::vector<os::Member> found = os::sweep(query, signal);
    core::Swept swept;
    swept.remaining = static_cast<int>(found.size());
    if (!found.empty()) {
        const os::Member& first = found.front();
        swept.example = first.command + " (pid " + std::to_string(first.pid) + ")" +
                        (first.wait_channel.empty() ? "" : " in " + first.wait_channel);
    }
    sink_(std::move(swept));
}

void Workers::tell_guard() {
    for (const pid_t pid : living()) {  // the number of one that was reaped may be somebody else's by now
        guard_.note_session(pid);
    }
}

void Workers::close_round() {
    pump_.close_round();
}

}  // namespace ddl::run
