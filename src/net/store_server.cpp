#include "net/store_server.hpp"

#include <sys/socket.h>

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/store_session.hpp"
#include "net/address.hpp"
#include "net/connection.hpp"
#include "net/listener.hpp"
#include "net/refusals.hpp"
#include "net/silence.hpp"
#include "net/timer.hpp"
#include "os/clock.hpp"
#include "wire/first_bytes.hpp"

namespace ddl::net {
namespace {

using core::ConnectionId;

std::uint64_t number(ConnectionId id) {
    return static_cast<std::uint64_t>(id);
}

}  // namespace

struct StoreServer::Impl {
    struct Client {
        std::shared_ptr<Connection> connection;
        std::string address;
        bool spoke = false;
        bool member = false;             // of the allow-list, not only let in because everybody is
        std::string first_bytes{};       // of a stranger, until they tell what it is
        std::unique_ptr<Timer> limit{};  // for those
        bool draining = false;           // a call of drained() is posted
    };

    // What was allowed by serve(); none: not serving.
    struct Service {
        bool any = false;
        AddressSet members;
        SilentConnections silent;
    };

    Impl(Loop& a_loop, StoreOptions a_options, core::OldRelease compat)
        : loop(a_loop), options(std::move(a_options)), sessions(compat) {
    }
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    [[nodiscard]] std::uint16_t port() const {
        return listener != nullptr ? listener->port() : options.port;
    }
    void admit(os::Fd fd, const std::string& address, std::string_view first_bytes);
    void begin(ConnectionId id, std::string_view first_bytes);
    void read(ConnectionId id, std::string_view bytes);
    void watch_stranger(ConnectionId id, Client& client, std::string_view bytes);
    void ended(ConnectionId id);
    void drop(ConnectionId id);
    void drop_silent(const std::string& address);
    void perform(core::StoreReaction reaction);
    void go_on(ConnectionId id);
    void post_drained(ConnectionId id);
    void drained(ConnectionId id);
    void close_all();
    void warn(const std::string& line) const;

