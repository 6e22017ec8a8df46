// Asks a program for its version, for --dry-run: the one place where a plan runs something.
//
// Called through plan::HostFacts::version_of. Blocks; never longer than the limit, and leaves no process behind.
#pragma once

#include <string>

#include "base/time.hpp"

namespace ddl::run {

// The first line of what `program --version` prints ("Python 3.11.2"); "" if it cannot be started, fails, says nothing,
// or has not ended within `limit`.
[[nodiscard]] std::string version_of_program(const std::string& program, Duration limit);

}  // namespace ddl::run
