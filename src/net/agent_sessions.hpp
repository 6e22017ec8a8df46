// Both ends of the sessions between agents and the coordinator.
//
// AgentHub is the rendezvous port on the coordinator's host: it tells agent sessions from store clients by their first
// bytes and turns the former into peers. AgentLink is an agent's side: it resolves and dials the endpoint again and
// again until it is told to stop. Both only move messages; deciding is core's. Callbacks run on the loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "net/loop.hpp"
#include "net/store_server.hpp"
#include "wire/agent_message.hpp"

namespace ddl::net {

struct HubCallbacks {
    std::function<void(PeerId, std::string address)> arrived;  // numeric, v4-mapped forms normalised
    std::function<void(PeerId, wire::Message)> received;
    std::function<void(PeerId, std::string why)> gone;  // once per arrived peer; not after drop()
    // Takes the descriptor. A client older than 2.2 comes with the silent connections of its address: no first bytes.
    std::function<void(int fd, std::string first_bytes)> store_client;
    std::function<void(std::string)> warn{};  // optional: out of descriptors
    std::function<void()> became_idle{};      // optional: the last of the sessions that were dropped has been closed
};

class AgentHub {
public:
    // Listens on the port (dual-stack wildcard). Error names port and, where it can be found, the pid that has it.
    // `first_message_limit`: from a connection's first byte to its first whole message.
    [[nodiscard]] static Result<std::unique_ptr<AgentHub>> listen(
        Loop& loop, std::uint16_t port, HubCallbacks callbacks,
        Duration first_message_limit = std::chrono::seconds(10));
    ~AgentHub();

    [[nodiscard]] std::uint16_t port() const;
    void send(PeerId peer, const wire::Message& message);  // queued; dropped when the peer is gone
    void drop(PeerId peer);                                // closes after what is queued has been sent
    [[nodiscard]] bool idle() const;                       // nothing queued on any session, dropped ones are closed

private:
    struct Impl;
    explicit AgentHub(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

struct LinkCallbacks {
    std::function<void(std::string own_address)> up;  // session open; numeric address of the own end
    std::function<void(wire::Message)> received;
    std::function<void(std::string why)> down;      // after up: the session ended; dialling goes on by itself
    std::function<void(std::string why)> retrying;  // a try failed; called for the first and when the reason changes
};

struct LinkTarget {
    std::string host;
    std::uint16_t port = 0;

    friend bool operator==(const LinkTarget&, const LinkTarget&) = default;
};

class AgentLink {
public:
    // Starts dialling at once, one target after the other (at least one). Names are resolved anew for every try; all
    // addresses are tried; a pause follows when all targets have failed: 50 ms, doubled up to 1 s.
    AgentLink(Loop& loop, std::vector<LinkTarget> targets, LinkCallbacks callbacks);
    ~AgentLink();

    void send(const wire::Message& message);  // dropped when there is no session
    // No more callbacks but `closed`: once what is queued has been sent and the peer has closed its end, too, or has
    // taken too long. Never if there is no session: idle() at once.
    void close_when_sent(std::function<void()> closed);
    [[nodiscard]] bool idle() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Numeric addresses of a name, or an error from the resolver. Literals are answered without a thread; a name starts
// asio's resolver thread. `done` runs on the loop's thread, never from within this call.
void resolve(Loop& loop, const std::string& host, std::function<void(Result<std::vector<std::string>>)> done);

}  // namespace ddl::net
