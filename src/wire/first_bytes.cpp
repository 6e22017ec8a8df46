#include "wire/first_bytes.hpp"

#include <algorithm>

#include "wire/agent_message.hpp"
#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

FirstBytes classify_agent(std::string_view bytes) {
    const std::size_t known = std::min(bytes.size(), kSessionMagic.size());
    for (std::size_t i = 0; i < known; ++i) {
        if (static_cast<std::uint8_t>(bytes[i]) != kSessionMagic[i]) {
            return FirstBytes::kUnknown;
        }
    }
    return known == kSessionMagic.size() ? FirstBytes::kAgentSession : FirstBytes::kNeedMore;
}

FirstBytes classify_zero(std::string_view bytes) {
    if (bytes.size() < kFirstBytesMax) {
        return FirstBytes::kNeedMore;
    }
    std::uint32_t word = 0;
    for (std::size_t i = 4; i >= 1; --i) {
        word = word << 8U | static_cast<std::uint8_t>(bytes[i]);
    }
    if (word == kValidateMagic) {
        return FirstBytes::kStore;
    }
    return word <= kMaxKeyBytes ? FirstBytes::kOldStore : FirstBytes::kUnknown;
}

}  // namespace

FirstBytes classify_first_bytes(std::string_view bytes) {
    if (bytes.empty()) {
        return FirstBytes::kNeedMore;
    }
    const auto first = static_cast<std::uint8_t>(bytes.front());
    if (first == 0) {
        return classify_zero(bytes);
    }
    if (first <= kLastOldOpcode) {
        return FirstBytes::kOldStore;
    }
    if (first == kSessionMagic.front()) {
        return classify_agent(bytes);
    }
    return first == 0x16 ? FirstBytes::kTls : FirstBytes::kUnknown;
}

}  // namespace ddl::wire
