#include "run/rendezvous.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "os/clock.hpp"
#include "os/host.hpp"

namespace ddl::run {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(500);

std::vector<plan::Endpoint> endpoints_of(const plan::LaunchPlan& plan) {
    return plan.rendezvous.endpoints.empty() ? std::vector{plan.rendezvous.endpoint} : plan.rendezvous.endpoints;
}

}  // namespace

Rendezvous::Rendezvous(net::Loop& loop, const plan::LaunchPlan& plan, RendezvousCallbacks callbacks)
    : loop_(loop),
      plan_(plan),
      callbacks_(std::move(callbacks)),
      endpoints_(endpoints_of(plan)),
      own_(endpoints_.size(), false) {
}

// ---- this agent's own port --------------------------------------------------------------------------------------

Result<std::unique_ptr<net::AgentHub>> Rendezvous::listen(std::uint16_t port) {
    net::HubCallbacks callbacks;
    callbacks.arrived = [this](PeerId peer, std::string address) {
        callbacks_.happened(core::PortArrived{peer, std::move(address)});
    };
    callbacks.received = [this](PeerId peer, wire::Message message) {
        callbacks_.happened(core::PortSaid{peer, std::move(message)});
    };
    callbacks.gone = [this](PeerId peer, std::string why) {
        callbacks_.happened(core::PortGone{peer, std::move(why)});
    };
    callbacks.store_client = callbacks_.store_client;
    callbacks.warn = callbacks_.warn;
    callbacks.became_idle = callbacks_.became_idle;
    return net::AgentHub::listen(loop_, port, std::move(callbacks));
}

void Rendezvous::host() {
    if (plan_.rendezvous.kind != plan::Rendezvous::kLocal) {
        auto hub = listen(plan_.rendezvous.endpoint.port);
        if (!hub) {
            callbacks_.happened(core::AgentEvent(core::SystemFailed{"rendezvous: " + hub.error().message}));
            return;
        }
        hub_ = std::move(*hub);
        callbacks_.happened(core::PortOpened{hub_->port(), own_.size() > 1});
    }
    callbacks_.happened(core::OwnsEndpoint{});
}

// Whoever may take over can be reached from the start: at its own endpoint where newcomers look, else anywhere, so that
// the rendezvous port of this host stays free for other jobs.
void Rendezvous::join() {
    if (plan_.rendezvous.takeover && !hub_) {
        const auto own = std::find(own_.begin(), own_.end(), true) - own_.begin();
        const bool candidate = static_cast<std::size_t>(own) < own_.size();
        auto hub = listen(candidate ? endpoints_[static_cast<std::size_t>(own)].port : 0);
        if (hub) {
            hub_ = std::move(*hub);
            callbacks_.happened(core::PortOpened{hub_->port(), candidate});
        } else {
            callbacks_.warn("this node cannot take over if the coordinator is lost: " + hub.error().message);
        }
    }
    dial(endpoints());
}

void Rendezvous::perform(const core::ToPort& effect) {
    if (hub_) {
        hub_->send(effect.peer, effect.message);
    }
}

void Rendezvous::perform(const core::DropAtPort& effect) {
    if (hub_) {
        hub_->drop(effect.peer);
    }
}

// ---- who hosts --------------------------------------------------------------------------------------------------

void Rendezvous::begin() {
    const plan::RendezvousPlan& rendezvous = plan_.rendezvous;
    if (rendezvous.kind == plan::Rendezvous::kLocal || rendezvous.is_host.value_or(false)) {
        host();
    } else if (rendezvous.is_host.has_value()) {
        join();
    } else if (rendezvous.kind == plan::Rendezvous::kStatic) {
        rendezvous.node_rank == 0 ? host() : join();
    } else {
        look(0);
    }
}

void Rendezvous::look(std::size_t endpoint) {
    net::resolve(loop_, endpoints_.at(endpoint).host,
                 [this, endpoint](const Result<std::vector<std::string>>& found) { looked(endpoint, found); });
}

// The owner of the first endpoint's address hosts, whatever the machine is called; all of 127.0.0.0/8 is one's own
// (Debian gives a host's own name 127.0.1.1). A name may not be known yet: look again until the agent's join deadline.
void Rendezvous::looked(std::size_t endpoint, const Result<std::vector<std::string>>& addresses) {
    if (addresses) {
        const std::vector<std::string> own = os::interface_addresses();
        own_[endpoint] = std::any_of(addresses->begin(), addresses->end(), [&](const std::string& address) {
            const std::string plain = plain_address(address);
            return plain.starts_with("127.") || std::find(own.begin(), own.end(), plain) != own.end();
        });
    } else if (endpoint == 0) {
        callbacks_.happened(core::AgentEvent(core::SessionRetry{addresses.error().message}));
        next_look_ = os::now() + kLookAgain;
        return;
    }
    if (endpoint + 1 < own_.size()) {
        look(endpoint + 1);
        return;
    }
    own_.front() ? host() : join();
}

