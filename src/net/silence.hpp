// Which connections have not sent a byte yet, and which of them is one too many.
//
// Old store clients hold a second connection that never says anything, so silence is no reason to close; but each
// address may have only so many, and then the oldest goes. Pure; ids are the owner's and grow with age.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace ddl::net {

// 16, and 8 for each rank that an address may run.
[[nodiscard]] constexpr std::size_t silent_limit(int ranks) {
    return 16U + 8U * static_cast<std::size_t>(ranks > 0 ? ranks : 0);
}

class SilentConnections {
public:
    explicit SilentConnections(std::size_t limit_per_address) : limit_(limit_per_address) {
    }

    void add(const std::string& address, std::uint64_t id);
    void spoke(const std::string& address, std::uint64_t id);  // or ended; unknown ids are fine

    // The oldest silent connection of an address that has too many. `has_input` tells whether bytes wait in the
    // connection's socket: such a one counts as having spoken from then on.
    [[nodiscard]] std::optional<std::uint64_t> excess(const std::string& address,
                                                      const std::function<bool(std::uint64_t)>& has_input);

    void clear() {
        silent_.clear();
    }

private:
    std::size_t limit_;
    std::unordered_map<std::string, std::set<std::uint64_t>> silent_;
};

}  // namespace ddl::net
