#include "os/ports.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <set>

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

}  // namespace
}  // namespace ddl::os
