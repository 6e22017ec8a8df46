#include "net/timer.hpp"

#include <utility>

#include <asio/steady_timer.hpp>

namespace ddl::net {

struct Timer::State {
    State(asio::io_context& context, std::function<void()> call) : timer(context), expired(std::move(call)) {
    }
    asio::steady_timer timer;
    std::function<void()> expired;
    bool cancelled = false;
};

Timer::Timer(Loop& loop) : loop_(loop) {
}

Timer::~Timer() {
    cancel();
}

void Timer::start(Duration wait, std::function<void()> expired) {
    cancel();
    state_ = std::make_shared<State>(loop_.context(), std::move(expired));
    state_->timer.expires_after(wait);
    state_->timer.async_wait([state = state_](const asio::error_code&) {
        if (!state->cancelled) {  // a cancelled wait may have been completed already
            state->expired();
        }
    });
}

void Timer::cancel() {
    if (state_ != nullptr) {
        state_->cancelled = true;
        state_->timer.cancel();
        state_.reset();
    }
}

}  // namespace ddl::net
