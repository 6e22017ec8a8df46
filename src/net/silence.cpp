#include "net/silence.hpp"

namespace ddl::net {

void SilentConnections::add(const std::string& address, std::uint64_t id) {
    silent_[address].insert(id);
}

void SilentConnections::spoke(const std::string& address, std::uint64_t id) {
    const auto found = silent_.find(address);
    if (found == silent_.end()) {
        return;
    }
    found->second.erase(id);
    if (found->second.empty()) {
        silent_.erase(found);
    }
}

std::optional<std::uint64_t> SilentConnections::excess(const std::string& address,
                                                       const std::function<bool(std::uint64_t)>& has_input) {
    for (auto found = silent_.find(address); found != silent_.end() && found->second.size() > limit_;
         found = silent_.find(address)) {
        const std::uint64_t oldest = *found->second.begin();
        spoke(address, oldest);
        if (!has_input(oldest)) {
            return oldest;
        }
    }
    return std::nullopt;
}

}  // namespace ddl::net
