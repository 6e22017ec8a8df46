// Signals as readable events (signalfd).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/fd.hpp"

namespace ddl::os {

class SignalSource {
public:
    // Blocks `signals` in this thread (call it before any thread starts) and opens a descriptor for them.
    [[nodiscard]] static Result<SignalSource> open(const std::vector<int>& signals);

    [[nodiscard]] int fd() const {
        return fd_.get();
    }
    [[nodiscard]] std::optional<int> next();  // nullopt: none pending

private:
    explicit SignalSource(Fd fd) : fd_(std::move(fd)) {
    }
    Fd fd_;
};

}  // namespace ddl::os
