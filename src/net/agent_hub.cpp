#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "net/agent_sessions.hpp"
#include "net/connection.hpp"
#include "net/listener.hpp"
#include "net/silence.hpp"
#include "net/timer.hpp"
#include "wire/first_bytes.hpp"

namespace ddl::net {
namespace {

constexpr std::size_t kMaxUnsentBytes = 16U << 20U;  // per session
constexpr int kRanksPerAddress = 64;                 // scales the limit of silent connections

}  // namespace

struct AgentHub::Impl {
    // A connection of which is not known yet what it is.
    struct Newcomer {
        std::shared_ptr<Connection> connection;
        std::string address;
        std::string bytes;
        std::unique_ptr<Timer> limit;
    };
    struct Session {
        std::shared_ptr<Connection> connection;
        wire::MessageReader reader;
        std::unique_ptr<Timer> limit;  // until the first message
        bool live = true;              // false once the hub has let go of it
    };

    Loop& loop;
    Duration first_message_limit;
    std::shared_ptr<const HubCallbacks> callbacks;
    std::unique_ptr<Listener> listener;
    std::unordered_map<std::uint64_t, Newcomer> newcomers;
    std::unordered_map<PeerId, std::shared_ptr<Session>> sessions;
    std::vector<std::shared_ptr<Connection>> lingering;
    SilentConnections silent{silent_limit(kRanksPerAddress)};
    std::uint64_t last_newcomer = 0;
    std::uint32_t last_peer = 0;
    std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // dropped sessions may outlive this object

