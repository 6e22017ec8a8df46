// Numeric addresses: text of a socket address, and the allow-list of the worker store.
//
// Pure but for inet_pton and inet_ntop. Used by the store server and by everything that names a peer. Never resolves
// a name.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ddl::net {

// Plain text of an address, without port: "10.0.0.1", "fd00::1" (v4-mapped forms normalised, scope dropped).
[[nodiscard]] std::string numeric_address(const sockaddr_storage& address);

// The socket address of a numeric address (a scope "%eth0" is understood); nullopt if it isn't one.
[[nodiscard]] std::optional<sockaddr_storage> socket_address(const std::string& numeric, std::uint16_t port);
[[nodiscard]] socklen_t size_of(const sockaddr_storage& address);

// A set of addresses and CIDR networks of both families.
class AddressSet {
public:
    // Error names the entry that is neither an address nor a network.
    [[nodiscard]] static Result<AddressSet> parse(const std::vector<std::string>& networks);

    [[nodiscard]] bool contains(const std::string& address) const;

private:
    struct Network {
        std::array<std::uint8_t, 16> bits{};  // IPv4 as v4-mapped
        int prefix = 128;
    };
    [[nodiscard]] static std::optional<Network> parse_network(std::string_view text);

    std::vector<Network> networks_;
};

}  // namespace ddl::net
