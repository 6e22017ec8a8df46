// The one place that reads the kernel's clock for core's instants.
#pragma once

#include "base/time.hpp"

namespace ddl::os {

// CLOCK_BOOTTIME: goes on while the machine is suspended, never jumps with the wall clock.
[[nodiscard]] Instant now();

}  // namespace ddl::os