    Impl(Loop& a_loop, HubCallbacks a_callbacks, Duration limit)
        : loop(a_loop),
          first_message_limit(limit),
          callbacks(std::make_shared<const HubCallbacks>(std::move(a_callbacks))) {
    }
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void accept(os::Fd fd, const std::string& address);
    void drop_silent(const std::string& address);
    void sniff(std::uint64_t id, std::string_view bytes);
    void forget(std::uint64_t id);
    [[nodiscard]] std::vector<std::uint64_t> store_clients_of(const std::string& address);
    void hand_over(const std::vector<std::uint64_t>& ids);
    void begin_session(Newcomer newcomer);
    void read(PeerId peer, std::string_view bytes);
    void lose(PeerId peer, const std::string& why);
    void let_go(const std::shared_ptr<Connection>& connection);
    [[nodiscard]] bool idle() const;
};

AgentHub::Impl::~Impl() {
    for (auto& [id, newcomer] : newcomers) {
        newcomer.connection->close();
    }
    for (auto& [peer, session] : sessions) {
        session->live = false;
        session->connection->close();
    }
}

void AgentHub::Impl::accept(os::Fd fd, const std::string& address) {
    const std::uint64_t id = ++last_newcomer;
    auto connection = Connection::open(loop, std::move(fd), kMaxUnsentBytes);
    newcomers.emplace(id, Newcomer{connection, address, {}, nullptr});
    connection->start({.received = [this, id](std::string_view bytes) { sniff(id, bytes); },
                       .closed = [this, id](const std::string&) { forget(id); },
                       .sent = nullptr});
    silent.add(address, id);
    drop_silent(address);
}

void AgentHub::Impl::drop_silent(const std::string& address) {
    const auto has_input = [this](std::uint64_t id) {
        const auto found = newcomers.find(id);
        return found != newcomers.end() && found->second.connection->has_input();
    };
    while (const auto oldest = silent.excess(address, has_input)) {
        forget(*oldest);
    }
}

void AgentHub::Impl::forget(std::uint64_t id) {
    auto node = newcomers.extract(id);
    if (!node.empty()) {
        silent.spoke(node.mapped().address, id);
        node.mapped().connection->close();
    }
}

void AgentHub::Impl::sniff(std::uint64_t id, std::string_view bytes) {
    const auto found = newcomers.find(id);
    if (found == newcomers.end()) {
        return;
    }
    Newcomer& newcomer = found->second;
    newcomer.bytes += bytes;
    silent.spoke(newcomer.address, id);
    switch (wire::classify_first_bytes(newcomer.bytes)) {
        case wire::FirstBytes::kNeedMore:
            if (newcomer.limit == nullptr) {
                newcomer.limit = std::make_unique<Timer>(loop);
                newcomer.limit->start(first_message_limit, [this, id] { forget(id); });
            }
            break;
        case wire::FirstBytes::kAgentSession:
            begin_session(std::move(newcomers.extract(found).mapped()));
            break;
        case wire::FirstBytes::kStore:
            hand_over({id});
            break;
        case wire::FirstBytes::kOldStore:
            hand_over(store_clients_of(newcomer.address));
            break;
        case wire::FirstBytes::kTls:
        case wire::FirstBytes::kUnknown:
            forget(id);
            break;
    }
}

// All newcomers of an address but agents, oldest first. An old client is told from others by the silent connection that
// follows it, so the store must see those too, and in order. An agent that is caught in between dials again.
std::vector<std::uint64_t> AgentHub::Impl::store_clients_of(const std::string& address) {
    listener->accept_waiting();
    std::vector<std::uint64_t> ids;
    for (auto& [id, newcomer] : newcomers) {
        const bool agent = newcomer.bytes.empty()
                               ? newcomer.connection->next_byte() == wire::kSessionMagic.front()
                               : newcomer.bytes.front() == static_cast<char>(wire::kSessionMagic.front());
        if (newcomer.address == address && !agent) {
            ids.push_back(id);
        }
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

void AgentHub::Impl::hand_over(const std::vector<std::uint64_t>& ids) {
    std::vector<std::pair<os::Fd, std::string>> clients;
    for (const std::uint64_t id : ids) {
        auto node = newcomers.extract(id);
        silent.spoke(node.mapped().address, id);
        clients.emplace_back(node.mapped().connection->release(), std::move(node.mapped().bytes));
    }
    const auto keep = callbacks;
    for (auto& [fd, bytes] : clients) {
        keep->store_client(fd.release(), std::move(bytes));
    }
}

void AgentHub::Impl::begin_session(Newcomer newcomer) {
    const PeerId peer{++last_peer};
    auto session = std::make_shared<Session>();
    session->connection = newcomer.connection;
    session->limit = std::make_unique<Timer>(loop);
    session->limit->start(first_message_limit, [this, peer] { lose(peer, "sent no message after it had connected"); });
    sessions.emplace(peer, session);
    newcomer.connection->replace_callbacks({.received = [this, peer](std::string_view bytes) { read(peer, bytes); },
                                            .closed = [this, peer](const std::string& why) { lose(peer, why); },
                                            .sent = nullptr});
    const auto keep = callbacks;
    keep->arrived(peer, newcomer.address);
    if (session->live) {
        read(peer, std::string_view(newcomer.bytes).substr(wire::kSessionMagic.size()));
    }
}

void AgentHub::Impl::read(PeerId peer, std::string_view bytes) {
    const auto found = sessions.find(peer);
    if (found == sessions.end()) {
        return;
    }
    const auto session = found->second;
    const auto keep = callbacks;
    session->reader.feed(bytes);
    while (session->live) {
        auto message = session->reader.next();
        if (!message.has_value()) {
            lose(peer, "sent what is no message: " + message.error().message);
            return;
        }
        if (!message->has_value()) {
            return;
        }
        session->limit.reset();
        keep->received(peer, std::move(**message));
    }
}

void AgentHub::Impl::lose(PeerId peer, const std::string& why) {
    auto node = sessions.extract(peer);
    if (node.empty()) {
        return;
    }
    node.mapped()->live = false;
    node.mapped()->connection->close();
    const auto keep = callbacks;
    keep->gone(peer, why);
}

void AgentHub::Impl::let_go(const std::shared_ptr<Connection>& connection) {
    std::erase_if(lingering, [](const auto& earlier) { return !earlier->is_open(); });
    lingering.push_back(connection);
    connection->close_when_sent([this, still = std::weak_ptr(alive)] {
        if (!still.expired() && callbacks->became_idle && idle()) {
            const auto keep = callbacks;
            keep->became_idle();
        }
    });
}

bool AgentHub::Impl::idle() const {
    const auto sent = [](const auto& entry) {
        return entry.second->connection->unsent() == 0;
    };
    const auto ended = [](const auto& connection) {
        return !connection->is_open();
    };
    return std::all_of(sessions.begin(), sessions.end(), sent) &&
           std::all_of(lingering.begin(), lingering.end(), ended);
}

Result<std::unique_ptr<AgentHub>> AgentHub::listen(Loop& loop, std::uint16_t port, HubCallbacks callbacks,
                                                   Duration first_message_limit) {
    auto listener = Listener::bind(loop, Reach::kEverywhere, port, true);
    if (!listener.has_value()) {
        return tl::unexpected(listener.error());
    }
    auto impl = std::make_unique<Impl>(loop, std::move(callbacks), first_message_limit);
    impl->listener = std::move(*listener);
    auto opened = impl->listener->open(
        {.accepted = [hub = impl.get()](os::Fd fd, const std::string& address) { hub->accept(std::move(fd), address); },
         .warn = impl->callbacks->warn});
    if (!opened.has_value()) {
        return tl::unexpected(opened.error());
    }
    return std::unique_ptr<AgentHub>(new AgentHub(std::move(impl)));
}

AgentHub::AgentHub(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
}

AgentHub::~AgentHub() = default;

std::uint16_t AgentHub::port() const {
    return impl_->listener->port();
}

void AgentHub::send(PeerId peer, const wire::Message& message) {
    const auto found = impl_->sessions.find(peer);
    if (found != impl_->sessions.end()) {
        found->second->connection->send(wire::encode(message));
    }
}

void AgentHub::drop(PeerId peer) {
    auto node = impl_->sessions.extract(peer);
    if (node.empty()) {
        return;
    }
    node.mapped()->live = false;
    node.mapped()->limit.reset();
    impl_->let_go(node.mapped()->connection);
}

bool AgentHub::idle() const {
    return impl_->idle();
}

}  // namespace ddl::net
