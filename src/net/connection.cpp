#include "net/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <asio/post.hpp>

#include "net/address.hpp"

namespace ddl::net {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr int kReadsPerTurn = 16;  // then others get their turn
constexpr std::size_t kPiecesPerWrite = 16;

std::string error_text(int error) {
    return std::generic_category().message(error);
}

bool would_block(int error) {
    return error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

std::shared_ptr<Connection> Connection::open(Loop& loop, os::Fd fd, std::size_t queue_limit) {
    return std::make_shared<Connection>(loop, std::move(fd), queue_limit);
}

Connection::Connection(Loop& loop, os::Fd fd, std::size_t queue_limit)
    : stream_(loop.context()), queue_limit_(queue_limit), linger_(loop) {
    asio::error_code error;
    stream_.assign(fd.get(), error);
    if (error) {
        end_ = End::kBroken;  // epoll is out of memory: reads as a connection that was lost
        why_ = error.message();
    } else {
        (void)fd.release();
    }
}

void Connection::start(ConnectionCallbacks callbacks) {
    replace_callbacks(std::move(callbacks));
    if (stream_.is_open()) {
        wait_readable();
    } else {
        asio::post(stream_.get_executor(), [self = shared_from_this()] { self->finish(self->why_); });
    }
}

void Connection::replace_callbacks(ConnectionCallbacks callbacks) {
    callbacks_ = std::make_shared<const ConnectionCallbacks>(std::move(callbacks));
}

std::optional<std::uint8_t> Connection::next_byte() {
    std::uint8_t byte = 0;
    if (stream_.is_open() && ::recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
        return byte;
    }
    return std::nullopt;
}

void Connection::wait_readable() {
    if (reading_ || !stream_.is_open() || (paused_ && end_ == End::kOpen)) {
        return;
    }
    reading_ = true;
    stream_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this()](const asio::error_code& error) {
                           self->reading_ = false;
                           if (error != asio::error::operation_aborted && self->stream_.is_open()) {
                               self->on_readable();
                           }
                       });
}

void Connection::on_readable() {
    if (paused_ && end_ == End::kOpen) {
        return;
    }
    std::array<char, kReadBytes> bytes;  // not initialised: it is written before it is read
    for (int turn = 0; turn < kReadsPerTurn; ++turn) {
        const ssize_t got = ::recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got < 0 && (would_block(errno) || errno == EINTR)) {
            break;
        }
        if (got <= 0) {
            finish(!why_.empty() ? why_ : got == 0 ? "closed by the peer" : error_text(errno));
            return;
        }
        if (end_ == End::kOpen) {
            const auto callbacks = callbacks_;  // the owner may let go of us or replace them from within
            callbacks->received({bytes.data(), static_cast<std::size_t>(got)});
        }
        const bool drained = static_cast<std::size_t>(got) < bytes.size();
        if (!stream_.is_open() || drained || (paused_ && end_ == End::kOpen)) {
            break;
        }
    }
    wait_readable();
}

void Connection::finish(const std::string& why) {
    if (end_ == End::kLingering) {
        end_lingering();
        return;
    }
    const auto callbacks = callbacks_;
    const bool report = end_ == End::kOpen || end_ == End::kBroken;
    const std::string reason = why;
    close();
    if (report) {
        callbacks->closed(reason);
    }
}

void Connection::send(std::string bytes) {
    if (end_ != End::kOpen || !stream_.is_open() || bytes.empty()) {
        return;
    }
    if (unsent_ > queue_limit_) {
        give_up("gave up: " + std::to_string(unsent_) + " bytes were not taken by the peer");
        return;
    }
    unsent_ += bytes.size();
    queue_.push_back(std::move(bytes));
    if (writing_) {
        return;
    }
    if (!flush()) {
        give_up(error_text(errno));
    } else if (!queue_.empty()) {
        wait_writable();
    }
}

bool Connection::flush() {
    while (!queue_.empty()) {
        std::array<iovec, kPiecesPerWrite> pieces;
        std::size_t count = 0;
        for (auto it = queue_.begin(); it != queue_.end() && count < pieces.size(); ++it, ++count) {
            const std::size_t skip = count == 0 ? front_sent_ : 0;
            pieces.at(count) = {it->data() + skip, it->size() - skip};
        }
        msghdr message{};
        message.msg_iov = pieces.data();
        message.msg_iovlen = count;
        const ssize_t sent = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            return would_block(errno) || errno == EINTR;
        }
        unsent_ -= static_cast<std::size_t>(sent);
        front_sent_ += static_cast<std::size_t>(sent);
        while (!queue_.empty() && front_sent_ >= queue_.front().size()) {
            front_sent_ -= queue_.front().size();
            queue_.pop_front();
        }
    }
    return true;
}

void Connection::wait_writable() {
    writing_ = true;
    stream_.async_wait(asio::posix::stream_descriptor::wait_write,
                       [self = shared_from_this()](const asio::error_code& error) {
                           self->writing_ = false;
                           if (error != asio::error::operation_aborted && self->stream_.is_open()) {
                               self->on_writable();
                           }
                       });
}

void Connection::on_writable() {
    const auto callbacks = callbacks_;
    if (!flush()) {
        give_up(error_text(errno));
        return;
    }
    if (!queue_.empty()) {
        wait_writable();
        return;
    }
    shut_down_sending_if_done();
    if (end_ == End::kOpen && callbacks != nullptr && callbacks->sent) {
        callbacks->sent();
    }
}

void Connection::give_up(std::string why) {
    if (end_ == End::kOpen) {
        end_ = End::kBroken;
        why_ = std::move(why);
    }
    queue_.clear();
    front_sent_ = unsent_ = 0;
    ::shutdown(fd(), SHUT_RDWR);
    wait_readable();
}

void Connection::pause_reading() {
    paused_ = true;
}

void Connection::resume_reading() {
    paused_ = false;
    wait_readable();
}

void Connection::close() {
    end_ = End::kClosed;
    linger_.cancel();
    asio::error_code ignored;
    stream_.close(ignored);
    queue_.clear();
    front_sent_ = unsent_ = 0;
}

void Connection::end_lingering() {
    const auto ended = std::exchange(lingered_, nullptr);
    close();
    if (ended) {
        ended();
    }
}

void Connection::close_when_sent(std::function<void()> ended) {
    if (!stream_.is_open() || end_ != End::kOpen) {
        close();
        return;
    }
    end_ = End::kLingering;
    lingered_ = std::move(ended);
    // Closing with unread input would reset the connection and take what we sent last away from the peer.
    // The queued read wait keeps this object until then.
    linger_.start(kLingerTime, [this] { end_lingering(); });
    shut_down_sending_if_done();
    wait_readable();
}

void Connection::shut_down_sending_if_done() {
    if (end_ == End::kLingering && queue_.empty()) {
        ::shutdown(fd(), SHUT_WR);
    }
}

os::Fd Connection::release() {
    end_ = End::kClosed;
    linger_.cancel();
    return os::Fd(stream_.is_open() ? stream_.release() : -1);
}

void tune_socket(int fd) {
    const auto set = [fd](int level, int name, int value) {
        ::setsockopt(fd, level, name, &value, sizeof value);
    };
    constexpr int kUserTimeoutMs = 60'000;  // of data that the other host doesn't acknowledge
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 6);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

std::string peer_address(int fd) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    return ::getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) == 0 ? numeric_address(storage) : "";
}

std::string own_address(int fd) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    return ::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) == 0 ? numeric_address(storage) : "";
}

}  // namespace ddl::net
