#include "worker/stream.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/text.hpp"

namespace ddl::worker {
namespace {

using std::chrono::milliseconds;

// A host that drops packets must not use up the time of the next address, nor miss its own coming up for long.
constexpr milliseconds kPerAddress = std::chrono::seconds(10);
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{1000};
constexpr std::size_t kReadBytes = std::size_t{64} << 10U;

std::string error_text(int number) {
    return std::error_code(number, std::generic_category()).message();
}

// Whether the descriptor became ready before the end. Errors and hang-ups count as ready: the next call tells.
bool wait_ready(int fd, short events, const Deadline& deadline) {
    while (true) {
        pollfd entry{fd, events, 0};
        const int ready = ::poll(&entry, 1, static_cast<int>(deadline.left().count()));
        if (ready > 0) {
            return true;
        }
        if ((ready == 0 && deadline.passed()) || (ready < 0 && errno != EINTR)) {
            return false;
        }
    }
}

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
    std::string text;
};

Result<std::vector<Address>> look_up(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (status != 0) {
        return fail("look-up: " + std::string(status == EAI_SYSTEM ? error_text(errno) : ::gai_strerror(status)));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    std::vector<Address> addresses;
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        Address address;
        std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
        address.size = entry->ai_addrlen;
        std::array<char, NI_MAXHOST> text{};
        ::getnameinfo(entry->ai_addr, entry->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
        address.text = text.data();
        addresses.push_back(std::move(address));
    }
    return addresses;
}

Result<os::Fd> connect_to(const Address& address, const Deadline& deadline) {
    os::Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) {
        return fail(address.text + ": socket: " + error_text(errno));
    }
    int error = 0;
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) {
        if (errno != EINPROGRESS && errno != EINTR) {
            return fail(address.text + ": " + error_text(errno));
        }
        if (!wait_ready(fd.get(), POLLOUT, deadline)) {
            return fail(address.text + ": no answer");
        }
        socklen_t size = sizeof(error);
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) {
        return fail(address.text + ": " + error_text(error));
    }
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

// One try of every address.
Result<os::Fd> try_all(const std::string& host, std::uint16_t port, const Deadline& deadline) {
    const auto addresses = look_up(host, port);
    if (!addresses) {
        return tl::unexpected(addresses.error());
    }
    std::vector<std::string> failures;
    for (const Address& address : *addresses) {
        auto fd = connect_to(address, Deadline(std::min(deadline.left(), kPerAddress)));
        if (fd) {
            return fd;
        }
        failures.push_back(fd.error().message);
    }
    return fail(join(failures, "; "));
}

}  // namespace

Result<os::Fd> dial(const std::string& host, std::uint16_t port, const Deadline& deadline) {
    milliseconds pause = kFirstPause;
    while (true) {
        auto fd = try_all(host, port, deadline);
        if (fd || deadline.passed()) {
            return fd;
        }
        std::this_thread::sleep_for(std::min(pause, deadline.left()));
        pause = std::min(2 * pause, kLongestPause);
    }
}

Result<Transfer> send_all(int fd, std::string_view bytes, const Deadline& deadline) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN) {
            if (!wait_ready(fd, POLLOUT, deadline)) {
                return Transfer::kTimeout;
            }
        } else if (errno != EINTR) {
            return fail(error_text(errno));
        }
    }
    return Transfer::kDone;
}

Result<Transfer> receive_some(int fd, std::string& into, const Deadline& deadline) {
    std::array<char, kReadBytes> buffer;
    while (true) {
        const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
        if (got > 0) {
            into.append(buffer.data(), static_cast<std::size_t>(got));
            return Transfer::kDone;
        }
        if (got == 0) {
            return fail("the server closed the connection");
        }
        if (errno == EAGAIN) {
            if (!wait_ready(fd, POLLIN, deadline)) {
                return Transfer::kTimeout;
            }
        } else if (errno != EINTR) {
            return fail(error_text(errno));
        }
    }
}

}  // namespace ddl::worker
