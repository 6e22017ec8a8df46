#include <gtest/gtest.h>

#include <ddlaunch/route.hpp>
#include <ddlaunch/store.hpp>
#include <string>

namespace {

using ddlaunch::is_loopback_address;
using ddlaunch::local_address_towards;

TEST(Route, TellsLoopbackAddressesFromOthers) {
    for (const char* own :
         {"127.0.0.1", "127.0.1.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::FFFF:127.9.9.9"}) {
        EXPECT_TRUE(is_loopback_address(own)) << own;
    }
    for (const char* other :
         {"10.77.0.1", "128.0.0.1", "12.7.0.1", "::", "fd77::1", "::ffff:10.0.0.1", "localhost", ""}) {
        EXPECT_FALSE(is_loopback_address(other)) << other;
    }
}

TEST(Route, LoopbackIsReachedFromLoopback) {
    EXPECT_EQ(local_address_towards("127.0.0.1", 29400), "127.0.0.1");
    EXPECT_TRUE(is_loopback_address(local_address_towards("127.0.1.1", 29400)));
    EXPECT_TRUE(is_loopback_address(local_address_towards("localhost", 29400)));
}

TEST(Route, UnknownNameIsAnErrorThatNamesIt) {
    try {
        (void)local_address_towards("no-such-host.invalid", 29400);
        FAIL() << "an unknown name was resolved";
    } catch (const ddlaunch::StoreError& error) {
        EXPECT_EQ(error.code(), ddlaunch::StoreErrc::kConnection);
        EXPECT_NE(std::string(error.what()).find("no-such-host.invalid"), std::string::npos);
    }
}

TEST(Route, BroadcastIsNoPlaceToReach) {
    EXPECT_THROW((void)local_address_towards("255.255.255.255", 29400), ddlaunch::StoreError);
}

}  // namespace
