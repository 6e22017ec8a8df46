// The end of a call's time, on the monotonic clock.
#pragma once

#include <algorithm>
#include <chrono>

namespace ddl::worker {

class Deadline {
public:
    using Clock = std::chrono::steady_clock;

    explicit Deadline(std::chrono::milliseconds from_now)
        : end_(Clock::now() + std::min<std::chrono::milliseconds>(from_now, kFarAway)) {
    }

    [[nodiscard]] bool passed() const {
        return Clock::now() >= end_;
    }
    // Rounded up, so that a poll() never wakes just before the end; never negative.
    [[nodiscard]] std::chrono::milliseconds left() const {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
        return std::max(left, std::chrono::milliseconds::zero());
    }
    [[nodiscard]] Clock::time_point end() const {
        return end_;
    }

private:
    // Keeps sums of time points, and poll()'s int, from overflowing.
    static constexpr std::chrono::milliseconds kFarAway = std::chrono::hours(24 * 20);

    Clock::time_point end_;
};

}  // namespace ddl::worker
