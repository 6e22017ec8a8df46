// What the tests of net/ share: running a loop until something holds, and plain sockets as clients and servers.
//
// Everything happens in one thread: the test's own sockets never block, and run_until() turns the loop in between.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/loop.hpp"
#include "os/clock.hpp"
#include "os/fd.hpp"
#include "wire/tcpstore.hpp"

namespace ddl::net::test {

using namespace std::chrono_literals;

// Turns the loop until `holds`, at most `limit`; looks again every millisecond. Uses the loop's alarm.
inline bool run_until(Loop& loop, const std::function<bool()>& holds, Duration limit = 20s) {
    const Instant end = os::now() + limit;
    bool held = false;
    std::function<void()> look = [&] {
        held = holds();
        if (held || os::now() >= end) {
            loop.stop();
        } else {
            loop.set_alarm(os::now() + 1ms, [&look] { look(); });
        }
    };
    loop.post([&look] { look(); });
    loop.run();
    loop.set_alarm(std::nullopt, nullptr);
    return held;
}

// Gives the loop the time in which something unwanted would have happened.
inline void run_for(Loop& loop, Duration duration) {
    run_until(
        loop, [] { return false; }, duration);
}

// Lowers the limit of open files for one test.
class DescriptorLimit {
public:
    explicit DescriptorLimit(rlim_t soft) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit lower{soft, before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &lower);
    }
    ~DescriptorLimit() {
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }

private:
    rlimit before_{};
};

inline sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

// A raw client: no library of ours between the test and the bytes.
class RawClient {
public:
    // Connects from 127.0.0.1, or from another address of the loopback network.
    explicit RawClient(std::uint16_t port, const char* from = nullptr) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        if (from != nullptr) {
            sockaddr_in own{};
            own.sin_family = AF_INET;
            ::inet_pton(AF_INET, from, &own.sin_addr);
            EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
        }
        const sockaddr_in address = loopback(port);
        error_ = ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
        ::fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
    }

    [[nodiscard]] int connect_error() const {
        return error_;
    }
    [[nodiscard]] os::Fd& fd() {
        return fd_;
    }

    // Sends what the socket takes; returns how much that was.
    std::size_t send(std::string_view bytes) {
        const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        return sent < 0 ? 0 : static_cast<std::size_t>(sent);
    }

    // Everything that came until now.
    const std::string& received() {
        std::array<char, 65536> bytes{};
        for (;;) {
            const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
            if (got <= 0) {
                ended_ = ended_ || got == 0 || (errno != EAGAIN && errno != EINTR);
                return received_;
            }
            received_.append(bytes.data(), static_cast<std::size_t>(got));
        }
    }

    // The peer closed or reset the connection.
    [[nodiscard]] bool ended() {
        received();
        return ended_;
    }

    // Waits for exactly these bytes, on top of what was taken before.
    [[nodiscard]] testing::AssertionResult gets(Loop& loop, std::string_view expected) {
        run_until(loop, [&] { return received().size() >= expected.size() || ended_; });
        if (received_.size() < expected.size() || received_.compare(0, expected.size(), expected) != 0) {
            return testing::AssertionFailure()
                   << "got " << testing::PrintToString(received_.substr(0, 100)) << (ended_ ? " and the end" : "")
                   << ", not " << testing::PrintToString(std::string(expected.substr(0, 100)));
        }
        received_.erase(0, expected.size());
        return testing::AssertionSuccess();
    }

private:
    os::Fd fd_;
    int error_ = 0;
    bool ended_ = false;
    std::string received_;
};

// A listening socket that is not ours.
class RawServer {
public:
    explicit RawServer(std::uint16_t port = 0, int backlog = 16) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        const int on = 1;
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        sockaddr_in address = loopback(port);
        EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(fd_.get(), backlog), 0);
        socklen_t size = sizeof address;
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
        ::fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
    }

    [[nodiscard]] std::uint16_t port() const {
        return port_;
    }
    [[nodiscard]] os::Fd accept() {
        os::Fd fd(::accept(fd_.get(), nullptr, nullptr));
        if (fd) {
            ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
        }
        return fd;
    }

private:
    os::Fd fd_;
    std::uint16_t port_ = 0;
};

inline std::string handshake() {
    std::string bytes;
    wire::append_handshake(bytes);
    return bytes;
}

inline std::string request(const wire::Request& what) {
    std::string bytes;
    wire::append_request(bytes, what);
    return bytes;
}

inline std::string reply(const wire::Reply& what) {
    std::string bytes;
    wire::append_reply(bytes, what);
    return bytes;
}

}  // namespace ddl::net::test
