// Port numbers for stores that workers host themselves, and for firewalled clusters.
//
// Base ports come from a grid of 4 outside net.ipv4.ip_local_port_range; each is held by an flock on a file in
// /tmp/ddlaunch-ports-<uid> for as long as the reservation lives, so that two jobs of ours never overlap, and base,
// base+1, base+2 were seen free when it was taken (in a given range: base alone).
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "os/fd.hpp"

namespace ddl::os {

class PortReservation {
public:
    // Any grid port; or one within [first, last] (both > 0), of which not all need to be on the grid.
    [[nodiscard]] static Result<PortReservation> take(std::uint16_t first = 0, std::uint16_t last = 0);

    [[nodiscard]] std::uint16_t port() const {
        return port_;
    }

private:
    PortReservation(std::uint16_t port, Fd lock) : port_(port), lock_(std::move(lock)) {
    }
    std::uint16_t port_ = 0;
    Fd lock_;
};

}  // namespace ddl::os