    Loop& loop;
    StoreOptions options;
    core::StoreSessions sessions;
    std::unique_ptr<Listener> listener;
    std::optional<Service> service;
    std::unordered_map<ConnectionId, Client> clients;
    std::uint64_t last_id = 0;
    Refusals refusals;
    std::set<std::string> noted;
    std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // for posted calls
};

StoreServer::Impl::~Impl() {
    close_all();
}

void StoreServer::Impl::close_all() {
    for (auto& [id, client] : clients) {
        client.connection->close();
    }
    clients.clear();
}

void StoreServer::Impl::warn(const std::string& line) const {
    if (options.warn) {
        options.warn(line);
    }
}

void StoreServer::Impl::admit(os::Fd fd, const std::string& address, std::string_view first_bytes) {
    if (!service.has_value() || address.empty()) {
        return;
    }
    const bool member = service->members.contains(address);
    if (!member && !service->any) {
        if (const auto line = refusals.count(address, port())) {
            warn(*line);
        }
        return;
    }
    const ConnectionId id{++last_id};
    auto connection = Connection::open(loop, std::move(fd), core::kMaxUnsentBytes);
    clients.emplace(id, Client{.connection = connection, .address = address, .member = member});
    sessions.opened(id, address, os::now());
    service->silent.add(address, number(id));
    begin(id, first_bytes);
    if (first_bytes.empty()) {
        drop_silent(address);
    }
}

void StoreServer::Impl::begin(ConnectionId id, std::string_view first_bytes) {
    const auto connection = clients.at(id).connection;
    connection->start({.received = [this, id](std::string_view bytes) { read(id, bytes); },
                       .closed = [this, id](const std::string&) { ended(id); },
                       .sent =
                           [this, id] {
                               drained(id);
                           }});
    if (!first_bytes.empty()) {
        read(id, first_bytes);
    }
}

void StoreServer::Impl::read(ConnectionId id, std::string_view bytes) {
    if (!clients.contains(id)) {
        return;
    }
    Client& client = clients.at(id);
    if (!client.spoke) {
        // An old client opens a second, silent connection before it speaks; that one must be known by now.
        client.spoke = true;
        service->silent.spoke(client.address, number(id));
        if (listener != nullptr) {
            listener->accept_waiting();
        }
    }
    if (!client.member) {
        watch_stranger(id, client, bytes);
    }
    perform(sessions.received(id, bytes));
    go_on(id);
}

// Whoever is let in only because everybody is must say soon what it is.
void StoreServer::Impl::watch_stranger(ConnectionId id, Client& client, std::string_view bytes) {
    if (client.first_bytes.size() >= wire::kFirstBytesMax) {
        return;
    }
    client.first_bytes += bytes.substr(0, wire::kFirstBytesMax);
    if (wire::classify_first_bytes(client.first_bytes) != wire::FirstBytes::kNeedMore) {
        client.first_bytes.resize(wire::kFirstBytesMax);
        client.limit.reset();
    } else if (client.limit == nullptr) {
        client.limit = std::make_unique<Timer>(loop);
        client.limit->start(options.handshake_limit, [this, id] { drop(id); });
    }
}

void StoreServer::Impl::ended(ConnectionId id) {
    const auto node = clients.extract(id);
    if (!node.empty()) {
        service->silent.spoke(node.mapped().address, number(id));
        sessions.closed(id);
    }
}

void StoreServer::Impl::drop(ConnectionId id) {
    const auto found = clients.find(id);
    if (found != clients.end()) {
        found->second.connection->close();
        ended(id);
    }
}

void StoreServer::Impl::drop_silent(const std::string& address) {
    const auto has_input = [this](std::uint64_t id) {
        const auto found = clients.find(ConnectionId{id});
        return found != clients.end() && found->second.connection->has_input();
    };
    while (const auto oldest = service->silent.excess(address, has_input)) {
        drop(ConnectionId{*oldest});
    }
}

void StoreServer::Impl::perform(core::StoreReaction reaction) {
    for (core::StoreOutput& output : reaction.outputs) {
        const auto found = clients.find(output.connection);
        if (found == clients.end()) {
            continue;
        }
        const auto connection = found->second.connection;
        connection->send(std::move(output.bytes));
        if (output.close) {
            service->silent.spoke(found->second.address, number(output.connection));
            clients.erase(found);
            connection->close_when_sent();
        }
    }
    for (const std::string& note : reaction.notes) {
        if (noted.insert(note).second) {  // the same for a thousand clients
            warn(note);
        }
    }
}

// A client whose output piles up is not read from until it has taken it.
void StoreServer::Impl::go_on(ConnectionId id) {
    const auto found = clients.find(id);
    if (found == clients.end() || !sessions.stalled(id)) {
        return;
    }
    found->second.connection->pause_reading();
    if (found->second.connection->unsent() == 0) {
        post_drained(id);
    }
}

void StoreServer::Impl::post_drained(ConnectionId id) {
    Client& client = clients.at(id);
    if (!client.draining) {
        client.draining = true;
        loop.post([this, id, still = std::weak_ptr(alive)] {
            if (!still.expired()) {
                drained(id);
            }
        });
    }
}

void StoreServer::Impl::drained(ConnectionId id) {
    const auto found = clients.find(id);
    if (found == clients.end() || found->second.connection->unsent() != 0) {
        return;
    }
    found->second.draining = false;
    if (sessions.stalled(id)) {
        perform(sessions.drained(id));
    }
    if (sessions.stalled(id)) {
        go_on(id);
    } else if (clients.contains(id)) {
        clients.at(id).connection->resume_reading();
    }
}

Result<std::unique_ptr<StoreServer>> StoreServer::bind(Loop& loop, StoreOptions options) {
    auto listener = Listener::bind(loop, options.reach, options.port);
    if (!listener.has_value()) {
        return tl::unexpected(listener.error());
    }
    auto server = without_port(loop, std::move(options));
    if (server.has_value()) {
        (*server)->impl_->listener = std::move(*listener);
    }
    return server;
}

Result<std::unique_ptr<StoreServer>> StoreServer::without_port(Loop& loop, StoreOptions options) {
    const auto compat = core::parse_old_release(options.compat);
    if (!compat.has_value()) {
        return tl::unexpected(compat.error());
    }
    return std::unique_ptr<StoreServer>(new StoreServer(std::make_unique<Impl>(loop, std::move(options), *compat)));
}

StoreServer::StoreServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
}

StoreServer::~StoreServer() = default;

std::uint16_t StoreServer::port() const {
    return impl_->port();
}

Result<void> StoreServer::serve(AllowList allow, int ranks_per_address) {
    auto members = AddressSet::parse(allow.networks);
    if (!members.has_value()) {
        return tl::unexpected(members.error());
    }
    reset();
    Result<void> opened;
    if (impl_->listener != nullptr) {
        opened = impl_->listener->open(
            {.accepted = [impl = impl_.get()](os::Fd fd,
                                              const std::string& address) { impl->admit(std::move(fd), address, {}); },
             .warn = impl_->options.warn});
    }
    if (opened.has_value()) {
        impl_->service.emplace(
            Impl::Service{allow.any, std::move(*members), SilentConnections(silent_limit(ranks_per_address))});
    }
    return opened;
}

void StoreServer::reset() {
    if (impl_->listener != nullptr) {
        impl_->listener->close();
    }
    impl_->close_all();
    impl_->sessions.reset();
    impl_->service.reset();
}

void StoreServer::adopt(int fd, std::string first_bytes) {
    os::Fd owned(fd);
    tune_socket(fd);
    const std::string address = peer_address(fd);
    impl_->admit(std::move(owned), address, first_bytes);
}

}  // namespace ddl::net
