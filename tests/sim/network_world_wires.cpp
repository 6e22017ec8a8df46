// The network of the simulated world: connections, dialling, cuts.

#include <algorithm>

#include "base/text.hpp"
#include "sim/network_world.hpp"

namespace ddl::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint16_t kEndpointPort = 29400;
constexpr auto kConnectLimit = seconds(2);
constexpr Duration kFirstPause = milliseconds(50);
constexpr Duration kLongestPause = seconds(1);

int slot_of(const std::string& address) {
    return static_cast<int>(parse_integer(address.substr(1)).value_or(0));
}

}  // namespace

Duration World::delay() {
    const int kind = below(100);
    return kind == 0 ? Duration(milliseconds(below(200))) : Duration(microseconds(50 + below(2000)));
}

void World::over_network(int from, int to, Instant earliest, std::function<void()> happen) {
    at(earliest, [this, from, to, happen = std::move(happen)] {
        if (blocked_.count({from, to}) > 0) {
            held_.push_back({from, to, happen});
        } else {
            when_it_runs(to, happen);
        }
    });
}

void World::block(int from, int to) {
    blocked_.insert({from, to});
}

void World::heal_all() {
    blocked_.clear();
    for (Held& held : std::exchange(held_, {})) {
        at(now_, [this, held = std::move(held)] { when_it_runs(held.to, held.happen); });
    }
}

// ---- connections ------------------------------------------------------------------------------------------------

void World::dial(int slot, const std::string& key, std::optional<wire::Contact> contact) {
    hang_up(slot, key);
    Process& process = processes_[static_cast<std::size_t>(slot)];
    process.wanted[key] = std::move(contact);
    const std::uint64_t token = process.dialling[key] = ++last_token_;
    try_to_connect(slot, key, token, 0, kFirstPause);
}

void World::hang_up(int slot, const std::string& key) {
    Process& process = processes_[static_cast<std::size_t>(slot)];
    process.wanted.erase(key);
    process.dialling.erase(key);
    if (const auto call = process.calls.find(key); call != process.calls.end()) {
        const int connection = call->second;
        process.calls.erase(call);
        close(connection, true);
    }
}

std::vector<std::pair<int, std::uint16_t>> World::targets(int slot, const std::string& key) const {
    const auto& contact = processes_[static_cast<std::size_t>(slot)].wanted.at(key);
    if (contact) {
        return {{slot_of(contact->address), contact->port}};
    }
    std::vector<std::pair<int, std::uint16_t>> endpoints;
    for (int i = 0; i < settings_.endpoints; ++i) {
        if (i != slot) {
            endpoints.emplace_back(i, kEndpointPort);
        }
    }
    return endpoints;
}

void World::try_to_connect(int slot, const std::string& key, std::uint64_t token, std::size_t target, Duration pause) {
    at(now_ + delay(), [this, slot, key, token, target, pause] {
        Process& process = processes_[static_cast<std::size_t>(slot)];
        const auto latest = process.dialling.find(key);
        if (!process.node || latest == process.dialling.end() || latest->second != token) {
            return;
        }
        const auto all = targets(slot, key);
        if (target >= all.size()) {
            at(now_ + pause, [this, slot, key, token, pause] {
                try_to_connect(slot, key, token, 0, std::min(2 * pause, kLongestPause));
            });
            return;
        }
        const auto [server, port] = all[target];
        const Process& other = processes_[static_cast<std::size_t>(server)];
        if (blocked_.count({slot, server}) > 0 || blocked_.count({server, slot}) > 0) {
            at(now_ + kConnectLimit,
               [this, slot, key, token, target, pause] { try_to_connect(slot, key, token, target + 1, pause); });
        } else if (other.node && other.port == port && server != slot) {
            connect(slot, key, server);
        } else {
            try_to_connect(slot, key, token, target + 1, pause);
        }
    });
}

void World::connect(int slot, const std::string& key, int server) {
    Process& client = processes_[static_cast<std::size_t>(slot)];
    const Process& other = processes_[static_cast<std::size_t>(server)];
    const int id = ++last_connection_;
    Connection& connection = connections_[id];
    connection.client = slot;
    connection.server = server;
    connection.client_incarnation = client.incarnation;
    connection.server_incarnation = other.incarnation;
    connection.key = key;
    connection.peer = static_cast<PeerId>(++last_peer_);
    connection.last_arrival = {now_, now_};
    client.calls[key] = id;
    deliver(server, other.incarnation, core::PortArrived{connection.peer, host_name(slot)});
    when_it_runs(slot, [this, id, slot, key] {
        const auto same = connections_.find(id);
        if (same == connections_.end() || !same->second.client_open) {
            return;
        }
        if (key.empty()) {
            deliver(slot, same->second.client_incarnation, core::LinkUp{host_name(slot)});
        } else {
            deliver(slot, same->second.client_incarnation, core::CallUp{key});
        }
    });
}

void World::send(int id, bool to_server, wire::Message message) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || !(to_server ? found->second.client_open : found->second.server_open)) {
        return;
    }
    Connection& connection = found->second;
    const int from = to_server ? connection.client : connection.server;
    const int to = to_server ? connection.server : connection.client;
    Instant& last = connection.last_arrival[to_server ? 0 : 1];
    last = std::max(last + microseconds(1), now_ + delay());
    over_network(from, to, last, [this, id, to_server, message = std::move(message)] {
        const auto same = connections_.find(id);
        if (same == connections_.end() || !(to_server ? same->second.server_open : same->second.client_open)) {
            return;
        }
        const Connection& there = same->second;
        if (to_server) {
            deliver(there.server, there.server_incarnation, core::PortSaid{there.peer, message});
        } else if (there.key.empty()) {
            deliver(there.client, there.client_incarnation, core::LinkSaid{message});
        } else {
            deliver(there.client, there.client_incarnation, core::CallSaid{there.key, message});
        }
    });
}

