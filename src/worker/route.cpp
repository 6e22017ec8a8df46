#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <ddlaunch/route.hpp>
#include <ddlaunch/store.hpp>
#include <memory>

#include "os/fd.hpp"

namespace ddlaunch {
namespace {

// Empty when no route leads there. Connecting a datagram socket sends nothing: it only looks the route up.
std::string source_for(const addrinfo& target) {
    const ddl::os::Fd fd(::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    char text[NI_MAXHOST] = "";
    if (fd.get() >= 0 && ::connect(fd.get(), target.ai_addr, target.ai_addrlen) == 0 &&
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0) {
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    }
    return text;
}

}  // namespace

std::string local_address_towards(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (error != 0) {
        throw StoreError(StoreErrc::kConnection, "address of " + host + ": " + ::gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
        std::string source = source_for(*at);
        if (!source.empty()) {
            return source;
        }
    }
    throw StoreError(StoreErrc::kConnection, "no route leads to " + host + ": name a local address to listen on");
}

bool is_loopback_address(const std::string& numeric) {
    in_addr four{};
    in6_addr six{};
    constexpr unsigned kLoopbackNet = 127;
    if (::inet_pton(AF_INET, numeric.c_str(), &four) == 1) {
        return ntohl(four.s_addr) >> 24 == kLoopbackNet;
    }
    if (::inet_pton(AF_INET6, numeric.c_str(), &six) != 1) {
        return false;
    }
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == kLoopbackNet);
}

}  // namespace ddlaunch
