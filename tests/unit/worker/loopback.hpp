// Servers on the loopback interface for tests of the store client, each in a thread of its own.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/store_session.hpp"
#include "os/fd.hpp"

namespace ddl::test {

class Listener {
public:
    Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        if (::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd_.get(), 16) != 0 ||
            ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
            throw std::runtime_error("no listener on the loopback interface");
        }
        port_ = ntohs(address.sin_port);
    }

    [[nodiscard]] std::uint16_t port() const {
        return port_;
    }
    [[nodiscard]] int fd() const {
        return fd_.get();
    }
    [[nodiscard]] os::Fd accept() const {
        return os::Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    // An accept() under way returns with an error.
    void shut_down() const {
        ::shutdown(fd_.get(), SHUT_RDWR);
    }

private:
    os::Fd fd_;
    std::uint16_t port_ = 0;
};

inline void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

// Up to `count` bytes; fewer when the peer closes.
inline std::string read_exactly(int fd, std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t have = 0;
    while (have < count) {
        const ssize_t got = ::recv(fd, bytes.data() + have, count - have, 0);
        if (got <= 0) {
            break;
        }
        have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
}

// A real store: core::StoreSessions over poll().
class LoopbackStore {
public:
    LoopbackStore() {
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) {
            throw std::runtime_error("no pipe");
        }
        stop_read_ = os::Fd(ends[0]);
        stop_write_ = os::Fd(ends[1]);
        thread_ = std::thread([this] { serve(); });
    }
    ~LoopbackStore() {
        stop_write_.reset();
        thread_.join();
    }

    [[nodiscard]] std::uint16_t port() const {
        return listener_.port();
    }

private:
    void serve() {
        while (true) {
            std::vector<pollfd> entries = {{stop_read_.get(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
            std::vector<core::ConnectionId> ids = {{}, {}};
            for (const auto& [id, fd] : connections_) {
                entries.push_back({fd.get(), POLLIN, 0});
                ids.push_back(id);
            }
            ::poll(entries.data(), entries.size(), -1);
            if (entries[0].revents != 0) {
                return;
            }
            if (entries[1].revents != 0) {
                const core::ConnectionId id{++last_id_};
                connections_[id] = listener_.accept();
                sessions_.opened(id, "127.0.0.1", Instant{});
            }
            for (std::size_t i = 2; i < entries.size(); ++i) {
                if (entries[i].revents != 0 && connections_.contains(ids[i])) {
                    read(ids[i]);
                }
            }
        }
    }

    void read(core::ConnectionId id) {
        std::array<char, 65536> buffer{};
        const ssize_t got = ::recv(connections_[id].get(), buffer.data(), buffer.size(), 0);
        if (got <= 0) {
            sessions_.closed(id);
            connections_.erase(id);
            return;
        }
        perform(sessions_.received(id, std::string_view(buffer.data(), static_cast<std::size_t>(got))));
        while (sessions_.stalled(id)) {
            perform(sessions_.drained(id));
        }
    }

    void perform(const core::StoreReaction& reaction) {
        for (const core::StoreOutput& output : reaction.outputs) {
            write_all(connections_[output.connection].get(), output.bytes);
            if (output.close) {
                connections_.erase(output.connection);
            }
        }
    }

    Listener listener_;
    os::Fd stop_read_;
    os::Fd stop_write_;
    core::StoreSessions sessions_;
    std::map<core::ConnectionId, os::Fd> connections_;
    std::uint64_t last_id_ = 0;
    std::thread thread_;
};

// Accepts one connection and hands it to a script.
class ScriptedServer {
public:
    explicit ScriptedServer(std::function<void(int fd)> script)
        : thread_([this, script = std::move(script)] {
              const os::Fd connection = listener_.accept();
              if (connection) {
                  script(connection.get());
              }
          }) {
    }
    ~ScriptedServer() {
        listener_.shut_down();
        finish();
    }

    // Waits for the script's end; somebody must have connected.
    void finish() {
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    [[nodiscard]] std::uint16_t port() const {
        return listener_.port();
    }

private:
    Listener listener_;
    std::thread thread_;
};

}  // namespace ddl::test
