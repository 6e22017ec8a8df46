// PyTorch's TCPStore protocol: requests and replies as values, and their bytes in its three dialects.
//
// Pure and incremental. The server side (core::StoreSessions) uses RequestParser and append_reply; the client side
// (the worker library, always kModern) uses append_request and ReplyParser. What the requests mean is decided in
// core::KvTable. Keys are wire keys: clients put a '/' before every key but "init/".
// All numbers are little-endian; a blob is a u64 length and that many bytes. The handshake of 2.2+ is not a request:
// wire/first_bytes.hpp recognises it and append_handshake writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "wire/byte_queue.hpp"

namespace ddl::wire {

// The releases' own limits, per field; a server may be more generous, never less.
inline constexpr std::uint64_t kMaxKeyBytes = 8192;          // including the leading '/'
inline constexpr std::uint64_t kMaxValueBytes = 8U << 20U;   // values, suffixes, queue items, operands
inline constexpr std::uint64_t kMaxKeysPerRequest = 131072;  // of CHECK, WAIT, MULTI_GET, MULTI_SET
// Ours, so that one connection's memory is bounded: all fields of a request, and all bytes of a reply.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 20U;
inline constexpr std::size_t kMaxReplyBytes = std::size_t{256} << 20U;

inline constexpr std::uint32_t kValidateMagic = 0x3C85F7CE;
inline constexpr std::uint8_t kLastOldOpcode = 0x0B;  // CANCEL_WAIT of 2.1

// Which opcode table a client uses: PyTorch 1.13 and 2.0, 2.1, or 2.2 and later.
enum class Dialect : std::uint8_t { k1_13, k2_1, kModern };

namespace op {

struct Set {
    std::string key, value;
    friend bool operator==(const Set&, const Set&) = default;
};
struct CompareSet {
    std::string key, expected, desired;
    friend bool operator==(const CompareSet&, const CompareSet&) = default;
};
struct Get {
    std::string key;
    friend bool operator==(const Get&, const Get&) = default;
};
struct Add {
    std::string key;
    std::int64_t delta = 0;
    friend bool operator==(const Add&, const Add&) = default;
};
struct Check {
    std::vector<std::string> keys;
    friend bool operator==(const Check&, const Check&) = default;
};
struct Wait {
    std::vector<std::string> keys;
    friend bool operator==(const Wait&, const Wait&) = default;
};
struct NumKeys {
    friend bool operator==(const NumKeys&, const NumKeys&) = default;
};
struct WatchKey {
    std::string key;
    friend bool operator==(const WatchKey&, const WatchKey&) = default;
};
struct DeleteKey {
    std::string key;
    friend bool operator==(const DeleteKey&, const DeleteKey&) = default;
};
struct Append {
    std::string key, suffix;
    friend bool operator==(const Append&, const Append&) = default;
};
struct MultiGet {
    std::vector<std::string> keys;
    friend bool operator==(const MultiGet&, const MultiGet&) = default;
};
struct MultiSet {
    std::vector<std::pair<std::string, std::string>> pairs;
    friend bool operator==(const MultiSet&, const MultiSet&) = default;
};
struct CancelWait {
    friend bool operator==(const CancelWait&, const CancelWait&) = default;
};
struct Ping {
    std::uint32_t nonce = 0;
    friend bool operator==(const Ping&, const Ping&) = default;
};
struct QueuePush {
    std::string key, item;
    friend bool operator==(const QueuePush&, const QueuePush&) = default;
};
struct QueuePop {
    std::string key;
    friend bool operator==(const QueuePop&, const QueuePop&) = default;
};
struct QueueLen {
    std::string key;
    friend bool operator==(const QueueLen&, const QueueLen&) = default;
};
struct ListKeys {
    friend bool operator==(const ListKeys&, const ListKeys&) = default;
};
struct Barrier {
    std::string key;
    std::int64_t world_size = 0;
    friend bool operator==(const Barrier&, const Barrier&) = default;
};

}  // namespace op

// The order is that of the modern opcodes 1 to 18, then WatchKey; tcpstore_opcodes.cpp relies on it.
using Request = std::variant<op::Set, op::CompareSet, op::Get, op::Add, op::Check, op::Wait, op::NumKeys, op::DeleteKey,
                             op::Append, op::MultiGet, op::MultiSet, op::CancelWait, op::Ping, op::QueuePush,
                             op::QueuePop, op::QueueLen, op::ListKeys, op::Barrier, op::WatchKey>;

namespace reply {

// One-byte replies. The meaning of 00 and 01 depends on the request.
inline constexpr std::uint8_t kReady = 0;            // CHECK
inline constexpr std::uint8_t kNotReady = 1;         // CHECK
inline constexpr std::uint8_t kStopWaiting = 0;      // WAIT, BARRIER
inline constexpr std::uint8_t kWaitCancelled = 1;    // CANCEL_WAIT
inline constexpr std::uint8_t kWatchRegistered = 3;  // WATCH_KEY

struct Byte {
    std::uint8_t value = 0;
    friend bool operator==(const Byte&, const Byte&) = default;
};
struct Integer {
    std::int64_t value = 0;
    friend bool operator==(const Integer&, const Integer&) = default;
};
struct Nonce {
    std::uint32_t value = 0;
    friend bool operator==(const Nonce&, const Nonce&) = default;
};
struct Blob {
    std::string value;
    friend bool operator==(const Blob&, const Blob&) = default;
};
// MULTI_GET: no count on the wire.
struct Blobs {
    std::vector<std::string> values;
    friend bool operator==(const Blobs&, const Blobs&) = default;
};
// QUEUE_POP: items before the pop; the item only if there was one.
struct Popped {
    std::int64_t before = 0;
    std::string item;
    friend bool operator==(const Popped&, const Popped&) = default;
};
// LIST_KEYS.
struct Keys {
    std::vector<std::string> keys;
    friend bool operator==(const Keys&, const Keys&) = default;
};
// A watched key changed (1.13 and 2.0).
enum class ChangeKind : std::uint8_t { kUpdated = 0, kCreated = 1, kDeleted = 2 };
struct Change {
    ChangeKind kind = ChangeKind::kUpdated;
    std::string key, before, after;
    friend bool operator==(const Change&, const Change&) = default;
};

}  // namespace reply

using Reply = std::variant<reply::Byte, reply::Integer, reply::Nonce, reply::Blob, reply::Blobs, reply::Popped,
                           reply::Keys, reply::Change>;

// ---- opcode tables --------------------------------------------------------------------------------------------

// What a dialect's opcode means, as an index into Request; nullopt if the dialect lacks it.
[[nodiscard]] std::optional<std::size_t> request_kind(Dialect dialect, std::uint8_t opcode);
// The dialect's opcode of a request; nullopt if the dialect lacks it.
[[nodiscard]] std::optional<std::uint8_t> opcode_of(Dialect dialect, const Request& request);

// ---- bytes ----------------------------------------------------------------------------------------------------

void append_handshake(std::string& out);
// Returns false and appends nothing if the dialect lacks the request.
bool append_request(std::string& out, const Request& request, Dialect dialect = Dialect::kModern);
void append_reply(std::string& out, const Reply& reply);

// Splits a client's stream into requests. After an error the connection must be closed.
class RequestParser {
public:
    // For a client whose release becomes known only at a later opcode; affects requests not yet begun.
    void change_dialect(Dialect dialect) {
        dialect_ = dialect;
    }
    [[nodiscard]] Dialect dialect() const {
        return dialect_;
    }

