#include "base/path_component.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace ddl {
namespace {

constexpr std::size_t kMaxComponentBytes = 100;

bool harmless(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

}  // namespace

std::string path_component(std::string_view name) {
    constexpr std::size_t kDigestBytes = 8;
    std::string text(name.substr(0, kMaxComponentBytes));
    for (char& c : text) {
        c = harmless(c) ? c : '_';
    }
    if (!text.empty() && text[0] == '.') {
        text[0] = '_';  // "..", and files that hide
    }
    if (text == name && !text.empty()) {
        return text;
    }
    text.resize(std::min(text.size(), kMaxComponentBytes - kDigestBytes - 1));
    return text + "-" + digest(name).substr(0, kDigestBytes);
}

}  // namespace ddl
