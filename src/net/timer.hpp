// One-shot timers for the files of net/: handshakes, back-off, pauses. Deadlines of the job are core's and use
// Loop::set_alarm.
//
// Owned by whatever waits; cancelling or destroying it stops the callback, also from within the callback itself.
#pragma once

#include <functional>
#include <memory>

#include "base/time.hpp"
#include "net/loop.hpp"

namespace ddl::net {

class Timer {
public:
    explicit Timer(Loop& loop);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    void start(Duration wait, std::function<void()> expired);  // replaces a running wait
    void cancel();

private:
    struct State;
    Loop& loop_;
    std::shared_ptr<State> state_;  // null: not running
};

}  // namespace ddl::net
