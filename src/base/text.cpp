#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace ddl {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    std::size_t start = 0;
    while (true) {
        const std::size_t end = text.find(separator, start);
        parts.push_back(text.substr(start, end - start));
        if (end == std::string_view::npos) {
            return parts;
        }
        start = end + 1;
    }
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n\v\f";
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
    std::string joined;
    for (const std::string& part : parts) {
        if (&part != &parts.front()) {
            joined += separator;
        }
        joined += part;
    }
    return joined;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
    if (text.size() > 1 && text.front() == '+' && text[1] != '-') {
        text.remove_prefix(1);
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
        return std::nullopt;
    }
    return value;
}

std::optional<double> parse_seconds(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < 0) {
        return std::nullopt;
    }
    return value;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row[b.size()];
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& text) {
    const auto end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
    std::string_view digits = text.substr(0, end);
    text.remove_prefix(end);
    while (digits.size() > 1 && digits.front() == '0') {
        digits.remove_prefix(1);
    }
    return digits;
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
    const std::string* best = nullptr;
    std::size_t best_distance = std::max<std::size_t>(name.size() / 3, 1) + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < best_distance) {
            best = &candidate;
            best_distance = distance;
        }
    }
    return best == nullptr ? std::nullopt : std::optional<std::string>(*best);
}

bool natural_less(std::string_view a, std::string_view b) {
    const std::string_view whole_a = a;
    const std::string_view whole_b = b;
    while (!a.empty() && !b.empty()) {
        if (is_digit(a.front()) && is_digit(b.front())) {
            const std::string_view number_a = take_digits(a);
            const std::string_view number_b = take_digits(b);
            if (number_a.size() != number_b.size()) {
                return number_a.size() < number_b.size();
            }
            if (number_a != number_b) {
                return number_a < number_b;
            }
            continue;
        }
        if (a.front() != b.front()) {
            return a.front() < b.front();
        }
        a.remove_prefix(1);
        b.remove_prefix(1);
    }
    if (a.empty() != b.empty()) {
        return a.empty();
    }
    return whole_a < whole_b;
}

std::string signal_name(int signal) {
    const char* const name = ::sigabbrev_np(signal);
    return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

std::string digest(std::string_view bytes) {
    constexpr std::uint64_t kOffset = 14695981039346656037U;
    constexpr std::uint64_t kPrime = 1099511628211U;
    std::uint64_t hash = kOffset;
    for (const char c : bytes) {
        hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
    }
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (auto it = text.rbegin(); it != text.rend(); ++it, hash >>= 4) {
        *it = kDigits[hash & 15U];
    }
    return text;
}

std::string host_and_port(std::string_view host, std::uint16_t port) {
    const bool bracketed = host.find(':') != std::string_view::npos;
    std::string text = bracketed ? "[" : "";
    text += host;
    text += bracketed ? "]:" : ":";
    return text + std::to_string(port);
}

std::string plain_address(std::string_view address) {
    constexpr std::string_view kMapped = "::ffff:";
    address = address.substr(0, address.find('%'));
    if (address.starts_with(kMapped) && address.find('.') != std::string_view::npos) {
        address.remove_prefix(kMapped.size());
    }
    return std::string(address);
}

std::string decimal(double value) {
    constexpr std::size_t kRoom = 32;
    std::array<char, kRoom> text{};
    std::snprintf(text.data(), text.size(), "%g", value);
    return text.data();
}

}  // namespace ddl
