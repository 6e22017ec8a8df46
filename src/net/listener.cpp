#include "net/listener.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "net/address.hpp"
#include "net/connection.hpp"
#include "net/port_owner.hpp"

namespace ddl::net {
namespace {

constexpr int kBacklog = 4096;
constexpr int kAcceptsPerTurn = 64;
constexpr auto kPause = std::chrono::milliseconds(200);  // when there are no descriptors left

sockaddr_storage wildcard(int family, std::uint16_t port) {
    return *socket_address(family == AF_INET6 ? "::" : "0.0.0.0", port);
}

// A socket of the family bound to the address; errno tells why there is none.
os::Fd bound_socket(const sockaddr_storage& address) {
    os::Fd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) {
        return fd;
    }
    constexpr int kOn = 1;
    constexpr int kOff = 0;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn);
    if (address.ss_family == AF_INET6) {
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &kOff, sizeof kOff);
    }
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size_of(address)) != 0) {
        const int error = errno;
        fd.reset();
        errno = error;
    }
    return fd;
}

std::uint16_t bound_port(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                               : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

os::Fd bound_socket(Reach reach, std::uint16_t port) {
    if (reach == Reach::kLoopback) {
        return bound_socket(*socket_address("127.0.0.1", port));
    }
    os::Fd fd = bound_socket(wildcard(AF_INET6, port));
    if (!fd && errno != EADDRINUSE && errno != EACCES) {
        fd = bound_socket(wildcard(AF_INET, port));  // a kernel without IPv6
    }
    return fd;
}

std::string failure_text(Reach reach, std::uint16_t port, bool port_is_agreed, int error) {
    const std::string where = reach == Reach::kLoopback ? "127.0.0.1" : "all addresses";
    std::string text =
        "cannot listen on port " + std::to_string(port) + " (" + where + "): " + std::generic_category().message(error);
    if (error == EADDRINUSE) {
        const std::string owner = port_owner(port);
        text += owner.empty() ? "" : ", held by " + owner;
        text += port_is_agreed && !owner.empty() ? "; end it, or " : "; ";
        text += port_is_agreed ? "choose another port on all nodes" : "choose another port, or 0 for a free one";
    } else if (error == EACCES) {
        text += "; ports below 1024 need privileges, choose a higher one";
    }
    return text;
}

// Errors of a connection that ended while it waited, not of the listener.
bool concerns_one_connection(int error) {
    return error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM || error == ENETDOWN ||
           error == ENETUNREACH || error == EHOSTDOWN || error == EHOSTUNREACH || error == ENOPROTOOPT;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::bind(Loop& loop, Reach reach, std::uint16_t port, bool port_is_agreed) {
    os::Fd fd = bound_socket(reach, port);
    if (!fd) {
        return fail(failure_text(reach, port, port_is_agreed, errno));
    }
    if (port == 0) {
        // The kernel gives a port of its own choice away when listening ends; one that was asked for stays ours.
        port = bound_port(fd.get());
        os::Fd fixed = bound_socket(reach, port);
        if (!fixed) {
            return fail(failure_text(reach, port, port_is_agreed, errno));
        }
        fd = std::move(fixed);
    }
    return std::make_unique<Listener>(loop, reach, port, std::move(fd));
}

Listener::Listener(Loop& loop, Reach reach, std::uint16_t port, os::Fd fd)
    : loop_(loop), reach_(reach), port_(port), fd_(std::move(fd)), pause_(loop) {
}

Result<void> Listener::open(ListenerCallbacks callbacks) {
    if (::listen(fd_.get(), kBacklog) != 0) {
        return fail(failure_text(reach_, port_, false, errno));
    }
    callbacks_ = std::make_shared<const ListenerCallbacks>(std::move(callbacks));
    watch();
    return {};
}

void Listener::close() {
    if (callbacks_ == nullptr) {
        return;  // not open; shutting such a socket down would spoil it
    }
    watch_.reset();
    pause_.cancel();
    callbacks_.reset();
    ::shutdown(fd_.get(), SHUT_RDWR);  // ends listening on Linux, and leaves the socket bound
}

void Listener::watch() {
    watch_ = loop_.watch_readable(fd_.get(), [this] { accept_waiting(); });
}

void Listener::accept_waiting() {
    const std::weak_ptr<const ListenerCallbacks> still_open = callbacks_;
    for (int turn = 0; turn < kAcceptsPerTurn; ++turn) {
        sockaddr_storage address{};
        socklen_t size = sizeof address;
        os::Fd fd(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd) {
            tune_socket(fd.get());
            const auto callbacks = still_open.lock();
            callbacks->accepted(std::move(fd), numeric_address(address));
        } else if (!concerns_one_connection(errno)) {
            if (errno != EAGAIN) {
                pause(errno);
            }
            return;
        }
        if (still_open.expired()) {
            return;  // closed or destroyed in the callback
        }
    }
}

// Descriptors or memory are used up: trying again at once would only burn the processor.
void Listener::pause(int error) {
    watch_.reset();
    pause_.start(kPause, [this] { watch(); });
    if (!warned_ && callbacks_->warn) {
        warned_ = true;
        callbacks_->warn("port " + std::to_string(port_) + ": cannot accept connections for the moment: " +
                         std::generic_category().message(error) + "; raise the limit of open files (ulimit -n)");
    }
}

}  // namespace ddl::net
