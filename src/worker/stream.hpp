// One TCP connection of the worker library: dialling, sending and receiving, each with a deadline.
//
// Blocking with poll(); the descriptor is non-blocking and close-on-exec. Used by the store client only. Errors come
// back as values whose text names the endpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/fd.hpp"
#include "worker/deadline.hpp"

namespace ddl::worker {

// Tries all addresses of the host again and again until one answers; pauses of 50 ms, doubled up to 1 s. The look-up
// is repeated for every try (a name may appear later) and is the one thing that can outlast the deadline. An error
// lists the last failure of each address.
[[nodiscard]] Result<os::Fd> dial(const std::string& host, std::uint16_t port, const Deadline& deadline);

enum class Transfer : std::uint8_t { kDone, kTimeout };

// Sends all bytes, the first of them in one segment as far as the socket's buffer goes. Error: connection lost.
[[nodiscard]] Result<Transfer> send_all(int fd, std::string_view bytes, const Deadline& deadline);

// Waits until something can be read and appends it to `into`. Looks at least once, even past the deadline.
[[nodiscard]] Result<Transfer> receive_some(int fd, std::string& into, const Deadline& deadline);

}  // namespace ddl::worker
