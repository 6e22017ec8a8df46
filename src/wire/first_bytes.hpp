// What a new connection is, told by its first bytes.
//
// Called by the listener of a port shared by agents and store clients, and by core::StoreSessions; both keep the bytes
// and hand them on whole. Pure. Never needs more than kFirstBytesMax bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ddl::wire {

inline constexpr std::size_t kFirstBytesMax = 5;

enum class FirstBytes : std::uint8_t {
    kNeedMore,
    kAgentSession,  // DD 4C 41 01
    kStore,         // TCPStore of 2.2 or later: 00 and the magic; a split one is fine
    kOldStore,      // TCPStore before 2.2: an opcode 00 … 0B
    kTls,           // 16: a TLS handshake record
    kUnknown,       // nothing we speak: close
};

// 00 is a modern handshake or an old SET: the four bytes after it decide, either the magic or the low half of a key
// length, which must be within the limit for keys.
[[nodiscard]] FirstBytes classify_first_bytes(std::string_view bytes);

}  // namespace ddl::wire
