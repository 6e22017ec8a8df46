// The sockets through which this process meets the other agents: its own port, the link to the coordinator, and calls
// to voters when the coordinator is lost.
//
// Owned by Driver. Turns what happens on them into NodeEvents for `happened`, performs the NodeEffects that concern
// them, and finds out who owns the endpoint. Decides nothing else.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "core/node.hpp"
#include "net/agent_sessions.hpp"
#include "net/loop.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::run {

struct RendezvousCallbacks {
    std::function<void(core::NodeEvent)> happened;
    std::function<void(int fd, std::string first_bytes)> store_client;  // came to the rendezvous port
    std::function<void(std::string)> warn;
    std::function<void()> became_idle;
};

class Rendezvous {
public:
    Rendezvous(net::Loop& loop, const plan::LaunchPlan& plan, RendezvousCallbacks callbacks);

    // Finds out who hosts, again and again as long as a name is not known; opens the port or dials.
    void begin();

    void perform(const core::ToPort& effect);
    void perform(const core::DropAtPort& effect);
    void perform(const core::ToLink& effect);
    void perform(const core::Dial& effect);
    void perform(const core::StopDialling& effect);
    void perform(const core::Call& effect);
    void perform(const core::HangUp& effect);
    void perform(const core::SayTo& effect);
    // Of an election elsewhere (etcd), which launch() refuses: there is nobody to tell.
    static void perform(const core::AgreeOnRound& /*effect*/) {
    }
    static void perform(const core::Resign& /*effect*/) {
    }
    static void perform(const core::CoordinatorEnded& /*effect*/) {
    }

    void close_when_sent();
    [[nodiscard]] bool idle() const;  // nothing is left to be sent
    [[nodiscard]] std::optional<Instant> next_deadline() const {
        return next_look_;
    }
    void tick(Instant now);

private:
    void look(std::size_t endpoint);
    void looked(std::size_t endpoint, const Result<std::vector<std::string>>& addresses);
    void host();
    void join();
    void dial(std::vector<net::LinkTarget> targets);
    [[nodiscard]] std::vector<net::LinkTarget> endpoints() const;
    [[nodiscard]] Result<std::unique_ptr<net::AgentHub>> listen(std::uint16_t port);

    net::Loop& loop_;
    const plan::LaunchPlan& plan_;
    RendezvousCallbacks callbacks_;
    std::unique_ptr<net::AgentHub> hub_;
    std::unique_ptr<net::AgentLink> link_;
    std::vector<net::LinkTarget> dialled_;
    std::map<std::string, std::unique_ptr<net::AgentLink>> calls_;
    std::vector<plan::Endpoint> endpoints_;
    std::vector<bool> own_;                                 // which endpoints are this node's
    std::optional<Instant> next_look_;                      // for the endpoint's owner
    std::vector<std::unique_ptr<net::AgentLink>> leaving_;  // links that still have something to send
};

}  // namespace ddl::run
