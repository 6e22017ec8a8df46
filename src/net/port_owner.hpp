// Who holds a TCP port: for the error text of a bind that failed.
//
// Reads /proc/net/tcp, /proc/net/tcp6 and /proc/<pid>/fd. Finds processes of this user only (of all, as root); reading
// takes milliseconds, so it is called after a failure only. Never signals or changes anything.
#pragma once

#include <cstdint>
#include <string>

namespace ddl::net {

// "pid 1234 (python3 train.py)", "a process of user 1001", or empty when nobody listens there any more.
[[nodiscard]] std::string port_owner(std::uint16_t port);

}  // namespace ddl::net
