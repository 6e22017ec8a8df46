#include "os/ports.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace ddl::os {
namespace {

constexpr int kGridFirst = 20000;
constexpr int kGridEnd = 32768;
constexpr int kGridStep = 4;
constexpr int kPortsPerBase = 3;  // base: the store; +1, +2: what frameworks put beside it

// Where other things are expected: the rendezvous port's default, and PyTorch's for MASTER_PORT.
constexpr int kRendezvousDefault = 29400;
constexpr int kMasterDefault = 29500;

struct Range {
    int first = 0;
    int last = -1;

    [[nodiscard]] bool meets(int from, int to) const {
        return from <= last && first <= to;
    }
};

Range local_port_range() {
    std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
    Range range;
    if (!(file >> range.first >> range.last)) {
        return Range{};
    }
    return range;
}

template <class Address>
bool can_bind(Address address) {
    const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
    const Fd socket(::socket(generic->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) {
        return errno == EAFNOSUPPORT;  // nobody can hold a port of a family that the kernel lacks
    }
    constexpr int kOn = 1;  // connections of a former job that linger in TIME_WAIT are no obstacle
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn);
    if (generic->sa_family == AF_INET6) {
        ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &kOn, sizeof kOn);
    }
    return ::bind(socket.get(), generic, sizeof address) == 0 || errno == EADDRNOTAVAIL;
}

bool is_free(int port) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    return can_bind(v4) && can_bind(v6);
}

Result<std::string> lock_directory() {
    std::string path = "/tmp/ddlaunch-ports-" + std::to_string(::getuid());
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        return fail("cannot make " + path + ", which holds the locks of port numbers: " + std::strerror(errno));
    }
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::getuid()) {
        return fail(path + " is not a directory of ours; remove it, ddlaunch keeps the locks of port numbers there");
    }
    return path;
}

Fd try_lock(const std::string& directory, int port) {
    const std::string path = directory + "/" + std::to_string(port);
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        return Fd();
    }
    return file;
}

std::vector<int> grid_bases() {
    const Range taken_by_kernel = local_port_range();
    std::vector<int> bases;
    std::vector<int> second_choice;  // a machine may give out all ports to outgoing connections
    for (int base = kGridFirst; base < kGridEnd; base += kGridStep) {
        if (base == kRendezvousDefault || base == kMasterDefault) {
            continue;
        }
        const bool shared = taken_by_kernel.meets(base, base + kPortsPerBase - 1);
        (shared ? second_choice : bases).push_back(base);
    }
    return bases.empty() ? second_choice : bases;
}

// The first of `bases`, taken in turn from `start`, that can be locked and has `width` free ports.
std::optional<std::pair<int, Fd>> first_free(const std::string& directory, const std::vector<int>& bases,
                                             std::size_t start, int width) {
    for (std::size_t i = 0; i < bases.size(); ++i) {
        const int base = bases[(start + i) % bases.size()];
        Fd lock = try_lock(directory, base);
        bool free = static_cast<bool>(lock);
        for (int offset = 0; free && offset < width; ++offset) {
            free = is_free(base + offset);
        }
        if (free) {
            return std::pair(base, std::move(lock));
        }
    }
    return std::nullopt;
}

}  // namespace

Result<PortReservation> PortReservation::take(std::uint16_t first, std::uint16_t last) {
    const auto directory = lock_directory();
    if (!directory) {
        return tl::unexpected(directory.error());
    }
    const bool given = first > 0 && last >= first;
    std::vector<int> bases;
    if (given) {
        for (int port = first; port <= last; ++port) {
            bases.push_back(port);
        }
    } else {
        bases = grid_bases();
    }
    // Different starts, so that ports of a job that has just ended are not the first to be used again.
    const std::size_t start = given ? 0 : static_cast<std::size_t>(::getpid()) % bases.size();
    auto found = first_free(*directory, bases, start, given ? 1 : kPortsPerBase);
    if (!found) {
        return fail("no free port between " + std::to_string(bases.front()) + " and " + std::to_string(bases.back()) +
                    ": each is in use or kept by another job (locks in " + *directory + ")" +
                    (given ? "; give a wider range" : ""));
    }
    return PortReservation(static_cast<std::uint16_t>(found->first), std::move(found->second));
}

}  // namespace ddl::os
