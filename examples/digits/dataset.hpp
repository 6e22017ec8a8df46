// The images, read from CSV and split into training and held-out sets: always the same split on every rank.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace digits {

inline constexpr std::size_t kPixels = 64;
inline constexpr std::size_t kClasses = 10;

struct Image {
    std::array<double, kPixels> pixels{};  // 0 to 1
    std::size_t digit = 0;
};

struct Dataset {
    std::vector<Image> training;
    std::vector<Image> held_out;  // every fifth line of the file, from the first
};

// Throws std::runtime_error naming file and line.
[[nodiscard]] Dataset load_dataset(const std::string& path);

// The order in which `count` images are visited in an epoch: depends on nothing else.
[[nodiscard]] std::vector<std::size_t> epoch_order(std::size_t count, int epoch);

// The part of [begin, end) that is `rank`'s; parts differ by at most one in size and may be empty.
struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
};
[[nodiscard]] Range share(Range whole, int rank, int size);

}  // namespace digits
