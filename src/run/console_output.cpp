#include "run/console_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "os/clock.hpp"

namespace ddl::run {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kDrainLimit = std::chrono::seconds(10);
constexpr std::size_t kRoomBytes = ConsoleOutput::kFullBytes / 4;  // well below full, or each piece would wake all

// A pipe takes up to PIPE_BUF bytes whole or not at all. Others may write to it, too, so a piece ends with a line.
std::string_view next_piece(std::string_view text) {
    if (text.size() <= PIPE_BUF) {
        return text;
    }
    const std::size_t newline = text.rfind('\n', PIPE_BUF - 1);
    return text.substr(0, newline == std::string_view::npos ? PIPE_BUF : newline + 1);
}

// An open file description of our own, non-blocking for us alone; empty if there is none to be had.
os::Fd open_anew(int fd) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    return os::Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

ConsoleOutput::ConsoleOutput(int fd) : fd_(fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) {
        return;
    }
    if (S_ISSOCK(info.st_mode)) {
        kind_ = Kind::kSocket;
    } else if (S_ISFIFO(info.st_mode) || ::isatty(fd) == 1) {
        own_ = open_anew(fd);
        kind_ = own_ ? Kind::kNonBlocking : Kind::kPolled;
    }
}

void ConsoleOutput::attach(net::Loop& loop, std::function<void()> room) {
    loop_ = &loop;
    room_ = std::move(room);
    watch_while_waiting();
}

void ConsoleOutput::detach() {
    watch_.reset();
    room_ = nullptr;
    loop_ = nullptr;
}

bool ConsoleOutput::write(std::string_view bytes) {
    if (failed_) {
        return false;
    }
    append(bytes);
    flush();
    return !failed_;
}

// Tried even after a failure: a disk may have room again.
void ConsoleOutput::say(std::string_view text) {
    flush();
    if (dropped_ > 0 || own_bytes_ >= kOwnBytes) {
        ++dropped_;
        return;
    }
    append(text);
    own_texts_.push_back({taken_bytes_ + waiting_.size(), text.size()});
    own_bytes_ += text.size();
    flush();
}

void ConsoleOutput::append(std::string_view bytes) {
    if (!bytes.empty()) {
        waiting_ += bytes;
        last_ = bytes.back();
    }
}

void ConsoleOutput::flush() {
    const std::string_view all = waiting_;
    std::size_t done = 0;
    while (done < all.size()) {
        const long count = write_now(next_piece(all.substr(done)));
        if (count > 0) {
            done += static_cast<std::size_t>(count);
        } else if (count < 0 && errno == EAGAIN) {
            break;
        } else if (count == 0 || errno != EINTR) {
            failed_ = true;
            done = all.size();
        }
    }
    taken(done);
    watch_while_waiting();
}

// -1 with EAGAIN instead of blocking.
long ConsoleOutput::write_now(std::string_view piece) const {
    if (kind_ == Kind::kSocket) {
        return ::send(fd_, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    pollfd ready{fd(), POLLOUT, 0};
    if (kind_ == Kind::kPolled && ::poll(&ready, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return ::write(fd(), piece.data(), piece.size());
}

void ConsoleOutput::taken(std::size_t count) {
    const bool was_full = waiting_.size() > kRoomBytes;
    waiting_.erase(0, count);
    taken_bytes_ += count;
    while (!own_texts_.empty() && own_texts_.front().end <= taken_bytes_) {
        own_bytes_ -= own_texts_.front().size;
        own_texts_.pop_front();
    }
    if (dropped_ > 0 && own_texts_.empty()) {
        say_what_was_dropped();
    }
    if (was_full && waiting_.size() <= kRoomBytes && room_) {
        room_();
    }
}

void ConsoleOutput::say_what_was_dropped() {
    const std::uint64_t count = std::exchange(dropped_, 0);
    const std::string line =
        "ddlaunch: " + std::to_string(count) + " lines of the launcher are left out here: nobody read this console\n";
    say(last_ == '\n' ? line : "\n" + line);
}

void ConsoleOutput::watch_while_waiting() {
    if (waiting_.empty() || loop_ == nullptr) {
        watch_.reset();
    } else if (!watch_) {
        watch_ = loop_->watch_writable(fd(), [this] { flush(); });
    }
}

void drain(ConsoleOutputs outputs, int interrupt_fd, const std::function<bool()>& interrupted) {
    const Instant end = os::now() + kDrainLimit;
    Instant patience = os::now() + kPatience;
    std::size_t before = SIZE_MAX;
    for (;;) {
        std::array<pollfd, 3> ready{{{interrupt_fd, POLLIN, 0}}};
        nfds_t used = 1;
        std::size_t waiting = 0;
        for (ConsoleOutput* output : {&outputs.out, &outputs.err}) {
            output->flush();
            waiting += output->waiting_bytes();
            if (output->waiting_bytes() > 0) {
                ready[used++] = {output->fd(), POLLOUT, 0};
            }
        }
        const Instant now = os::now();
        if (waiting < std::exchange(before, waiting)) {
            patience = now + kPatience;
        }
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min(patience, end) - now);
        if (waiting == 0 || left.count() <= 0) {
            return;
        }
        if (::poll(ready.data(), used, static_cast<int>(left.count())) > 0 && ready[0].revents != 0 && interrupted()) {
            return;
        }
    }
}

}  // namespace ddl::run
