// A coordinator for two to three nodes and ways to bring it into each of its phases. Peer 0 is its own agent.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "core/coordinator.hpp"
#include "unit/core/effect_text.hpp"

namespace ddl::core {

inline CoordinatorSettings coordinator_settings() {
    CoordinatorSettings settings;
    settings.terms = {"job", false, 2, 3, 3, "c10d", "digest"};
    settings.restart_rules.max_restarts = 3;
    settings.endpoint_host = "h0";
    settings.endpoint_text = "h0:29400";
    settings.local_name = "n0";
    settings.join_timeout = std::chrono::seconds(600);
    settings.last_call_timeout = std::chrono::seconds(30);
    settings.rejoin_timeout = std::chrono::seconds(60);
    settings.farewell_timeout = std::chrono::seconds(45);
    return settings;
}

class CoordinatorHarness {
public:
    explicit CoordinatorHarness(CoordinatorSettings settings = coordinator_settings())
        : settings_(settings), coordinator_(std::move(settings), Instant{}) {
    }

    std::vector<CoordinatorEffect> step(const CoordinatorEvent& event) {
        last_ = coordinator_.step(event, now_);
        return last_;
    }
    std::string text(const CoordinatorEvent& event) {
        return text_of(step(event));
    }
    static PeerId id(int peer) {
        return static_cast<PeerId>(peer);
    }
    std::string say(int peer, wire::Message message) {
        return text(PeerSaid{id(peer), std::move(message)});
    }
    std::string gone(int peer) {
        return text(PeerGone{id(peer), "closed"});
    }
    std::string time() {
        now_ = std::max(now_, coordinator_.next_deadline().value_or(now_));
        return text(TimePassed{});
    }
    void advance(Duration by) {
        now_ += by;
    }
    [[nodiscard]] std::optional<Instant> next_deadline() const {
        return coordinator_.next_deadline();
    }
    [[nodiscard]] Instant now() const {
        return now_;
    }
    // What was last sent to that peer, of that type; fails loudly when nothing was.
    template <class T>
    [[nodiscard]] T sent(int peer) const {
        for (const CoordinatorEffect& effect : last_) {
            const auto* send = std::get_if<SendTo>(&effect);
            if (send != nullptr && send->peer == id(peer) && std::holds_alternative<T>(send->message)) {
                return std::get<T>(send->message);
            }
        }
        throw std::runtime_error("not sent: " + text_of(last_));
    }
    [[nodiscard]] std::string said() const {
        std::string all;
        for (const CoordinatorEffect& effect : last_) {
            if (const auto* line = std::get_if<Say>(&effect)) {
                all += line->text + "\n";
            }
        }
        return all;
    }

    // ---- messages ----
    [[nodiscard]] wire::Hello hello(int peer) const {
        wire::Hello result;
        result.terms = settings_.terms;
        result.node.name = "n" + std::to_string(peer);
        result.node.incarnation = "process of n" + std::to_string(peer);
        result.node.connection_address = peer == 0 ? "" : address(peer);
        return result;
    }
    static std::string address(int peer) {
        return "10.0.0." + std::to_string(peer + 1);
    }
    static std::uint16_t port(int peer) {
        return static_cast<std::uint16_t>(40000 + peer);
    }
    static wire::Ready ready(int peer, std::uint32_t ended = 0) {
        return {{0, ended}, port(peer), {}};
    }
    static wire::Failed failed(int rank, std::uint32_t round, int code = 1) {
        wire::Failed result{{0, round}, {}};
        result.death.rank = rank;
        result.death.node = "n" + std::to_string(rank);
        result.death.status = code;
        return result;
    }

    // ---- into the phases ----
    void arrive(int peer) {
        step(PeerArrived{id(peer), peer == 0 ? "" : address(peer)});
    }
    void greet(int peer) {
        arrive(peer);
        say(peer, hello(peer));
    }
    void join(int peer) {
        greet(peer);
        say(peer, ready(peer));
    }
    void gather() {  // n0 waits
        join(0);
    }
    void run() {  // n0 and n1 run round 1; there is room for a third node
        join(0);
        join(1);
        advance(settings_.last_call_timeout);
        time();
    }
    void stop() {  // n0 has failed, nobody is ready
        run();
        say(0, failed(0, 1));
    }
    void stop_with_one_ready() {
        stop();
        say(0, ready(0, 1));
    }
    void gather_again() {  // n1 was lost, n0 waits for it
        run();
        gone(1);
        say(0, ready(0, 1));
    }
    void grow() {  // n0 and n1 run, n4 has come and is about to be taken in
        run();
        join(4);
    }
    void be_over() {  // all have finished, n1 has not left yet
        run();
        say(0, wire::Finished{{0, 1}});
        say(1, wire::Finished{{0, 1}});
    }

private:
    CoordinatorSettings settings_;
    Instant now_{};
    Coordinator coordinator_;
    std::vector<CoordinatorEffect> last_;
};

}  // namespace ddl::core
