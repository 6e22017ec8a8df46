#include "os/ports.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace ddl::os {
namespace {

Fd listener_on(std::uint16_t port) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket.get(), 1) != 0) {
        return Fd();
    }
    return socket;
}

TEST(PortReservation, GridPortsAreDistinctAndApart) {
    std::vector<PortReservation> kept;
    std::set<int> ports;
    for (int i = 0; i < 5; ++i) {
        auto taken = PortReservation::take();
        ASSERT_TRUE(taken) << taken.error().message;
        EXPECT_EQ(taken->port() % 4, 0);
        ports.insert(taken->port());
        kept.push_back(std::move(*taken));
    }
    EXPECT_EQ(ports.size(), 5U);
    EXPECT_EQ(ports.count(29400), 0U);
    EXPECT_EQ(ports.count(29500), 0U);
}

TEST(PortReservation, GivesThePortBackWhenItEnds) {
    std::uint16_t port = 0;
    {
        const auto taken = PortReservation::take();
        ASSERT_TRUE(taken);
        port = taken->port();
        EXPECT_FALSE(PortReservation::take(port, port));
    }
    EXPECT_TRUE(PortReservation::take(port, port));
}

TEST(PortReservation, PassesOverPortsInUse) {
    std::uint16_t base = 0;
    {
        const auto free = PortReservation::take();
        ASSERT_TRUE(free);
        base = free->port();
    }
    const Fd occupied = listener_on(base);
    ASSERT_TRUE(occupied);
    const auto next = PortReservation::take(base, static_cast<std::uint16_t>(base + 1));
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_EQ(next->port(), base + 1);
    const auto none = PortReservation::take(base, base);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find(std::to_string(base)), std::string::npos);
    EXPECT_NE(none.error().message.find("give a wider range"), std::string::npos);
}

// Runs `check` in a child, whose directories and limits are its own; its exit code.
template <class Check>
int in_a_child(Check check) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(check());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(PortReservation, LocksLieInTheRuntimeDirectoryAndDoNotPileUp) {
    std::string runtime = ::testing::TempDir() + "/runtime-XXXXXX";
    ASSERT_NE(::mkdtemp(runtime.data()), nullptr);
    const auto before = std::getenv("XDG_RUNTIME_DIR") ? std::string(std::getenv("XDG_RUNTIME_DIR")) : "";
    ::setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
    {
        auto taken = PortReservation::take();
        ASSERT_TRUE(taken);
        const std::string file = runtime + "/ddlaunch-ports/" + std::to_string(taken->port());
        EXPECT_TRUE(std::filesystem::exists(file));
        auto moved = std::move(*taken);
        taken = PortReservation::take();
        EXPECT_TRUE(std::filesystem::exists(file)) << "what was moved from has no lock to end";
        EXPECT_FALSE(PortReservation::take(moved.port(), moved.port()));
        EXPECT_TRUE(std::filesystem::exists(file)) << "who did not get the lock must not remove it";
    }
    EXPECT_TRUE(std::filesystem::is_empty(runtime + "/ddlaunch-ports"));
    ::setenv("XDG_RUNTIME_DIR", (runtime + "/missing").c_str(), 1);
    EXPECT_TRUE(PortReservation::take()) << "the other directory serves";
    before.empty() ? ::unsetenv("XDG_RUNTIME_DIR") : ::setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
    std::filesystem::remove_all(runtime);
}

TEST(PortReservation, NeedsNoLockWhereNoneCanBeMade) {
    constexpr int kNotPermitted = 77;
    const int result = in_a_child([] {
        ::unsetenv("XDG_RUNTIME_DIR");
        if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("none", "/tmp", "tmpfs", MS_RDONLY, nullptr) != 0) {
            return kNotPermitted;
        }
        return PortReservation::take() ? 0 : 1;
    });
    if (result == kNotPermitted) {
        GTEST_SKIP() << "mount namespaces are not permitted here";
    }
    EXPECT_EQ(result, 0);
}

TEST(PortReservation, SaysThatDescriptorsAreUsedUp) {
    const int result = in_a_child([] {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_NOFILE, &none);
        const auto taken = PortReservation::take();
        return !taken && taken.error().message.find("too many open files (raise ulimit -n)") != std::string::npos ? 0
                                                                                                                  : 1;
    });
    EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace ddl::os
