#include "dataset.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "random.hpp"

namespace digits {
namespace {

constexpr int kHeldOutEvery = 5;
constexpr int kDarkest = 16;

int next_number(std::istringstream& line, int highest) {
    int value = -1;
    char comma = 0;
    if (!(line >> value) || value < 0 || value > highest) {
        throw std::runtime_error("a number from 0 to " + std::to_string(highest) + " was expected");
    }
    line >> comma;
    return value;
}

Image parse_image(const std::string& text) {
    std::istringstream line(text);
    Image image;
    for (double& pixel : image.pixels) {
        pixel = next_number(line, kDarkest) / static_cast<double>(kDarkest);
    }
    image.digit = static_cast<std::size_t>(next_number(line, static_cast<int>(kClasses) - 1));
    return image;
}

}  // namespace

Dataset load_dataset(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        throw std::runtime_error("data file " + path + ": " + std::strerror(errno) + "; name it with --data");
    }
    Dataset data;
    std::string line;
    for (int number = 0; std::getline(file, line); ++number) {
        try {
            (number % kHeldOutEvery == 0 ? data.held_out : data.training).push_back(parse_image(line));
        } catch (const std::runtime_error& error) {
            throw std::runtime_error("data file " + path + ", line " + std::to_string(number + 1) + ": " +
                                     error.what());
        }
    }
    if (data.training.empty()) {
        throw std::runtime_error("data file " + path + ": no images to train on");
    }
    return data;
}

std::vector<std::size_t> epoch_order(std::size_t count, int epoch) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random(static_cast<std::uint64_t>(epoch) + 1);
    for (std::size_t left = count; left > 1; --left) {
        std::swap(order[left - 1], order[random.below(left)]);
    }
    return order;
}

Range share(Range whole, int rank, int size) {
    const std::size_t count = whole.end - whole.begin;
    const auto r = static_cast<std::size_t>(rank);
    const auto n = static_cast<std::size_t>(size);
    return {whole.begin + count * r / n, whole.begin + count * (r + 1) / n};
}

}  // namespace digits
