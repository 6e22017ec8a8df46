#include "os/signals.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>

#include "os/clock.hpp"

namespace ddl::os {
namespace {

class SignalMask : public ::testing::Test {
protected:
    void SetUp() override {
        ::pthread_sigmask(SIG_SETMASK, nullptr, &before_);
    }
    void TearDown() override {
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    sigset_t before_{};
};

TEST_F(SignalMask, SourceDeliversWhatWasBlocked) {
    auto source = SignalSource::open({SIGUSR1, SIGUSR2});
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(source->next(), std::nullopt);
    ::raise(SIGUSR2);
    pollfd ready{source->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 0), 1);
    EXPECT_EQ(source->next(), SIGUSR2);
    EXPECT_EQ(source->next(), std::nullopt);
    ::raise(SIGUSR1);
    ::raise(SIGUSR2);
    EXPECT_EQ(source->next(), SIGUSR1);
    EXPECT_EQ(source->next(), SIGUSR2);
}

TEST_F(SignalMask, RefusesNumbersThatAreNone) {
    const auto source = SignalSource::open({SIGUSR1, 4711});
    ASSERT_FALSE(source);
    EXPECT_EQ(source.error().message, "signal 4711 does not exist");
}

TEST(Clock, NeverGoesBack) {
    const Instant first = now();
    EXPECT_LE(first, now());
    EXPECT_GT(first.time_since_epoch(), Duration::zero());
}

}  // namespace
}  // namespace ddl::os
