#include "net/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "base/text.hpp"

namespace ddl::net {
namespace {

using Bits = std::array<std::uint8_t, 16>;
constexpr int kMappedPrefix = 96;

// IPv4 addresses become v4-mapped ones, so that one comparison serves both families.
std::optional<Bits> bits_of(const std::string& address) {
    Bits bits{};
    if (::inet_pton(AF_INET6, address.c_str(), bits.data()) == 1) {
        return bits;
    }
    bits[10] = bits[11] = 0xFF;
    if (::inet_pton(AF_INET, address.c_str(), bits.data() + 12) == 1) {
        return bits;
    }
    return std::nullopt;
}

bool same_prefix(const Bits& a, const Bits& b, int prefix) {
    const auto whole = static_cast<std::size_t>(prefix / 8);
    const int rest = prefix % 8;
    if (std::memcmp(a.data(), b.data(), whole) != 0) {
        return false;
    }
    return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

}  // namespace

std::string numeric_address(const sockaddr_storage& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* bits = nullptr;
    if (address.ss_family == AF_INET6) {
        bits = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    } else if (address.ss_family == AF_INET) {
        bits = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    } else {
        return "";
    }
    const bool converted = ::inet_ntop(address.ss_family, bits, text.data(), text.size()) != nullptr;
    return converted ? plain_address(text.data()) : "";
}

std::optional<sockaddr_storage> socket_address(const std::string& numeric, std::uint16_t port) {
    sockaddr_storage storage{};
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    if (::inet_pton(AF_INET, numeric.c_str(), &v4.sin_addr) == 1) {
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        return storage;
    }
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    const std::size_t scope = numeric.find('%');
    if (::inet_pton(AF_INET6, numeric.substr(0, scope).c_str(), &v6.sin6_addr) != 1) {
        return std::nullopt;
    }
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    if (scope != std::string::npos) {
        const std::string name = numeric.substr(scope + 1);
        v6.sin6_scope_id = ::if_nametoindex(name.c_str());
        if (v6.sin6_scope_id == 0) {
            v6.sin6_scope_id = static_cast<std::uint32_t>(parse_integer(name).value_or(0));
        }
    }
    return storage;
}

socklen_t size_of(const sockaddr_storage& address) {
    return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::optional<AddressSet::Network> AddressSet::parse_network(std::string_view text) {
    const std::size_t slash = text.find('/');
    const std::string address = std::string(text.substr(0, std::min(slash, text.find('%'))));
    const auto bits = bits_of(address);
    if (!bits.has_value()) {
        return std::nullopt;
    }
    const bool is_v4 = address.find(':') == std::string::npos;
    const int longest = is_v4 ? 32 : 128;
    std::int64_t prefix = longest;
    if (slash != std::string_view::npos) {
        prefix = parse_integer(text.substr(slash + 1)).value_or(-1);
    }
    if (prefix < 0 || prefix > longest) {
        return std::nullopt;
    }
    return Network{*bits, static_cast<int>(prefix) + (is_v4 ? kMappedPrefix : 0)};
}

Result<AddressSet> AddressSet::parse(const std::vector<std::string>& networks) {
    AddressSet set;
    for (const std::string& text : networks) {
        const auto network = parse_network(trim(text));
        if (!network.has_value()) {
            return fail("allowed address '" + text + "' is neither an address nor a network: write it like 10.0.0.5, " +
                        "10.0.0.0/24 or fd00::/64");
        }
        set.networks_.push_back(*network);
    }
    return set;
}

bool AddressSet::contains(const std::string& address) const {
    const auto bits = bits_of(plain_address(address));
    return bits.has_value() && std::any_of(networks_.begin(), networks_.end(), [&bits](const Network& network) {
               return same_prefix(network.bits, *bits, network.prefix);
           });
}

}  // namespace ddl::net
