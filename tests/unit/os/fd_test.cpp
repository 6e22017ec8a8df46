// Ownership of descriptors: closed once, by the last owner, and never by one that gave it away.
#include "os/fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace ddl::os {
namespace {

int fresh() {
    return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

TEST(OwnedDescriptor, NoneIsNone) {
    Fd none;
    EXPECT_FALSE(none);
    EXPECT_EQ(none.get(), -1);
    EXPECT_EQ(none.release(), -1);
    none.reset();
    EXPECT_TRUE(Fd(0).release() == 0) << "0 is a descriptor like any other";
}

TEST(OwnedDescriptor, IsClosedAtTheEnd) {
    const int raw = fresh();
    {
        const Fd owner(raw);
        EXPECT_TRUE(owner);
        EXPECT_TRUE(is_open(raw));
    }
    EXPECT_FALSE(is_open(raw));
}

TEST(OwnedDescriptor, MovesToOneOwner) {
    const int raw = fresh();
    Fd first(raw);
    Fd second(std::move(first));
    EXPECT_FALSE(first);
    EXPECT_EQ(second.get(), raw);
    Fd third;
    third = std::move(second);
    EXPECT_FALSE(second);
    EXPECT_TRUE(is_open(raw));
    third.reset();
    EXPECT_FALSE(is_open(raw));
}

TEST(OwnedDescriptor, AnAssignmentClosesWhatWasThere) {
    const int old = fresh();
    const int raw = fresh();
    Fd owner(old);
    owner = Fd(raw);
    EXPECT_FALSE(is_open(old));
    EXPECT_TRUE(is_open(raw));
    owner.reset(fresh());
    EXPECT_FALSE(is_open(raw) && owner.get() != raw);
    Fd& same = owner;
    const int kept = owner.get();
    owner = std::move(same);
    EXPECT_EQ(owner.get(), kept) << "an assignment to itself keeps it";
    EXPECT_TRUE(is_open(kept));
}

TEST(OwnedDescriptor, ReleasedOnesAreTheCallers) {
    const int raw = fresh();
    {
        Fd owner(raw);
        EXPECT_EQ(owner.release(), raw);
        EXPECT_FALSE(owner);
    }
    EXPECT_TRUE(is_open(raw));
    ::close(raw);
}

}  // namespace
}  // namespace ddl::os