// One end is closed now; the other hears of it after all that was sent before.
void World::close(int id, bool by_client) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || !(by_client ? found->second.client_open : found->second.server_open)) {
        return;
    }
    Connection& connection = found->second;
    (by_client ? connection.client_open : connection.server_open) = false;
    const int from = by_client ? connection.client : connection.server;
    const int to = by_client ? connection.server : connection.client;
    Instant& last = connection.last_arrival[by_client ? 0 : 1];
    last = std::max(last + microseconds(1), now_ + delay());
    over_network(from, to, last, [this, id, by_client] {
        const auto same = connections_.find(id);
        if (same == connections_.end()) {
            return;
        }
        const Connection there = same->second;
        connections_.erase(same);
        if (by_client) {
            if (there.server_open) {
                deliver(there.server, there.server_incarnation, core::PortGone{there.peer, "connection closed"});
            }
            return;
        }
        Process& client = processes_[static_cast<std::size_t>(there.client)];
        if (!there.client_open || !client.node || client.incarnation != there.client_incarnation) {
            return;
        }
        client.calls.erase(there.key);
        const std::uint64_t token = client.dialling[there.key] = ++last_token_;
        at(now_ + kFirstPause, [this, slot = there.client, key = there.key, token] {
            try_to_connect(slot, key, token, 0, 2 * kFirstPause);
        });
        if (there.key.empty()) {
            deliver(there.client, there.client_incarnation, core::LinkDown{"connection closed"});
        } else {
            deliver(there.client, there.client_incarnation, core::CallDown{there.key});
        }
    });
}

void World::lose_all_connections(int slot) {
    processes_[static_cast<std::size_t>(slot)].calls.clear();
    std::vector<std::pair<int, bool>> own;
    for (const auto& [id, connection] : connections_) {
        if (connection.client == slot && connection.client_open) {
            own.emplace_back(id, true);
        } else if (connection.server == slot && connection.server_open) {
            own.emplace_back(id, false);
        }
    }
    for (const auto& [id, by_client] : own) {
        close(id, by_client);
    }
}

void World::reset_connections(int a, int b) {
    std::vector<int> between;
    for (const auto& [id, connection] : connections_) {
        if ((connection.client == a && connection.server == b) || (connection.client == b && connection.server == a)) {
            between.push_back(id);
        }
    }
    for (const int id : between) {
        const Connection connection = connections_.at(id);
        connections_.erase(id);
        at(now_ + delay(), [this, connection] {
            if (connection.server_open) {
                deliver(connection.server, connection.server_incarnation,
                        core::PortGone{connection.peer, "connection reset"});
            }
        });
        at(now_ + delay(), [this, connection, id] {
            Process& client = processes_[static_cast<std::size_t>(connection.client)];
            const auto call = client.calls.find(connection.key);
            const bool current = call != client.calls.end() && call->second == id;
            if (!client.node || client.incarnation != connection.client_incarnation || !current) {
                return;
            }
            client.calls.erase(call);
            const std::uint64_t token = client.dialling[connection.key] = ++last_token_;
            try_to_connect(connection.client, connection.key, token, 0, kFirstPause);
            if (connection.key.empty()) {
                deliver(connection.client, connection.client_incarnation, core::LinkDown{"connection reset"});
            } else {
                deliver(connection.client, connection.client_incarnation, core::CallDown{connection.key});
            }
        });
    }
}

// ---- effects of a node that concern connections -----------------------------------------------------------------

void World::perform(int slot, const core::ToPort& effect) {
    for (const auto& [id, connection] : connections_) {
        if (connection.server == slot && connection.peer == effect.peer) {
            send(id, false, effect.message);
            return;
        }
    }
}

void World::perform(int slot, const core::DropAtPort& effect) {
    for (const auto& [id, connection] : connections_) {
        if (connection.server == slot && connection.peer == effect.peer) {
            close(id, false);
            return;
        }
    }
}

void World::perform(int slot, const core::ToLink& effect) {
    perform(slot, core::SayTo{"", effect.message});
}

void World::perform(int slot, const core::SayTo& effect) {
    const auto& calls = processes_[static_cast<std::size_t>(slot)].calls;
    if (const auto call = calls.find(effect.incarnation); call != calls.end()) {
        send(call->second, true, effect.message);
    }
}

void World::perform(int slot, const core::Dial& effect) {
    dial(slot, "", effect.leader);
}

void World::perform(int slot, const core::StopDialling& /*effect*/) {
    hang_up(slot, "");
}

void World::perform(int slot, const core::Call& effect) {
    dial(slot, effect.contact.incarnation, effect.contact);
}

void World::perform(int slot, const core::HangUp& effect) {
    if (!effect.incarnation.empty()) {
        hang_up(slot, effect.incarnation);
        return;
    }
    std::vector<std::string> keys;
    for (const auto& [key, contact] : processes_[static_cast<std::size_t>(slot)].wanted) {
        if (!key.empty()) {
            keys.push_back(key);
        }
    }
    for (const std::string& key : keys) {
        hang_up(slot, key);
    }
}

}  // namespace ddl::sim
