#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.hpp"
#include "net/agent_sessions.hpp"
#include "net/connection.hpp"
#include "net/connector.hpp"
#include "net/timer.hpp"

namespace ddl::net {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(50);
constexpr auto kLongestPause = std::chrono::milliseconds(1000);
constexpr auto kConnectLimit = std::chrono::seconds(2);  // a host that drops packets must not hold up the next try
constexpr std::size_t kMaxUnsentBytes = 16U << 20U;

std::string magic() {
    return {wire::kSessionMagic.begin(), wire::kSessionMagic.end()};
}

}  // namespace

struct AgentLink::Impl {
    Loop& loop;
    std::vector<LinkTarget> targets;
    std::size_t target = 0;
    std::string failures;  // of the targets before this one, in this round of tries
    std::shared_ptr<const LinkCallbacks> callbacks;
    Timer pause;
    Duration next_pause = kFirstPause;
    std::string last_reason;
    std::vector<std::string> addresses;  // of this try
    std::size_t next_address = 0;
    std::vector<std::string> reasons;  // why each address failed
    std::unique_ptr<Connector> connector;
    std::shared_ptr<Connection> connection;
    wire::MessageReader reader;
    bool closing = false;
    // Expires with this object: answers of the resolver and loops over messages look at it.
    std::shared_ptr<bool> alive = std::make_shared<bool>(true);

    Impl(Loop& a_loop, std::vector<LinkTarget> the_targets, LinkCallbacks a_callbacks)
        : loop(a_loop),
          targets(std::move(the_targets)),
          callbacks(std::make_shared<const LinkCallbacks>(std::move(a_callbacks))),
          pause(a_loop) {
    }
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void begin_try();
    void resolved(Result<std::vector<std::string>> result);
    void try_next_address();
    void connected(os::Fd fd);
    void read(std::string_view bytes);
    void lost(const std::string& why);
    void try_failed(const std::string& why);
    void pause_then_try();
    [[nodiscard]] const std::string& host() const {
        return targets[target].host;
    }
    [[nodiscard]] std::string target_text() const {
        return host_and_port(targets[target].host, targets[target].port);
    }
};

AgentLink::Impl::~Impl() {
    if (connection != nullptr && !closing) {
        connection->close();
    }
}

void AgentLink::Impl::begin_try() {
    resolve(loop, host(), [this, still = std::weak_ptr(alive)](Result<std::vector<std::string>> result) {
        if (!still.expired() && !closing) {
            resolved(std::move(result));
        }
    });
}

void AgentLink::Impl::resolved(Result<std::vector<std::string>> result) {
    if (!result.has_value()) {
        try_failed(result.error().message);
        return;
    }
    addresses = std::move(*result);
    next_address = 0;
    reasons.clear();
    try_next_address();
}

void AgentLink::Impl::try_next_address() {
    if (next_address >= addresses.size()) {
        try_failed("cannot connect to " + target_text() + ": " + join(reasons, "; "));
        return;
    }
    const std::string address = addresses[next_address++];
    connector = std::make_unique<Connector>(
        loop, address, targets[target].port, kConnectLimit, [this, address](Result<os::Fd> fd) {
            const auto finished = std::move(connector);
            if (fd.has_value()) {
                connected(std::move(*fd));
                return;
            }
            reasons.push_back(address == host() ? fd.error().message : address + ": " + fd.error().message);
            try_next_address();
        });
}

void AgentLink::Impl::connected(os::Fd fd) {
    const std::string own = own_address(fd.get());
    last_reason.clear();
    reader = {};
    connection = Connection::open(loop, std::move(fd), kMaxUnsentBytes);
    connection->start({.received = [this](std::string_view bytes) { read(bytes); },
                       .closed = [this](const std::string& why) { lost(why); },
                       .sent = nullptr});
    connection->send(magic());
    const auto keep = callbacks;
    keep->up(own);
}

void AgentLink::Impl::read(std::string_view bytes) {
    const auto keep = callbacks;
    const auto session = connection;
    const std::weak_ptr<bool> still = alive;
    reader.feed(bytes);
    while (!still.expired() && !closing && session == connection) {
        auto message = reader.next();
        if (!message.has_value()) {
            connection->close();
            lost(target_text() + " sent what is no message: " + message.error().message);
            return;
        }
        if (!message->has_value()) {
            return;
        }
        next_pause = kFirstPause;  // only a coordinator that speaks is worth hurrying for
        keep->received(std::move(**message));
    }
}

void AgentLink::Impl::lost(const std::string& why) {
    connection.reset();
    failures.clear();
    target = (target + 1) % targets.size();
    pause_then_try();
    const auto keep = callbacks;
    keep->down(why);
}

void AgentLink::Impl::try_failed(const std::string& why) {
    failures += (failures.empty() ? "" : "; ") + why;
    target = (target + 1) % targets.size();
    if (target != 0) {
        begin_try();
        return;
    }
    const std::string all = std::exchange(failures, "");
    pause_then_try();
    if (all != last_reason) {
        last_reason = all;
        const auto keep = callbacks;
        keep->retrying(all);
    }
}

void AgentLink::Impl::pause_then_try() {
    pause.start(next_pause, [this] { begin_try(); });
    next_pause = std::min<Duration>(next_pause * 2, kLongestPause);
}

AgentLink::AgentLink(Loop& loop, std::vector<LinkTarget> targets, LinkCallbacks callbacks)
    : impl_(std::make_unique<Impl>(loop, std::move(targets), std::move(callbacks))) {
    impl_->begin_try();
}

AgentLink::~AgentLink() = default;

void AgentLink::send(const wire::Message& message) {
    if (impl_->connection != nullptr) {
        impl_->connection->send(wire::encode(message));
    }
}

void AgentLink::close_when_sent(std::function<void()> closed) {
    impl_->closing = true;
    impl_->pause.cancel();
    impl_->connector.reset();
    if (impl_->connection != nullptr) {
        impl_->connection->close_when_sent(std::move(closed));
    }
}

bool AgentLink::idle() const {
    const auto& connection = impl_->connection;
    return connection == nullptr || !connection->is_open() || (!impl_->closing && connection->unsent() == 0);
}

}  // namespace ddl::net
