#include "core/worker_group.hpp"

#include <algorithm>

namespace ddl::core {

WorkerGroup::Worker* WorkerGroup::find(int local_rank) {
    const auto index = static_cast<std::size_t>(local_rank);
    return local_rank >= 0 && index < workers_.size() ? &workers_[index] : nullptr;
}

const WorkerGroup::Worker* WorkerGroup::find(int local_rank) const {
    const auto index = static_cast<std::size_t>(local_rank);
    return local_rank >= 0 && index < workers_.size() ? &workers_[index] : nullptr;
}

void WorkerGroup::started(int local_rank, int pid) {
    if (Worker* worker = find(local_rank); worker != nullptr && worker->state == State::kNotStarted) {
        *worker = {State::kRunning, pid};
    }
}

WorkerGroup::State WorkerGroup::ended(int local_rank, bool success, bool stopped) {
    Worker* worker = find(local_rank);
    if (worker == nullptr) {
        return State::kNotStarted;
    }
    if (worker->state == State::kRunning) {
        worker->state = stopped ? State::kStopped : success ? State::kSucceeded : State::kFailed;
    }
    return worker->state;
}

WorkerGroup::State WorkerGroup::start_failed(int local_rank) {
    Worker* worker = find(local_rank);
    if (worker == nullptr) {
        return State::kNotStarted;
    }
    if (worker->state == State::kNotStarted) {
        worker->state = State::kFailed;
    }
    return worker->state;
}

WorkerGroup::State WorkerGroup::state(int local_rank) const {
    const Worker* worker = find(local_rank);
    return worker == nullptr ? State::kNotStarted : worker->state;
}

int WorkerGroup::pid(int local_rank) const {
    const Worker* worker = find(local_rank);
    return worker == nullptr ? 0 : worker->pid;
}

std::vector<int> WorkerGroup::running() const {
    std::vector<int> ranks;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (workers_[i].state == State::kRunning) {
            ranks.push_back(static_cast<int>(i));
        }
    }
    return ranks;
}

bool WorkerGroup::any_running() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.state == State::kRunning; });
}

bool WorkerGroup::all_succeeded() const {
    return succeeded() == static_cast<int>(workers_.size());
}

int WorkerGroup::succeeded() const {
    return static_cast<int>(
        std::count_if(workers_.begin(), workers_.end(), [](const Worker& w) { return w.state == State::kSucceeded; }));
}

}  // namespace ddl::core
