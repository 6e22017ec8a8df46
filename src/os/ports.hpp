// Port numbers for stores that workers host themselves, and for firewalled clusters.
//
// Base ports come from a grid of 4 outside net.ipv4.ip_local_port_range; each is held by an flock on a file in
// $XDG_RUNTIME_DIR/ddlaunch-ports or <scratch_base()>/ddlaunch-ports-<uid> for as long as the reservation lives, so
// that two jobs of ours never overlap; where neither can be written there is no lock. base, base+1, base+2 were seen
// free when it was taken (in a given range: base alone).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "os/fd.hpp"

namespace ddl::os {

// A locked file that is removed when the lock ends; empty: none.
class PortLock {
public:
    PortLock() = default;
    PortLock(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {
    }
    PortLock(PortLock&& other) noexcept = default;
    PortLock& operator=(PortLock&& other) noexcept;
    ~PortLock() {
        release();
    }

private:
    void release();

    Fd file_;
    std::string path_;
};

class PortReservation {
public:
    // Any grid port; or one within [first, last] (both > 0), of which not all need to be on the grid.
    [[nodiscard]] static Result<PortReservation> take(std::uint16_t first = 0, std::uint16_t last = 0);

    [[nodiscard]] std::uint16_t port() const {
        return port_;
    }

private:
    PortReservation(std::uint16_t port, PortLock lock) : port_(port), lock_(std::move(lock)) {
    }
    std::uint16_t port_ = 0;
    PortLock lock_;
};

}  // namespace ddl::os
