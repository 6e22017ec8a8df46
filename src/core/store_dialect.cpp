#include "core/store_dialect.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ddl::core {
namespace {

constexpr std::uint8_t kWatchKeyOf1_13 = 7;

}  // namespace

void OldReleaseDetector::opened(ConnectionId connection, std::string_view address, Instant now) {
    seen_.insert_or_assign(connection, Seen{std::string(address), now, std::nullopt, std::nullopt});
    by_address_[std::string(address)].emplace(now, connection);
}

void OldReleaseDetector::spoke(ConnectionId connection, std::uint8_t first_byte) {
    const auto it = seen_.find(connection);
    if (it != seen_.end() && !it->second.first_byte) {
        it->second.first_byte = first_byte;
    }
}

void OldReleaseDetector::closed(ConnectionId connection) {
    const auto it = seen_.find(connection);
    if (it == seen_.end()) {
        return;
    }
    const auto group = by_address_.find(it->second.address);
    auto [at, end] = group->second.equal_range(it->second.opened);
    while (at != end) {
        at = at->second == connection ? group->second.erase(at) : std::next(at);
    }
    if (group->second.empty()) {
        by_address_.erase(group);
    }
    seen_.erase(it);
}

void OldReleaseDetector::clear() {
    seen_.clear();
    by_address_.clear();
}

wire::Dialect OldReleaseDetector::decide(ConnectionId connection) {
    const auto it = seen_.find(connection);
    if (it == seen_.end()) {
        return wire::Dialect::k2_1;
    }
    Seen& seen = it->second;
    if (!seen.decided) {
        const bool watches = seen.first_byte == kWatchKeyOf1_13 && has_leader(connection, seen);
        const bool old = watches || has_silent_follower(connection, seen);
        seen.decided = old ? wire::Dialect::k1_13 : wire::Dialect::k2_1;
    }
    return *seen.decided;
}

bool OldReleaseDetector::has_leader(ConnectionId connection, const Seen& seen) const {
    const auto& group = by_address_.at(seen.address);
    const auto end = group.upper_bound(seen.opened);
    return std::any_of(group.lower_bound(seen.opened - kSilentFollowerWindow), end,
                       [&](const auto& other) { return other.second < connection; });
}

bool OldReleaseDetector::has_silent_follower(ConnectionId connection, const Seen& seen) const {
    const auto& group = by_address_.at(seen.address);
    for (auto at = group.lower_bound(seen.opened); at != group.end(); ++at) {
        if (at->first > seen.opened + kSilentFollowerWindow) {
            break;
        }
        const auto& first_byte = seen_.at(at->second).first_byte;
        if (at->second > connection && (!first_byte || first_byte == kWatchKeyOf1_13)) {
            return true;
        }
    }
    return false;
}

}  // namespace ddl::core
