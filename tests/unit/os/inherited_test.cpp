// A process that was started with less than it may expect. Each test looks at a child of its own.
#include "os/inherited.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace ddl::os {
namespace {

// What `look` returns in a child that `spoil` was called in first.
template <class Spoil, class Look>
int in_spoiled_child(Spoil spoil, Look look) {
    const pid_t child = ::fork();
    if (child == 0) {
        spoil();
        repair_inherited_state();
        ::_exit(look());
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int lowest_free_descriptor() {
    const int fd = ::open("/dev/null", O_RDONLY);
    ::close(fd);
    return fd;
}

TEST(InheritedState, ClosedStandardDescriptorsAreTaken) {
    const auto close_all = [] {
        for (int fd = 0; fd < 3; ++fd) {
            ::close(fd);
        }
    };
    EXPECT_GE(in_spoiled_child(close_all, lowest_free_descriptor), 3);
    EXPECT_EQ(in_spoiled_child(close_all, [] { return ::write(STDERR_FILENO, "x", 1) == 1 ? 0 : 1; }), 0);
    EXPECT_EQ(in_spoiled_child(close_all, [] { return ::fcntl(STDOUT_FILENO, F_GETFD); }), 0) << "workers inherit it";
    EXPECT_GE(in_spoiled_child([] { ::close(1); }, lowest_free_descriptor), 3);
}

TEST(InheritedState, OpenOnesStayWhatTheyAre) {
    const auto read_from_a_pipe = [] {
        int ends[2];
        if (::pipe(ends) != 0 || ::dup2(ends[0], STDIN_FILENO) < 0 || ::write(ends[1], "k", 1) != 1) {
            ::_exit(1);
        }
    };
    const auto first_byte = [] {
        char byte = 0;
        return ::read(STDIN_FILENO, &byte, 1) == 1 ? static_cast<int>(byte) : 0;
    };
    EXPECT_EQ(in_spoiled_child(read_from_a_pipe, first_byte), 'k');
}

TEST(InheritedState, ExitStatusesOfChildrenAreKept) {
    const auto ignore = [] {
        ::signal(SIGCHLD, SIG_IGN);
    };
    const auto status_of_a_child = [] {
        const pid_t grandchild = ::fork();
        if (grandchild == 0) {
            ::_exit(7);
        }
        int status = 0;
        return ::waitpid(grandchild, &status, 0) == grandchild ? WEXITSTATUS(status) : 1;
    };
    EXPECT_EQ(in_spoiled_child(ignore, status_of_a_child), 7);
}

}  // namespace
}  // namespace ddl::os
