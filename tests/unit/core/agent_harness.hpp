// An agent of two workers on node n1 and ways to bring it into each of its states.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "core/agent.hpp"
#include "unit/core/effect_text.hpp"

namespace ddl::core {

inline AgentSettings agent_settings() {
    AgentSettings settings;
    settings.terms = {"", false, 2, 2, 3, "c10d", "digest"};
    settings.node.name = "n1";
    settings.node.incarnation = "n1.1";
    settings.node.workers = 2;
    settings.endpoint_text = "h0:29400";
    settings.join_timeout = std::chrono::seconds(600);
    settings.rejoin_timeout = std::chrono::seconds(60);
    settings.restart_grace = std::chrono::seconds(2);
    settings.shutdown_timeout = std::chrono::seconds(30);
    return settings;
}

class AgentHarness {
public:
    explicit AgentHarness(AgentSettings settings = agent_settings()) : agent_(std::move(settings), Instant{}) {
    }

    std::vector<AgentEffect> step(const AgentEvent& event) {
        last_ = agent_.step(event, now_);
        return last_;
    }
    std::string text(const AgentEvent& event) {
        return text_of(step(event));
    }
    std::string hear(wire::Message message) {
        return text(FromCoordinator{std::move(message)});
    }
    // At the next deadline, or now when there is none.
    std::string time() {
        now_ = std::max(now_, agent_.next_deadline().value_or(now_));
        return text(AgentTime{});
    }
    void advance(Duration by) {
        now_ += by;
    }
    [[nodiscard]] std::optional<Instant> next_deadline() const {
        return agent_.next_deadline();
    }
    [[nodiscard]] Instant now() const {
        return now_;
    }
    // The effect of that kind from the last step; fails loudly when there was none.
    template <class T>
    [[nodiscard]] T last() const {
        for (const AgentEffect& effect : last_) {
            if (const T* found = std::get_if<T>(&effect)) {
                return *found;
            }
        }
        throw std::runtime_error("no such effect: " + text_of(last_));
    }
    template <class T>
    [[nodiscard]] T last_message() const {
        return std::get<T>(last<ToCoordinator>().message);
    }

    // ---- into the states ----
    void join() {
        step(SessionUp{"10.0.0.2"});
    }
    void welcome() {
        join();
        hear(wire::Welcome{"job", 0});
    }
    void wait() {
        welcome();
        step(StorePrepared{40101});
    }
    static wire::Assignment assignment(std::uint32_t counter) {
        wire::Assignment result;
        result.generation = {0, counter};
        result.restart_count = static_cast<int>(counter) - 1;
        result.group_rank = 1;
        result.group_world_size = 2;
        result.base_rank = 2;
        result.world_size = 4;
        return result;
    }
    void begin() {
        wait();
        hear(assignment(1));
    }
    void run() {
        begin();
        step(WorkerStarted{0, 100});
        step(WorkerStarted{1, 101});
    }
    static WorkerEnded ended(int local_rank, int status, bool stopped = false) {
        WorkerEnded result;
        result.local_rank = local_rank;
        result.status = status;
        result.stopped = stopped;
        return result;
    }
    void finish_workers() {
        run();
        step(ended(0, 0));
        step(ended(1, 0));
    }
    void stop() {
        run();
        hear(wire::Stop{{0, 1}, wire::StopReason::kFailure, "rank 0 died"});
    }
    void sweep() {
        stop();
        step(ended(0, 0, true));
        step(ended(1, 0, true));
    }
    void wait_again() {
        sweep();
        step(Swept{0, true, ""});
        step(StorePrepared{40102});
    }
    void seek_again() {
        run();
        step(SessionDown{"reset"});
        step(ended(0, 0, true));
        step(ended(1, 0, true));
        step(Swept{0, true, ""});
    }
    void leave() {
        run();
        step(SignalCame{SIGTERM});
    }
    void be_over() {
        step(SignalCame{SIGTERM});
    }

private:
    Instant now_{};
    Agent agent_;
    std::vector<AgentEffect> last_;
};

}  // namespace ddl::core
