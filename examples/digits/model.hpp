// The network: 64 pixels, 32 hidden units (ReLU), 10 classes (softmax, cross-entropy), as one flat array of numbers so
// that parameters, gradients and momentum can be summed, sent and saved as they are. Pure arithmetic in double.
#pragma once

#include <cstddef>
#include <vector>

#include "dataset.hpp"

namespace digits {

inline constexpr std::size_t kHidden = 32;
inline constexpr std::size_t kParameters = kHidden * kPixels + kHidden + kClasses * kHidden + kClasses;

using Numbers = std::vector<double>;

// The same on every rank.
[[nodiscard]] Numbers initial_parameters();

struct Outcome {
    double loss = 0;
    bool right = false;  // the likeliest class is the image's
};

[[nodiscard]] Outcome judge(const Numbers& parameters, const Image& image);

// Adds the gradient of the image's loss to `gradient` (kParameters numbers) and returns the outcome.
Outcome add_gradient(const Numbers& parameters, const Image& image, Numbers& gradient);

}  // namespace digits
