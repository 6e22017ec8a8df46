// The agent's one event loop: readiness of descriptors, one timer, deferred calls. One thread, no recursion.
//
// Owned by main; run::Driver and the classes of net/ register with it. It hides asio, so that run/ includes none of
// it. All callbacks run on the thread inside run(). Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/time.hpp"

namespace asio {
class io_context;
}

namespace ddl::net {

// Keeps a registration alive; destroying it stops the callbacks (also from within the callback itself).
class Watch {
public:
    virtual ~Watch() = default;
};

class Loop {
public:
    Loop();
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    void run();   // blocks until stop()
    void stop();  // run() returns after the current callback

    // Calls `ready` each time `fd` is readable (level-triggered), including hang-up. The caller keeps owning `fd` and
    // must destroy the watch before closing it. The descriptor becomes non-blocking; one watch at a time for each.
    [[nodiscard]] std::unique_ptr<Watch> watch_readable(int fd, std::function<void()> ready);

    // Calls `ready` each time `fd` takes bytes (level-triggered), or has failed. The descriptor is left as it is, since
    // it may be shared with others; one that cannot be waited for (a regular file) always takes bytes.
    [[nodiscard]] std::unique_ptr<Watch> watch_writable(int fd, std::function<void()> ready);

    // Replaces the one alarm. `expired` runs at or after `when` (os::now()'s clock); nullopt disarms.
    void set_alarm(std::optional<Instant> when, std::function<void()> expired);

    void post(std::function<void()> call);

    // For the other files of net/ only.
    [[nodiscard]] asio::io_context& context();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ddl::net
