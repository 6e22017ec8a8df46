// How a user's text appears in a message: in quotes, on one line, cut when it is long.
#pragma once

#include <string>
#include <string_view>

namespace ddl::plan {

[[nodiscard]] inline std::string quoted(std::string_view text) {
    constexpr std::size_t kLongest = 120;
    std::string out = "\"";
    for (const char c : text.substr(0, kLongest)) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte == 0x7F ? '?' : c;
    }
    return out + (text.size() > kLongest ? "...\"" : "\"");
}

}  // namespace ddl::plan
