// The store's contents and rules: values, counters, queues, waits, barriers, watches.
//
// Owned by core::StoreSessions, which applies every request of every connection in order of arrival. A reply may go to
// another connection than the one that asked (a wait that ends). Pure: no bytes, no clock; never throws on input.
// Where PyTorch's own servers differ from each other, or lose a wake-up, the rule is stated at the function.
//
//  - A connection has at most one wait; any further request on it ends the wait silently (clients of 1.13 and 2.0
//    cannot cancel, and would read a stray byte).
//  - A wait counts down events: a key that was set after the wait began counts, even if it is deleted again.
//  - Names of queues and keys are independent; waits and CHECK see both, everything else one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "wire/tcpstore.hpp"

namespace ddl::core {

enum class ConnectionId : std::uint64_t {};

struct KvLimits {
    // Of keys, values, queue items and awaited keys together, each with kEntryCost; a request beyond it is refused
    // by closing its connection.
    std::size_t total_bytes = std::size_t{4} << 30U;
    std::size_t watches_per_connection = 1024;
};

// APPEND may grow a value beyond the limit of a request; up to here, so that a GET's reply stays within its own.
inline constexpr std::size_t kMaxGrownValueBytes = std::size_t{64} << 20U;

inline constexpr std::size_t kEntryCost = 128;  // bookkeeping per key, item or awaited key; about what libstdc++ needs

struct KvReply {
    ConnectionId connection{};
    wire::Reply reply;

    friend bool operator==(const KvReply&, const KvReply&) = default;
};

struct KvResult {
    std::vector<KvReply> replies;      // in the order in which they must be sent
    std::optional<std::string> close;  // the asking connection must be closed, for this reason; nothing was changed

    friend bool operator==(const KvResult&, const KvResult&) = default;
};

class KvTable {
public:
    explicit KvTable(KvLimits limits = {});

    [[nodiscard]] KvResult apply(ConnectionId connection, wire::Request request);

    // Forgets the connection's wait and watches. Values, counters and queues stay.
    void connection_closed(ConnectionId connection);

    void clear();

    [[nodiscard]] std::size_t keys() const {
        return values_.size();
    }
    [[nodiscard]] std::size_t waiting() const {
        return waits_.size();
    }
    [[nodiscard]] std::size_t bytes() const {
        return bytes_;
    }

private:
    struct Wait {
        std::uint64_t order = 0;  // of registration, over all connections
        bool barrier = false;
        std::unordered_set<std::string> keys;
    };
    using Waiters = std::map<std::uint64_t, ConnectionId>;  // by Wait::order

    struct Apply;  // one request under way; kv_table.cpp

    // kv_waits.cpp
    void begin_wait(ConnectionId connection, std::unordered_set<std::string> keys, bool barrier);
    void end_wait(ConnectionId connection);
    void wake(const std::string& key, KvResult& result);
    void wake_one_for_item(const std::string& key, KvResult& result);
    [[nodiscard]] bool arrived(ConnectionId connection, const std::string& key, KvResult& result);
    void watch(ConnectionId connection, const std::string& key);
    void notify(const std::string& key, wire::reply::ChangeKind kind, std::string_view before, std::string_view after,
                KvResult& result);

    void store(const std::string& key, std::string value, KvResult& result);
    [[nodiscard]] bool present(const std::string& key) const;
    [[nodiscard]] bool fits(std::size_t more) const;

    KvLimits limits_;
    std::size_t bytes_ = 0;
    std::uint64_t next_order_ = 0;
    std::unordered_map<std::string, std::string> values_;
    std::unordered_map<std::string, std::deque<std::string>> queues_;
    std::unordered_map<ConnectionId, Wait> waits_;
    std::unordered_map<std::string, Waiters> waiters_;
    std::unordered_map<ConnectionId, std::unordered_set<std::string>> watches_;
    std::unordered_map<std::string, std::unordered_set<ConnectionId>> watchers_;
};

// The number that ADD finds in a value: leading white space, a sign, digits; what follows is ignored. nullopt: no
// digits, or outside of 64 bits.
[[nodiscard]] std::optional<std::int64_t> counter_value(std::string_view text);

}  // namespace ddl::core
