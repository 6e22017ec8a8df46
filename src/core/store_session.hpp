// All connections of one TCPStore-compatible server: bytes in, bytes out, over one KvTable.
//
// Owned by net::StoreServer, which only moves bytes: it reports each accepted connection, what was read from it and
// its end, and sends what comes back. Recognises the client's release by its first bytes, splits the stream into
// requests, applies each once and in order, and encodes the replies, also those that wake other connections.
// Pure: never reads a clock or a socket, never throws on input; not thread-safe.
//
// What net must do
//  - send `bytes` in order, then close the connection if `close` is set (it is already forgotten here: don't report
//    its closed(), which would do no harm);
//  - close a connection whose unsent output exceeds kMaxUnsentBytes (one that registered watches but never reads) and
//    report it closed;
//  - while stalled(connection): not read from it; call drained(connection) when all its output has been sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "core/kv_table.hpp"
#include "core/store_dialect.hpp"
#include "wire/first_bytes.hpp"
#include "wire/tcpstore.hpp"

namespace ddl::core {

// Once a connection's output of one call reaches this, its further requests are held back until drained().
inline constexpr std::size_t kReplyBudgetBytes = 1U << 20U;
inline constexpr std::size_t kMaxUnsentBytes = kReplyBudgetBytes + wire::kMaxReplyBytes;

struct StoreOutput {
    ConnectionId connection{};
    std::string bytes;
    bool close = false;
    std::string why;  // of a close, for a log line at debug level: "unknown opcode 255"
};

struct StoreReaction {
    std::vector<StoreOutput> outputs;  // in order; a connection may appear more than once
    std::vector<std::string> notes;    // lines for the log at info level: which old release was recognised, and why
};

class StoreSessions {
public:
    // `compat` is one of auto, 1.13, 2.1.
    explicit StoreSessions(OldRelease compat = OldRelease::kAuto, KvLimits limits = {});

    // A connection was accepted. Ids are the caller's, never reused. `address` is numeric, normalised, without port.
    void opened(ConnectionId connection, std::string_view address, Instant now);

    // Bytes were read. Unknown connections are ignored. Empty `bytes` are allowed.
    [[nodiscard]] StoreReaction received(ConnectionId connection, std::string_view bytes);

    // Is input being held back because the connection has too much output?
    [[nodiscard]] bool stalled(ConnectionId connection) const;

    // All output of the connection has been sent; goes on with what was held back.
    [[nodiscard]] StoreReaction drained(ConnectionId connection);

    // The connection ended: its waits, watches and half a request are forgotten.
    void closed(ConnectionId connection);

    // Forgets every key and every connection (the caller closes them).
    void reset();

    [[nodiscard]] const KvTable& table() const {
        return table_;
    }

private:
    enum class Phase : std::uint8_t { kFirstBytes, kRequests };

    struct Session {
        Phase phase = Phase::kFirstBytes;
        bool undecided = false;  // an old client whose release is not known yet
        bool stalled = false;
        std::string first_bytes;
        wire::RequestParser parser;
    };

    [[nodiscard]] bool start(ConnectionId connection, Session& session, StoreReaction& reaction);
    void run(ConnectionId connection, StoreReaction& reaction);
    void decide(ConnectionId connection, Session& session, StoreReaction& reaction);
    void close(ConnectionId connection, std::string why, StoreReaction& reaction);
    [[nodiscard]] static std::size_t append_replies(ConnectionId asking, const KvResult& result,
                                                    StoreReaction& reaction);

    OldRelease compat_;
    KvTable table_;
    OldReleaseDetector detector_;
    std::unordered_map<ConnectionId, Session> sessions_;
};

// auto | 1.13 | 2.1, as typed with --store-compat.
[[nodiscard]] Result<OldRelease> parse_old_release(std::string_view text);

}  // namespace ddl::core
