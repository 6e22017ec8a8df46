// One try to connect to one numeric address, with a time limit.
//
// Owned by AgentLink. `done` runs once on the loop's thread, never from within the constructor, and not after
// destruction. Destroying a Connector within its own callback is safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/loop.hpp"
#include "os/fd.hpp"

namespace ddl::net {

class Connector {
public:
    Connector(Loop& loop, const std::string& address, std::uint16_t port, Duration limit,
              std::function<void(Result<os::Fd>)> done);
    ~Connector();
    Connector(const Connector&) = delete;
    Connector& operator=(const Connector&) = delete;

private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ddl::net
