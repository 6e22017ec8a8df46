// Writing all of a text to a descriptor that somebody else made: consoles, pipes, log files.
//
// Used by run/. A descriptor that its maker, or another process that shares it, has made non-blocking is waited for.
// Never raises SIGPIPE by itself: the caller ignores that signal.
#pragma once

#include <string_view>

namespace ddl::os {

// 0, or the errno of what stopped it: ETIMEDOUT if a non-blocking descriptor takes nothing for 5 s.
[[nodiscard]] int write_all(int fd, std::string_view bytes);

}  // namespace ddl::os
