#include "net/refusals.hpp"

namespace ddl::net {

std::optional<std::string> Refusals::count(const std::string& address, std::uint16_t port) {
    const std::string where = "worker store, port " + std::to_string(port) + ": ";
    if (!counts_.contains(address) && counts_.size() >= kMaxRefusedAddresses) {
        if (full_) {
            return std::nullopt;
        }
        full_ = true;
        return where + "refused connections from more than " + std::to_string(kMaxRefusedAddresses) +
               " addresses; further ones are not named";
    }
    Count& count = counts_[address];
    if (++count.refused < count.next_line_at) {
        return std::nullopt;
    }
    count.next_line_at *= 10;
    const std::string times =
        count.refused == 1 ? "a connection" : std::to_string(count.refused) + " connections so far";
    return where + "refused " + times + " from " + address +
           ", which is no address of this round's nodes; if a worker connects from there, add --store-allow=" + address;
}

}  // namespace ddl::net
