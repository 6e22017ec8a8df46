// One line for people, as an effect of core.
#pragma once

#include <cstdint>
#include <string>

namespace ddl::core {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };

struct Say {
    Severity severity = Severity::kInfo;
    std::string text;

    friend bool operator==(const Say&, const Say&) = default;
};

}  // namespace ddl::core
