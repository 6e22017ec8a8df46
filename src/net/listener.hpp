// A TCP port that can be held without listening, opened, and closed to new connections again.
//
// Owned by StoreServer and AgentHub. A port that is held but not open refuses connections as an unused one does, which
// is what clients retry on. Accepted descriptors are non-blocking, close-on-exec and tuned. Never reads from them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "net/loop.hpp"
#include "net/store_server.hpp"
#include "net/timer.hpp"
#include "os/fd.hpp"

namespace ddl::net {

struct ListenerCallbacks {
    std::function<void(os::Fd fd, std::string address)> accepted;  // numeric address, normalised
    std::function<void(std::string)> warn;                         // optional: out of descriptors
};

class Listener {
public:
    // Takes the port (0: a free one). Error names the address, the port and, where it can be found, who has it; a port
    // that several nodes agreed on can't be left to chance instead.
    [[nodiscard]] static Result<std::unique_ptr<Listener>> bind(Loop& loop, Reach reach, std::uint16_t port,
                                                                bool port_is_agreed = false);

    Listener(Loop& loop, Reach reach, std::uint16_t port, os::Fd fd);  // for bind() only

    [[nodiscard]] std::uint16_t port() const {
        return port_;
    }
    [[nodiscard]] Result<void> open(ListenerCallbacks callbacks);
    void accept_waiting();  // now, without waiting for the loop's next turn; at most so many
    void close();           // waiting connections are reset; the port stays taken

private:
    void watch();
    void pause(int error);

    Loop& loop_;
    Reach reach_;
    std::uint16_t port_;
    os::Fd fd_;
    std::shared_ptr<const ListenerCallbacks> callbacks_;
    std::unique_ptr<Watch> watch_;
    Timer pause_;
    bool warned_ = false;
};

}  // namespace ddl::net
