// Which release a store client older than 2.2 is: 1.13/2.0 or 2.1. Nothing on the wire says so.
//
// Owned by core::StoreSessions, which asks only when an opcode comes that the two use differently (7 and above).
// A client of 1.13/2.0 opens a second connection right after the first and keeps it silent; the only request it ever
// sends there is WATCH_KEY, opcode 7. Pure: times come in with the events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.hpp"
#include "core/kv_table.hpp"
#include "wire/tcpstore.hpp"

namespace ddl::core {

// --store-compat.
enum class OldRelease : std::uint8_t { kAuto, k1_13, k2_1 };

// How soon the silent connection follows; measured in the client as one connect, so a second is plenty.
inline constexpr Duration kSilentFollowerWindow = std::chrono::seconds(1);

class OldReleaseDetector {
public:
    void opened(ConnectionId connection, std::string_view address, Instant now);
    // The connection's first byte: an opcode, or anything else that a client may begin with. Later calls are ignored.
    void spoke(ConnectionId connection, std::uint8_t first_byte);
    void closed(ConnectionId connection);
    void clear();

    // 1.13 if another connection of its address opened within the window after it and has sent nothing but, at most, a
    // WATCH_KEY; or if it began with opcode 7 and another one opened within the window before it (without one, the 7
    // is a DELETE_KEY of 2.1). Else 2.1. The answer for a connection never changes.
    [[nodiscard]] wire::Dialect decide(ConnectionId connection);

private:
    struct Seen {
        std::string address;
        Instant opened;
        std::optional<std::uint8_t> first_byte;
        std::optional<wire::Dialect> decided;
    };

    [[nodiscard]] bool has_leader(ConnectionId connection, const Seen& seen) const;
    [[nodiscard]] bool has_silent_follower(ConnectionId connection, const Seen& seen) const;

    std::unordered_map<ConnectionId, Seen> seen_;
    std::unordered_map<std::string, std::multimap<Instant, ConnectionId>> by_address_;
};

}  // namespace ddl::core