    void feed(std::string_view bytes);

    // The opcode of the next request if none is under way and one has arrived.
    [[nodiscard]] std::optional<std::uint8_t> peek_opcode() const {
        return kind_ ? std::nullopt : input_.peek_u8();
    }

    // The next whole request; nullopt when more bytes are needed; an error names the field and the limit.
    [[nodiscard]] Result<std::optional<Request>> next();

    // Bytes held, of requests not yet returned.
    [[nodiscard]] std::size_t buffered() const {
        return input_.size() + request_bytes_;
    }

private:
    enum class Step : std::uint8_t { kDone, kNeedMore };

    [[nodiscard]] Result<Step> begin();
    [[nodiscard]] Result<Step> read_fields();
    [[nodiscard]] Result<Step> read_count();
    [[nodiscard]] Result<Step> read_blobs();
    [[nodiscard]] Result<Step> read_number();
    [[nodiscard]] Request build();

    Dialect dialect_ = Dialect::kModern;
    ByteQueue input_;
    BlobReader blob_;

    // The request under way.
    std::optional<std::size_t> kind_;
    std::uint8_t opcode_ = 0;
    bool counted_ = false;
    std::size_t blobs_wanted_ = 0;
    std::size_t request_bytes_ = 0;
    std::vector<std::string> blobs_;
    std::optional<std::uint64_t> number_;
};

// Reads a server's replies on a client's connection. Says what it expects before each; after an error the
// connection must be closed.
class ReplyParser {
public:
    enum class Shape : std::uint8_t { kByte, kInteger, kNonce, kBlob, kBlobs, kPopped, kKeys };

    // `count` only for kBlobs.
    void expect(Shape shape, std::size_t count = 0);
    void feed(std::string_view bytes);

    // The expected reply; nullopt when more bytes are needed.
    [[nodiscard]] Result<std::optional<Reply>> next();

    // Bytes that arrived after the last reply; none unless server or client is out of step.
    [[nodiscard]] std::size_t unread() const {
        return input_.size();
    }

private:
    [[nodiscard]] Result<bool> read_count();
    [[nodiscard]] Result<bool> read_blobs();
    [[nodiscard]] Reply build();

    Shape shape_ = Shape::kByte;
    std::optional<std::int64_t> number_;
    std::size_t blobs_wanted_ = 0;
    std::size_t reply_bytes_ = 0;
    std::vector<std::string> blobs_;
    ByteQueue input_;
    BlobReader blob_;
};

}  // namespace ddl::wire