void Rendezvous::tick(Instant now) {
    if (next_look_ && *next_look_ <= now) {
        next_look_.reset();
        begin();
    }
}

// ---- the link to the coordinator --------------------------------------------------------------------------------

// An endpoint of this node's own is no place to look for somebody else.
std::vector<net::LinkTarget> Rendezvous::endpoints() const {
    std::vector<net::LinkTarget> targets;
    for (std::size_t i = 0; i < own_.size(); ++i) {
        if (!own_[i]) {
            targets.push_back({endpoints_[i].host, endpoints_[i].port});
        }
    }
    return targets;
}

void Rendezvous::dial(std::vector<net::LinkTarget> targets) {
    if (link_ != nullptr) {
        link_->close_when_sent([] {});
        leaving_.push_back(std::move(link_));
        std::erase_if(leaving_, [](const auto& link) { return link->idle(); });
    }
    if (targets.empty()) {
        return;
    }
    net::LinkCallbacks callbacks;
    callbacks.up = [this](std::string own) {
        callbacks_.happened(core::LinkUp{std::move(own)});
    };
    callbacks.received = [this](wire::Message message) {
        callbacks_.happened(core::LinkSaid{std::move(message)});
    };
    callbacks.down = [this](std::string why) {
        callbacks_.happened(core::LinkDown{std::move(why)});
    };
    callbacks.retrying = [this](std::string why) {
        callbacks_.happened(core::AgentEvent(core::SessionRetry{std::move(why)}));
    };
    link_ = std::make_unique<net::AgentLink>(loop_, std::move(targets), std::move(callbacks));
}

void Rendezvous::perform(const core::ToLink& effect) {
    if (link_) {
        link_->send(effect.message);
    }
}

void Rendezvous::perform(const core::Dial& effect) {
    if (effect.leader) {
        dial({{effect.leader->address, effect.leader->port}});
    } else {
        dial(endpoints());
    }
}

void Rendezvous::perform(const core::StopDialling& /*effect*/) {
    dial({});
}

// ---- calls ------------------------------------------------------------------------------------------------------

void Rendezvous::perform(const core::Call& effect) {
    const std::string& name = effect.contact.incarnation;
    net::LinkCallbacks callbacks;
    callbacks.up = [this, name](const std::string& /*own*/) {
        callbacks_.happened(core::CallUp{name});
    };
    callbacks.received = [this, name](wire::Message message) {
        callbacks_.happened(core::CallSaid{name, std::move(message)});
    };
    callbacks.down = [this, name](const std::string& /*why*/) {
        callbacks_.happened(core::CallDown{name});
    };
    callbacks.retrying = [](const std::string& /*why*/) {
    };
    std::vector<net::LinkTarget> target = {{effect.contact.address, effect.contact.port}};
    calls_[name] = std::make_unique<net::AgentLink>(loop_, std::move(target), std::move(callbacks));
}

void Rendezvous::perform(const core::HangUp& effect) {
    for (auto call = calls_.begin(); call != calls_.end();) {
        if (effect.incarnation.empty() || call->first == effect.incarnation) {
            call->second->close_when_sent([] {});
            leaving_.push_back(std::move(call->second));
            call = calls_.erase(call);
        } else {
            ++call;
        }
    }
    std::erase_if(leaving_, [](const auto& link) { return link->idle(); });
}

void Rendezvous::perform(const core::SayTo& effect) {
    if (const auto call = calls_.find(effect.incarnation); call != calls_.end()) {
        call->second->send(effect.message);
    }
}

// ---- leaving ----------------------------------------------------------------------------------------------------

void Rendezvous::close_when_sent() {
    calls_.clear();
    if (link_) {
        link_->close_when_sent(callbacks_.became_idle);
    }
}

bool Rendezvous::idle() const {
    return (!hub_ || hub_->idle()) && (!link_ || link_->idle()) &&
           std::all_of(leaving_.begin(), leaving_.end(), [](const auto& link) { return link->idle(); });
}

}  // namespace ddl::run
