// Which of this machine's addresses others reach it by: asked of the routing table, never of the host name.
//
// For libraries that must be told where to listen (Gloo, own transports). Sends nothing, keeps nothing open, blocks for
// the name look-up only.
#pragma once

#include <cstdint>
#include <string>

#include <ddlaunch/export.hpp>

namespace ddlaunch {

// The local address, numeric, from which packets to host:port leave. `host` is a name or a numeric address (IPv6
// without brackets). Throws StoreError kConnection when the name is unknown or no route leads there.
[[nodiscard]] DDLAUNCH_API std::string local_address_towards(const std::string& host, std::uint16_t port);

// Of use on this machine only: 127.0.0.0/8, ::1, and the first as a v4-mapped address.
[[nodiscard]] DDLAUNCH_API bool is_loopback_address(const std::string& numeric);

}  // namespace ddlaunch
