#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <asio/posix/stream_descriptor.hpp>

#include "base/text.hpp"
#include "net/address.hpp"
#include "net/agent_sessions.hpp"
#include "os/fd.hpp"

namespace ddl::net {
namespace {

using Addresses = Result<std::vector<std::string>>;
constexpr std::size_t kMaxAddresses = 32;

// What the loop and the thread share. The thread writes once, then raises `finished`; whoever is last frees it, so a
// resolver that hangs for half a minute never holds up the end of the loop.
struct Lookup {
    std::string host;
    os::Fd finished;
    std::atomic<bool> ready{false};
    Addresses addresses;
};

std::string with_scope(const sockaddr& address) {
    char text[NI_MAXHOST] = {};
    const socklen_t size = address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    return ::getnameinfo(&address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

Addresses look_up(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
    if (code != 0) {
        const std::string why = code == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(code);
        return fail("cannot resolve " + host + ": " + why);
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    std::vector<std::string> addresses;
    for (const addrinfo* entry = found; entry != nullptr && addresses.size() < kMaxAddresses; entry = entry->ai_next) {
        if (std::string text = with_scope(*entry->ai_addr); !text.empty()) {
            addresses.push_back(std::move(text));
        }
    }
    return addresses;
}

// Signals stay with the main thread, which reads them as events.
Result<void> start_thread(const std::shared_ptr<Lookup>& lookup) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    Result<void> result;
    try {
        std::thread([lookup] {
            lookup->addresses = look_up(lookup->host);
            lookup->ready.store(true, std::memory_order_release);
            const std::uint64_t one = 1;
            (void)!::write(lookup->finished.get(), &one, sizeof one);
        }).detach();
    } catch (const std::system_error& error) {
        result = fail("cannot resolve " + lookup->host + ": no thread for it: " + error.what());
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return result;
}

}  // namespace

void resolve(Loop& loop, const std::string& host, std::function<void(Addresses)> done) {
    if (socket_address(host, 0).has_value()) {
        loop.post([host, done = std::move(done)] { done(std::vector<std::string>{host}); });
        return;
    }
    auto lookup = std::make_shared<Lookup>();
    lookup->host = host;
    lookup->finished.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    os::Fd watched(::fcntl(lookup->finished.get(), F_DUPFD_CLOEXEC, 0));
    Result<void> started = watched ? start_thread(lookup) : fail("cannot resolve " + host + ": no descriptor is left");
    if (!started.has_value()) {
        loop.post([done = std::move(done), error = std::move(started.error())] { done(tl::unexpected(error)); });
        return;
    }
    auto finished = std::make_shared<asio::posix::stream_descriptor>(loop.context(), watched.release());
    finished->async_wait(asio::posix::stream_descriptor::wait_read,
                         [finished, lookup, done = std::move(done)](const asio::error_code&) {
                             if (lookup->ready.load(std::memory_order_acquire)) {
                                 done(std::move(lookup->addresses));
                             }
                         });
}

}  // namespace ddl::net
