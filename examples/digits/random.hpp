// A small generator of our own (splitmix64), so that every machine and library starts from the same weights.
#pragma once

#include <cstddef>
#include <cstdint>

namespace digits {

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {
    }
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    // From 0 to bound - 1. The bias of the remainder is far below anything that training could notice.
    std::size_t below(std::size_t bound) {
        return static_cast<std::size_t>(next() % bound);
    }
    // From -1 to 1.
    double symmetric() {
        return static_cast<double>(next() >> 11) * (2.0 / 9007199254740992.0) - 1.0;
    }

private:
    std::uint64_t state_;
};

}  // namespace digits
