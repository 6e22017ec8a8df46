#include "model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "random.hpp"

namespace digits {
namespace {

// Where the four blocks start in the flat array.
constexpr std::size_t kHiddenBias = kHidden * kPixels;
constexpr std::size_t kOutWeights = kHiddenBias + kHidden;
constexpr std::size_t kOutBias = kOutWeights + kClasses * kHidden;

struct Activations {
    std::array<double, kHidden> hidden{};
    std::array<double, kClasses> probability{};
};

void softmax(std::array<double, kClasses>& scores) {
    const double highest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) {
        score = std::exp(score - highest);
        sum += score;
    }
    for (double& score : scores) {
        score /= sum;
    }
}

Activations forward(const Numbers& p, const Image& image) {
    Activations a;
    for (std::size_t h = 0; h < kHidden; ++h) {
        double sum = p[kHiddenBias + h];
        for (std::size_t i = 0; i < kPixels; ++i) {
            sum += p[h * kPixels + i] * image.pixels[i];
        }
        a.hidden[h] = std::max(sum, 0.0);
    }
    for (std::size_t c = 0; c < kClasses; ++c) {
        double sum = p[kOutBias + c];
        for (std::size_t h = 0; h < kHidden; ++h) {
            sum += p[kOutWeights + c * kHidden + h] * a.hidden[h];
        }
        a.probability[c] = sum;
    }
    softmax(a.probability);
    return a;
}

Outcome outcome(const Activations& a, std::size_t digit) {
    constexpr double kTiny = 1e-300;  // keeps the logarithm finite
    const auto likeliest = std::max_element(a.probability.begin(), a.probability.end()) - a.probability.begin();
    return {-std::log(std::max(a.probability[digit], kTiny)), static_cast<std::size_t>(likeliest) == digit};
}

}  // namespace

Numbers initial_parameters() {
    Numbers p(kParameters, 0.0);
    Random random(1797);
    const double first = std::sqrt(6.0 / kPixels);
    const double second = std::sqrt(6.0 / kHidden);
    for (std::size_t i = 0; i < kHiddenBias; ++i) {
        p[i] = first * random.symmetric();
    }
    for (std::size_t i = kOutWeights; i < kOutBias; ++i) {
        p[i] = second * random.symmetric();
    }
    return p;
}

Outcome judge(const Numbers& parameters, const Image& image) {
    return outcome(forward(parameters, image), image.digit);
}

Outcome add_gradient(const Numbers& p, const Image& image, Numbers& gradient) {
    const Activations a = forward(p, image);
    std::array<double, kHidden> back{};
    for (std::size_t c = 0; c < kClasses; ++c) {
        const double delta = a.probability[c] - (c == image.digit ? 1.0 : 0.0);
        gradient[kOutBias + c] += delta;
        for (std::size_t h = 0; h < kHidden; ++h) {
            gradient[kOutWeights + c * kHidden + h] += delta * a.hidden[h];
            back[h] += delta * p[kOutWeights + c * kHidden + h];
        }
    }
    for (std::size_t h = 0; h < kHidden; ++h) {
        if (a.hidden[h] <= 0) {
            continue;
        }
        gradient[kHiddenBias + h] += back[h];
        for (std::size_t i = 0; i < kPixels; ++i) {
            gradient[h * kPixels + i] += back[h] * image.pixels[i];
        }
    }
    return outcome(a, image.digit);
}

}  // namespace digits
