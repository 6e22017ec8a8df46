// One established TCP connection: reads as bytes come, writes at once or queues what the peer doesn't take yet.
//
// Shared between its owner (store server, hub, link) and the completions that asio holds. The owner gets bytes and one
// `closed`; after close(), release() or close_when_sent() it gets nothing any more, so it may be destroyed then, also
// from within a callback. No callback runs from within a call of its own. Never blocks, never resolves, never decides
// what the bytes mean.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <asio/posix/stream_descriptor.hpp>

#include "net/loop.hpp"
#include "net/timer.hpp"
#include "os/fd.hpp"

namespace ddl::net {

struct ConnectionCallbacks {
    std::function<void(std::string_view bytes)> received;
    std::function<void(const std::string& why)> closed;  // by the peer, an error or the queue limit
    std::function<void()> sent;                          // optional: the queue has become empty again
};

class Connection : public std::enable_shared_from_this<Connection> {
public:
    // Takes a connected (or accepted) descriptor. `queue_limit`: unsent bytes beyond which the connection is given up.
    [[nodiscard]] static std::shared_ptr<Connection> open(Loop& loop, os::Fd fd, std::size_t queue_limit);

    Connection(Loop& loop, os::Fd fd, std::size_t queue_limit);  // for open() only

    void start(ConnectionCallbacks callbacks);              // begins to read
    void replace_callbacks(ConnectionCallbacks callbacks);  // when it has turned out what the connection is
    void send(std::string bytes);
    void pause_reading();
    void resume_reading();

    void close();  // at once; what is queued is lost
    // Sends what is queued, then waits for the peer's end, all within kLingerTime; then `ended`, unless it was closed.
    void close_when_sent(std::function<void()> ended = nullptr);
    [[nodiscard]] os::Fd release();  // gives the descriptor away, unread bytes included

    [[nodiscard]] std::size_t unsent() const {
        return unsent_;
    }
    [[nodiscard]] bool is_open() const {
        return stream_.is_open();
    }
    [[nodiscard]] int fd() {
        return stream_.native_handle();
    }
    [[nodiscard]] std::optional<std::uint8_t> next_byte();  // that waits to be read, if one does; not taken
    [[nodiscard]] bool has_input() {
        return next_byte().has_value();
    }

private:
    enum class End : std::uint8_t { kOpen, kLingering, kBroken, kClosed };

    void wait_readable();
    void wait_writable();
    void on_readable();
    void on_writable();
    void give_up(std::string why);  // reported by the read side, so never from within a call of the owner
    void finish(const std::string& why);
    void end_lingering();
    [[nodiscard]] bool flush();  // false: the socket is in error
    void shut_down_sending_if_done();

    asio::posix::stream_descriptor stream_;
    std::size_t queue_limit_;
    std::shared_ptr<const ConnectionCallbacks> callbacks_;
    std::deque<std::string> queue_;
    std::size_t front_sent_ = 0;  // bytes of queue_.front() that are gone
    std::size_t unsent_ = 0;
    bool reading_ = false;  // a read wait is queued
    bool writing_ = false;
    bool paused_ = false;
    End end_ = End::kOpen;
    std::string why_;
    Timer linger_;
    std::function<void()> lingered_;
};

inline constexpr auto kLingerTime = std::chrono::seconds(3);

// Sets what all connections of ours have: no delay, keep-alive probes, and a limit for unacknowledged data.
void tune_socket(int fd);

// Numeric address of the peer or of the own end, plain (no v4-mapped form, no scope); empty if there is none any more.
[[nodiscard]] std::string peer_address(int fd);
[[nodiscard]] std::string own_address(int fd);

}  // namespace ddl::net
