#include "net/connector.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>

#include "net/address.hpp"
#include "net/connection.hpp"
#include "net/timer.hpp"

namespace ddl::net {
namespace {

int pending_error(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// A connect to a port of this host on which nobody listens can meet itself, if the kernel picks that very port as its
// own end.
bool met_itself(int fd) {
    sockaddr_storage own{};
    sockaddr_storage peer{};
    socklen_t own_size = sizeof own;
    socklen_t peer_size = sizeof peer;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size);
    ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size);
    return own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0;
}

}  // namespace

struct Connector::State : std::enable_shared_from_this<Connector::State> {
    State(Loop& loop, std::function<void(Result<os::Fd>)> call)
        : stream(loop.context()), limit(loop), done(std::move(call)) {
    }

    asio::posix::stream_descriptor stream;
    Timer limit;
    std::function<void(Result<os::Fd>)> done;  // empty: finished or cancelled

    void begin(const std::string& address, std::uint16_t port, Duration wait);
    void fail_later(int error);
    void finish(int error);
};

void Connector::State::begin(const std::string& address, std::uint16_t port, Duration wait) {
    const auto target = socket_address(address, port);
    if (!target.has_value()) {
        fail_later(EAFNOSUPPORT);
        return;
    }
    os::Fd fd(::socket(target->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd || (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*target), size_of(*target)) != 0 &&
                errno != EINPROGRESS)) {
        fail_later(errno);
        return;
    }
    asio::error_code error;
    stream.assign(fd.get(), error);
    if (error) {
        fail_later(error.value());
        return;
    }
    tune_socket(fd.release());
    limit.start(wait, [this] { finish(ETIMEDOUT); });
    stream.async_wait(asio::posix::stream_descriptor::wait_write, [self = shared_from_this()](const asio::error_code&) {
        if (self->stream.is_open()) {
            self->finish(pending_error(self->stream.native_handle()));
        }
    });
}

void Connector::State::fail_later(int error) {
    asio::post(stream.get_executor(), [self = shared_from_this(), error] { self->finish(error); });
}

void Connector::State::finish(int error) {
    if (!done) {
        return;
    }
    const auto self = shared_from_this();
    const auto call = std::exchange(done, nullptr);
    limit.cancel();
    os::Fd fd(stream.is_open() ? stream.release() : -1);
    if (error == 0 && met_itself(fd.get())) {
        error = ECONNREFUSED;
    }
    if (error != 0) {
        call(fail(std::generic_category().message(error)));
    } else {
        call(std::move(fd));
    }
}

Connector::Connector(Loop& loop, const std::string& address, std::uint16_t port, Duration limit,
                     std::function<void(Result<os::Fd>)> done)
    : state_(std::make_shared<State>(loop, std::move(done))) {
    state_->begin(address, port, limit);
}

Connector::~Connector() {
    state_->done = nullptr;
    state_->limit.cancel();
    asio::error_code ignored;
    state_->stream.close(ignored);
}

}  // namespace ddl::net
