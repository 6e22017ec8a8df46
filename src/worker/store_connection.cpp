#include "worker/store_connection.hpp"

#include <unistd.h>

#include <utility>

#include "base/text.hpp"
#include "worker/stream.hpp"

namespace ddlaunch {

namespace wire = ddl::wire;
using ddl::worker::Deadline;
using ddl::worker::Transfer;

namespace {

// As many as fit a line; a wait may be for thousands.
std::string some_of(const std::vector<std::string>& keys) {
    constexpr std::size_t kShown = 4;
    std::string text;
    for (std::size_t i = 0; i < keys.size() && i < kShown; ++i) {
        text += (i == 0 ? "" : ", ") + keys[i];
    }
    return keys.size() > kShown ? text + " and " + std::to_string(keys.size() - kShown) + " more" : text;
}

}  // namespace

Store::Connection::Connection(std::string host_name, std::uint16_t port_number, const StoreOptions& wanted)
    : host(std::move(host_name)), port(port_number), options(wanted) {
    const Deadline end(options.connect_timeout);
    auto dialled = ddl::worker::dial(host, port, end);
    if (!dialled) {
        throw StoreError(StoreErrc::kTimeout, name() + ": no connection within " +
                                                  std::to_string(options.connect_timeout.count()) +
                                                  " ms: " + dialled.error().message +
                                                  ": is the store running, and are address and port right?");
    }
    fd = std::move(*dialled);
    std::string hello;
    wire::append_handshake(hello);
    const auto sent = ddl::worker::send_all(fd.get(), hello, end);  // in one piece: some servers hang up otherwise
    if (!sent) {
        throw StoreError(StoreErrc::kConnection, name() + ": handshake: " + sent.error().message);
    }
}

std::string Store::Connection::name() const {
    return "store " + ddl::host_and_port(host, port);
}

Deadline Store::Connection::deadline(Timeout timeout) const {
    return Deadline(timeout.count() < 0 ? options.timeout : timeout);
}

Store::Call::Call(Connection& connection, Timeout timeout, std::string what, std::string_view since)
    : connection_(connection), deadline_(connection.deadline(timeout)), what_(std::move(what)), since_(since) {
    if (!connection_.turn.take(deadline_)) {
        throw StoreError(StoreErrc::kTimeout, connection_.name() + ": " + what_ +
                                                  ": another thread's call held the connection until the deadline; "
                                                  "use a clone() where that must not happen");
    }
    if (!connection_.fd) {
        const std::string lost = connection_.lost;
        connection_.turn.give_back();  // a constructor that throws has no destructor to do it
        throw StoreError(
            StoreErrc::kConnection,
            connection_.name() + ": " + what_ + ": the connection was lost before (" + lost + "); open a new Store");
    }
}

void Store::Call::send(const wire::Request& request) {
    if (connection_.replies.unread() > 0) {
        give_up(StoreErrc::kProtocol, "the server had sent more than was asked for");
    }
    std::string bytes;
    wire::append_request(bytes, request);
    const auto sent = ddl::worker::send_all(connection_.fd.get(), bytes, deadline_);
    if (!sent) {
        connection_lost(sent.error().message);
    }
    if (*sent == Transfer::kTimeout) {
        give_up(StoreErrc::kTimeout, "the server took nothing more before the deadline");
    }
}

bool Store::Call::try_receive(Shape shape, std::size_t count, wire::Reply& reply) {
    connection_.replies.expect(shape, count);
    while (true) {
        auto next = connection_.replies.next();
        if (!next) {
            give_up(StoreErrc::kProtocol, next.error().message);
        }
        if (*next) {
            reply = std::move(**next);
            return true;
        }
        std::string bytes;
        const auto got = ddl::worker::receive_some(connection_.fd.get(), bytes, deadline_);
        if (!got) {
            connection_lost(got.error().message);
        }
        if (*got == Transfer::kTimeout) {
            return false;
        }
        connection_.replies.feed(bytes);
    }
}

wire::Reply Store::Call::receive(Shape shape, std::size_t count) {
    wire::Reply reply;
    if (!try_receive(shape, count, reply)) {
        give_up(StoreErrc::kTimeout, "no answer from the server before the deadline");
    }
    return reply;
}

void Store::Call::ping() {
    const auto nonce = static_cast<std::uint32_t>(::getpid());
    send(wire::op::Ping{nonce});
    if (std::get<wire::reply::Nonce>(receive(Shape::kNonce)).value != nonce) {
        give_up(StoreErrc::kProtocol, "the server's answer to a ping is not what was sent");
    }
}

std::int64_t Store::Call::integer() {
    return std::get<wire::reply::Integer>(receive(Shape::kInteger)).value;
}

std::uint8_t Store::Call::byte() {
    return std::get<wire::reply::Byte>(receive(Shape::kByte)).value;
}

std::string Store::Call::blob() {
    return std::get<wire::reply::Blob>(receive(Shape::kBlob)).value;
}

std::vector<std::string> Store::Call::blobs(std::size_t count) {
    return std::get<wire::reply::Blobs>(receive(Shape::kBlobs, count)).values;
}

wire::reply::Popped Store::Call::popped() {
    return std::get<wire::reply::Popped>(receive(Shape::kPopped));
}

std::vector<std::string> Store::Call::key_list() {
    return std::get<wire::reply::Keys>(receive(Shape::kKeys)).keys;
}

void Store::Call::wait(std::vector<std::string> keys) {
    const std::string text = some_of(keys);
    send(wire::op::Wait{std::move(keys)});
    wire::Reply reply;
    if (!try_receive(Shape::kByte, 0, reply)) {
        if (!cancel_wait()) {
            throw StoreError(StoreErrc::kTimeout,
                             connection_.name() + ": " + what_ + ": nobody set all of these in time: " + text);
        }
        return;
    }
    if (std::get<wire::reply::Byte>(reply).value != wire::reply::kStopWaiting) {
        give_up(StoreErrc::kProtocol, "a wait ended with a byte that means nothing here");
    }
    if (deadline_.left() < kResyncLimit) {
        deadline_ = Deadline(kResyncLimit);  // what was waited for is here: it must not be taken and then lost
    }
}

bool Store::Call::cancel_wait() {
    deadline_ = Deadline(kResyncLimit);
    send(wire::op::CancelWait{});
    const std::uint8_t first = byte();
    if (first == wire::reply::kWaitCancelled) {
        return false;
    }
    if (first != wire::reply::kStopWaiting || byte() != wire::reply::kWaitCancelled) {
        give_up(StoreErrc::kProtocol, "a wait was cancelled, but not confirmed");
    }
    return true;
}

void Store::Call::give_up(StoreErrc code, const std::string& why) {
    connection_.fd.reset();
    connection_.lost = what_ + ": " + why;
    throw StoreError(code, connection_.name() + ": " + what_ + ": " + why);
}

void Store::Call::connection_lost(const std::string& why) {
    if (since_.empty()) {
        give_up(StoreErrc::kConnection, why);
    }
    give_up(StoreErrc::kUnsupported,
            why + ": perhaps because a server of PyTorch before " + std::string(since_) + " doesn't know this request");
}

}  // namespace ddlaunch
