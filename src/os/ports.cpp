#include "os/ports.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "os/host.hpp"

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

bool no_descriptor_left() {
    return errno == EMFILE || errno == ENFILE;
}

enum class Finding { kFree, kTaken, kNoDescriptor };

template <class Address>
Finding try_to_bind(Address address) {
    const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
    const Fd socket(::socket(generic->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket && no_descriptor_left()) {
        return Finding::kNoDescriptor;
    }
    if (!socket) {  // nobody can hold a port of a family that the kernel lacks
        return errno == EAFNOSUPPORT ? Finding::kFree : Finding::kTaken;
    }
    constexpr int kOn = 1;  // connections of a former job that linger in TIME_WAIT are no obstacle
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn);
    if (generic->sa_family == AF_INET6) {
        ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &kOn, sizeof kOn);
    }
    const bool good = ::bind(socket.get(), generic, sizeof address) == 0 || errno == EADDRNOTAVAIL;
    return good ? Finding::kFree : Finding::kTaken;
}

Finding look_at(int port) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    const Finding found = try_to_bind(v4);
    return found == Finding::kFree ? try_to_bind(v6) : found;
}

bool usable_directory(const std::string& path) {
    struct stat info {};
    return (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) && ::lstat(path.c_str(), &info) == 0 &&
           S_ISDIR(info.st_mode) && info.st_uid == ::getuid() && ::access(path.c_str(), W_OK | X_OK) == 0;
}

// Empty: there is none, and binding alone decides whose a port is.
std::string lock_directory() {
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && runtime[0] == '/') {
        std::string path = std::string(runtime) + "/ddlaunch-ports";
        if (usable_directory(path)) {
            return path;
        }
    }
    std::string path = scratch_base() + "/ddlaunch-ports-" + std::to_string(::getuid());
    return usable_directory(path) ? path : "";
}

struct LockTry {
    Finding finding = Finding::kFree;
    PortLock lock;  // empty where files cannot be made: the port is as good without
};

LockTry try_lock(const std::string& directory, int port) {
    if (directory.empty()) {
        return {};
    }
    std::string path = directory + "/" + std::to_string(port);
    while (true) {
        Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file) {
            return {no_descriptor_left() ? Finding::kNoDescriptor : Finding::kFree, {}};
        }
        if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
            return {errno == EWOULDBLOCK ? Finding::kTaken : Finding::kFree, {}};
        }
        // The one that held it may have removed the file in between: then what we have locked is nobody's any more.
        struct stat locked {};
        struct stat named {};
        if (::fstat(file.get(), &locked) == 0 && ::stat(path.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
            locked.st_dev == named.st_dev) {
            return {Finding::kFree, PortLock(std::move(file), std::move(path))};
        }
    }
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

struct Choice {
    Finding finding = Finding::kTaken;
    int port = 0;
    PortLock lock;
};

// The first of `bases`, taken in turn from `start`, that can be locked and has `width` free ports.
Choice first_free(const std::string& directory, const std::vector<int>& bases, std::size_t start, int width) {
    for (std::size_t i = 0; i < bases.size(); ++i) {
        const int base = bases[(start + i) % bases.size()];
        auto [finding, lock] = try_lock(directory, base);
        for (int offset = 0; finding == Finding::kFree && offset < width; ++offset) {
            finding = look_at(base + offset);
        }
        if (finding != Finding::kTaken) {
            return {finding, base, std::move(lock)};
        }
    }
    return {};
}

}  // namespace

Result<PortReservation> PortReservation::take(std::uint16_t first, std::uint16_t last) {
    const std::string directory = lock_directory();
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
    Choice found = first_free(directory, bases, start, given ? 1 : kPortsPerBase);
    const std::string between = std::to_string(bases.front()) + " and " + std::to_string(bases.back());
    if (found.finding == Finding::kNoDescriptor) {
        return fail("cannot look for a free port between " + between + ": too many open files (raise ulimit -n)");
    }
    if (found.finding == Finding::kTaken) {
        return fail("no free port between " + between + ": each is in use or kept by another job" +
                    (directory.empty() ? "" : " (locks in " + directory + ")") + (given ? "; give a wider range" : ""));
    }
    return PortReservation(static_cast<std::uint16_t>(found.port), std::move(found.lock));
}

PortLock& PortLock::operator=(PortLock&& other) noexcept {
    if (this != &other) {
        release();
        file_ = std::move(other.file_);
        path_ = std::move(other.path_);
    }
    return *this;
}

// The file goes while it is locked: whoever has opened it already sees that, and whoever comes later makes a new one.
void PortLock::release() {
    if (file_) {
        ::unlink(path_.c_str());
        file_.reset();
    }
}

}  // namespace ddl::os
