#include "os/clock.hpp"

#include <ctime>

namespace ddl::os {

Instant now() {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return Instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace ddl::os
