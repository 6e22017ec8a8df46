// One console descriptor (1 or 2) that is written without ever blocking the event loop, whoever reads it or doesn't.
//
// Two per process, owned by run::launch, shared by Console (the launcher's own lines) and LogPump (workers' output), so
// that both come out in the order in which they were written. What the reader does not take now waits in memory; the
// loop goes on with it while one is attached. O_NONBLOCK is never set on the inherited descriptor, which belongs to
// others as well: a pipe or terminal is opened anew; where that is refused, poll() is asked before each piece of at
// most PIPE_BUF bytes. A descriptor that fails (nobody reads any more) loses what waits.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/loop.hpp"
#include "os/fd.hpp"

namespace ddl::run {

class ConsoleOutput {
public:
    // From here on a writer that can wait is asked to: four pipes full of a worker's output.
    static constexpr std::size_t kFullBytes = 256 * 1024;
    // Of the launcher's own lines; beyond it they are counted instead of kept.
    static constexpr std::size_t kOwnBytes = 64 * 1024;

    explicit ConsoleOutput(int fd);

    // While attached, what waits is written when the reader takes it; `room` runs when the output is no longer full, or
    // has failed. Detach before the loop goes.
    void attach(net::Loop& loop, std::function<void()> room);
    void detach();

    // Workers' bytes: all are kept, so ask full() before making more. False once the descriptor has failed.
    bool write(std::string_view bytes);

    // A whole text of the launcher's own, with a newline at its end.
    void say(std::string_view text);

    void flush();  // what the reader takes right now

    [[nodiscard]] bool full() const {
        return waiting_.size() > kFullBytes;
    }
    [[nodiscard]] std::size_t waiting_bytes() const {
        return waiting_.size();
    }
    [[nodiscard]] int fd() const {
        return own_ ? own_.get() : fd_;
    }

private:
    enum class Kind : std::uint8_t { kNonBlocking, kSocket, kPolled };
    struct OwnText {
        std::uint64_t end;  // in the stream of all bytes
        std::size_t size;
    };

    [[nodiscard]] long write_now(std::string_view piece) const;
    void append(std::string_view bytes);
    void taken(std::size_t count);
    void say_what_was_dropped();
    void watch_while_waiting();

    int fd_;
    os::Fd own_;  // the same pipe or terminal, opened anew
    Kind kind_ = Kind::kPolled;
    bool failed_ = false;
    std::string waiting_;
    char last_ = '\n';
    std::uint64_t taken_bytes_ = 0;
    std::deque<OwnText> own_texts_;  // those that wait
    std::size_t own_bytes_ = 0;
    std::uint64_t dropped_ = 0;
    net::Loop* loop_ = nullptr;
    std::function<void()> room_;
    std::unique_ptr<net::Watch> watch_;
};

struct ConsoleOutputs {
    ConsoleOutput& out;
    ConsoleOutput& err;
};

// At the end of the process, without a loop: waits for the reader until it has taken nothing for 1 s (10 s in all), or
// until `interrupt_fd` is readable and `interrupted` agrees. What it did not take by then is lost. -1: no interruption.
void drain(ConsoleOutputs outputs, int interrupt_fd = -1, const std::function<bool()>& interrupted = nullptr);

}  // namespace ddl::run
