// The connection behind Store objects, and one call's turn on it.
//
// Owned by the Store, its copies and its views together. A Call takes the connection's turn, sends requests and
// receives their replies; whatever leaves the stream out of step closes the connection for good. Throws StoreError.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ddlaunch/store.hpp"
#include "os/fd.hpp"
#include "wire/tcpstore.hpp"
#include "worker/deadline.hpp"

namespace ddlaunch {

// Whose turn it is on a connection. A lock with a deadline, made of what ThreadSanitizer of g++ 12 understands, which a
// std::timed_mutex is not.
class Turn {
public:
    // False if the holder kept it until the end.
    [[nodiscard]] bool take(const ddl::worker::Deadline& deadline) {
        std::unique_lock<std::mutex> lock(mutex_);
        if (!given_back_.wait_until(lock, deadline.end(), [this] { return !taken_; })) {
            return false;
        }
        taken_ = true;
        return true;
    }
    void give_back() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            taken_ = false;
        }
        given_back_.notify_one();
    }

private:
    std::mutex mutex_;
    std::condition_variable given_back_;
    bool taken_ = false;
};

struct Store::Connection {
    // Dials, and shakes hands.
    Connection(std::string host, std::uint16_t port, const StoreOptions& options);

    [[nodiscard]] std::string name() const;  // "store h0:29500"
    [[nodiscard]] ddl::worker::Deadline deadline(Timeout timeout) const;

    const std::string host;
    const std::uint16_t port;
    const StoreOptions options;

    Turn turn;
    // Everything below belongs to who has the turn.
    ddl::os::Fd fd;
    ddl::wire::ReplyParser replies;
    std::string lost;  // why there is no connection any more
};

class Store::Call {
public:
    // `what` names the call in messages: "add(step)". `since` is the release whose servers know it, if that matters.
    Call(Connection& connection, Timeout timeout, std::string what, std::string_view since = {});

    ~Call() {
        connection_.turn.give_back();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    void send(const ddl::wire::Request& request);

    void ping();
    [[nodiscard]] std::int64_t integer();
    [[nodiscard]] std::uint8_t byte();
    [[nodiscard]] std::string blob();
    [[nodiscard]] std::vector<std::string> blobs(std::size_t count);
    [[nodiscard]] ddl::wire::reply::Popped popped();
    [[nodiscard]] std::vector<std::string> key_list();

    // Blocks until all keys exist; throws kTimeout naming them. A release that crosses the deadline counts. The rest of
    // the call's work then has kResyncLimit at least.
    void wait(std::vector<std::string> keys);

private:
    using Shape = ddl::wire::ReplyParser::Shape;

    [[nodiscard]] ddl::wire::Reply receive(Shape shape, std::size_t count = 0);
    // False if the deadline passed first; nothing is lost then.
    [[nodiscard]] bool try_receive(Shape shape, std::size_t count, ddl::wire::Reply& reply);
    // Ends a wait that missed its deadline; true if the release was already under way.
    [[nodiscard]] bool cancel_wait();

    [[noreturn]] void give_up(StoreErrc code, const std::string& why);
    [[noreturn]] void connection_lost(const std::string& why);

    Connection& connection_;
    ddl::worker::Deadline deadline_;
    std::string what_;
    std::string_view since_;
};

}  // namespace ddlaunch
