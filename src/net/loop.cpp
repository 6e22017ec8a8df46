#include "net/loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>

#include "os/fd.hpp"

namespace ddl::net {
namespace {

// The part of a watch that outlives it for as long as a completion is queued.
struct WatchState : std::enable_shared_from_this<WatchState> {
    WatchState(asio::io_context& context, std::function<void()> call) : descriptor(context), ready(std::move(call)) {
    }

    void wait() {
        descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                              [self = shared_from_this()](const asio::error_code& error) {
                                  if (self->stopped || error == asio::error::operation_aborted) {
                                      return;
                                  }
                                  self->ready();
                                  if (!self->stopped) {
                                      self->wait();
                                  }
                              });
    }

    asio::posix::stream_descriptor descriptor;
    std::function<void()> ready;
    bool stopped = false;
};

class ReadableWatch final : public Watch {
public:
    explicit ReadableWatch(std::shared_ptr<WatchState> state) : state_(std::move(state)) {
    }
    ~ReadableWatch() override {
        state_->stopped = true;
        if (state_->descriptor.is_open()) {
            state_->descriptor.release();  // the descriptor stays the caller's
        }
    }
    ReadableWatch(const ReadableWatch&) = delete;
    ReadableWatch& operator=(const ReadableWatch&) = delete;

private:
    std::shared_ptr<WatchState> state_;
};

class WritableWatch final : public Watch {
public:
    WritableWatch(os::Fd gate, std::unique_ptr<Watch> watch) : gate_(std::move(gate)), watch_(std::move(watch)) {
    }

private:
    os::Fd gate_;
    std::unique_ptr<Watch> watch_;  // last: it must go before the gate does
};

// A descriptor that is readable while `fd` takes bytes. It stands between, because asio makes what it waits for
// non-blocking for everybody who has it.
os::Fd gate_for(int fd) {
    os::Fd gate(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLOUT;
    if (!gate || ::epoll_ctl(gate.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        gate.reset(::eventfd(1, EFD_CLOEXEC));  // readable for ever
    }
    return gate;
}

itimerspec expiry_of(std::optional<Instant> when) {
    itimerspec spec{};
    if (when.has_value()) {
        // An instant in the past is due at once; all zero would disarm.
        const auto since_boot = std::max<std::int64_t>(when->time_since_epoch().count(), 1);
        spec.it_value.tv_sec = since_boot / 1'000'000'000;
        spec.it_value.tv_nsec = since_boot % 1'000'000'000;
    }
    return spec;
}

}  // namespace

struct Loop::Impl {
    Impl()
        : context(1),
          work(context.get_executor()),
          timer(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {
        if (!timer) {
            std::perror("ddlaunch: timerfd_create");  // no descriptors left at the very start: nothing can go on
            std::abort();
        }
    }

    asio::io_context context;
    asio::executor_work_guard<asio::io_context::executor_type> work;
    // Not asio's steady timer: that one stands still while the machine is suspended.
    os::Fd timer;
    std::unique_ptr<Watch> timer_watch;
    std::optional<Instant> armed;
    std::function<void()> expired;

    void on_timer() {
        std::uint64_t expirations = 0;
        if (::read(timer.get(), &expirations, sizeof expirations) != sizeof expirations || !armed.has_value()) {
            return;  // re-armed in the meantime
        }
        armed.reset();
        const std::function<void()> call = std::exchange(expired, nullptr);
        call();
    }
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {
    impl_->timer_watch = watch_readable(impl_->timer.get(), [impl = impl_.get()] { impl->on_timer(); });
}

Loop::~Loop() = default;

void Loop::run() {
    impl_->context.run();
    impl_->context.restart();  // afterwards, so that a stop() before run() counts
}

void Loop::stop() {
    impl_->context.stop();
}

std::unique_ptr<Watch> Loop::watch_readable(int fd, std::function<void()> ready) {
    auto state = std::make_shared<WatchState>(impl_->context, std::move(ready));
    asio::error_code error;
    state->descriptor.assign(fd, error);
    if (error) {
        // Only a descriptor that cannot be waited for (a regular file, a closed one) comes here: a fault of the caller.
        std::fprintf(stderr, "ddlaunch: descriptor %d cannot be watched: %s\n", fd, error.message().c_str());
        std::abort();
    }
    state->wait();
    return std::make_unique<ReadableWatch>(std::move(state));
}

std::unique_ptr<Watch> Loop::watch_writable(int fd, std::function<void()> ready) {
    os::Fd gate = gate_for(fd);
    auto watch = watch_readable(gate.get(), std::move(ready));
    return std::make_unique<WritableWatch>(std::move(gate), std::move(watch));
}

void Loop::set_alarm(std::optional<Instant> when, std::function<void()> expired) {
    impl_->expired = std::move(expired);
    if (when == impl_->armed) {
        return;
    }
    impl_->armed = when;
    const itimerspec spec = expiry_of(when);
    ::timerfd_settime(impl_->timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Loop::post(std::function<void()> call) {
    asio::post(impl_->context, std::move(call));
}

asio::io_context& Loop::context() {
    return impl_->context;
}

}  // namespace ddl::net
