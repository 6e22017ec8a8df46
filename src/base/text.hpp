// Small text helpers that several rooms need. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddl {

[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);  // "a,,b" has three parts
[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The whole text as a decimal integer (a sign is allowed, blanks are not); nullopt on anything else or overflow.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);
// A number of seconds for people: "5", "0.25".
[[nodiscard]] std::string decimal(double value);

// The whole text as a non-negative decimal number of seconds ("1.5"); nullopt on anything else.
[[nodiscard]] std::optional<double> parse_seconds(std::string_view text);

// The candidate with the smallest edit distance to `name`, if that is at most a third of its length.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name,
                                                      const std::vector<std::string>& candidates);

// Orders texts as people do: "n2" before "n10".
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

[[nodiscard]] std::string signal_name(int signal);  // "SIGTERM", "signal 42"

// FNV-1a, as 16 hex digits: a digest to compare, not to trust.
[[nodiscard]] std::string digest(std::string_view bytes);

// "[fd00::1]:29400", "h0:29400".
[[nodiscard]] std::string host_and_port(std::string_view host, std::uint16_t port);

// Numeric address without a v4-mapped prefix and without a scope: "::ffff:10.0.0.1" -> "10.0.0.1".
[[nodiscard]] std::string plain_address(std::string_view address);

}  // namespace ddl
