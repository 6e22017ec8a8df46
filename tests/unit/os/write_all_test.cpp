#include "os/write_all.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "process_tools.hpp"

namespace ddl::os {
namespace {

TEST(WriteAll, WaitsForASlowReaderOfANonBlockingPipe) {
    testing::Pipe pipe;
    const std::string text(1'000'000, 'x');  // much more than a pipe holds
    const pid_t writer = ::fork();
    if (writer == 0) {
        pipe.read_end.reset();
        ::fcntl(pipe.write_end.get(), F_SETFL, O_NONBLOCK);
        ::_exit(write_all(pipe.write_end.get(), text));
    }
    EXPECT_EQ(pipe.read_until().size(), text.size());
    int status = -1;
    ::waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST(WriteAll, SaysWhatStoppedIt) {
    const auto before = ::signal(SIGPIPE, SIG_IGN);
    testing::Pipe pipe;
    pipe.read_end.reset();
    EXPECT_EQ(write_all(pipe.write_end.get(), "to nobody"), EPIPE);
    EXPECT_EQ(write_all(-1, "to nothing"), EBADF);
    EXPECT_EQ(write_all(-1, ""), 0) << "nothing to write is no error";
    const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    EXPECT_EQ(write_all(full.get(), "to a full disk"), ENOSPC);
    ::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace ddl::os
