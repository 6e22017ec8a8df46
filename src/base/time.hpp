// Points in time as the core sees them: values that come in with events, never read from a clock here.
//
// MonotonicClock has no now() on purpose. The one place that reads the kernel's clock (CLOCK_BOOTTIME, so that a
// suspended machine notices its own absence) is os/clock.hpp. Wall clocks are for log lines only.
#pragma once

#include <chrono>

namespace ddl {

using Duration = std::chrono::nanoseconds;

struct MonotonicClock {
    using duration = Duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<MonotonicClock>;
    static constexpr bool is_steady = true;
};

using Instant = MonotonicClock::time_point;

[[nodiscard]] constexpr double seconds(Duration d) {
    return std::chrono::duration<double>(d).count();
}

}  // namespace ddl
