// The three opcode tables. Those of 2.2+ and 2.1 follow the order of Request, which the assertions below pin down.
#include <type_traits>

#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

constexpr std::size_t kDeleteKey = 7;
constexpr std::size_t kCancelWait = 11;
constexpr std::size_t kBarrier = 17;
constexpr std::size_t kWatchKey = 18;

static_assert(std::is_same_v<std::variant_alternative_t<0, Request>, op::Set>);
static_assert(std::is_same_v<std::variant_alternative_t<kDeleteKey, Request>, op::DeleteKey>);
static_assert(std::is_same_v<std::variant_alternative_t<kCancelWait, Request>, op::CancelWait>);
static_assert(std::is_same_v<std::variant_alternative_t<kBarrier, Request>, op::Barrier>);
static_assert(std::is_same_v<std::variant_alternative_t<kWatchKey, Request>, op::WatchKey>);

constexpr std::uint8_t kLastCommonOpcode = 6;  // GETNUMKEYS, the last one that 1.13 and 2.1 share
constexpr std::uint8_t kWatchKeyOf1_13 = 7;
constexpr std::uint8_t kDeleteKeyOf1_13 = 8;

std::optional<std::size_t> kind_in_1_13(std::uint8_t opcode) {
    if (opcode <= kLastCommonOpcode) {
        return opcode;
    }
    if (opcode == kWatchKeyOf1_13) {
        return kWatchKey;
    }
    return opcode == kDeleteKeyOf1_13 ? std::optional(kDeleteKey) : std::nullopt;
}

std::optional<std::uint8_t> opcode_in_1_13(std::size_t kind) {
    if (kind == kWatchKey) {
        return kWatchKeyOf1_13;
    }
    if (kind == kDeleteKey) {
        return kDeleteKeyOf1_13;
    }
    return kind <= kLastCommonOpcode ? std::optional(static_cast<std::uint8_t>(kind)) : std::nullopt;
}

}  // namespace

std::optional<std::size_t> request_kind(Dialect dialect, std::uint8_t opcode) {
    switch (dialect) {
        case Dialect::k1_13:
            return kind_in_1_13(opcode);
        case Dialect::k2_1:
            return opcode <= kLastOldOpcode ? std::optional<std::size_t>(opcode) : std::nullopt;
        case Dialect::kModern:
            break;
    }
    return opcode >= 1 && opcode <= kBarrier + 1 ? std::optional<std::size_t>(opcode - 1U) : std::nullopt;
}

std::optional<std::uint8_t> opcode_of(Dialect dialect, const Request& request) {
    const std::size_t kind = request.index();
    switch (dialect) {
        case Dialect::k1_13:
            return opcode_in_1_13(kind);
        case Dialect::k2_1:
            return kind <= kCancelWait ? std::optional(static_cast<std::uint8_t>(kind)) : std::nullopt;
        case Dialect::kModern:
            break;
    }
    return kind <= kBarrier ? std::optional(static_cast<std::uint8_t>(kind + 1)) : std::nullopt;
}

}  // namespace ddl::wire
