// What a program says to --version, and those that say nothing, too much, or never come back.
#include "run/program_version.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <csignal>
#include <fstream>

#include "os/clock.hpp"
#include "scratch.hpp"

namespace ddl::run {
namespace {

using namespace std::chrono_literals;

class Programs {
public:
    std::string add(const std::string& script) {
        const std::string path = directory_ / ("program" + std::to_string(count_++));
        std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
        ::chmod(path.c_str(), 0755);
        return path;
    }
    [[nodiscard]] std::string file(const std::string& name) const {
        return directory_ / name;
    }

private:
    testing::ScratchDirectory directory_;
    int count_ = 0;
};

TEST(ProgramVersion, IsTheFirstLineOfTheAnswer) {
    Programs programs;
    EXPECT_EQ(version_of_program(programs.add("echo Python 3.11.2; echo '[GCC 12]'"), 5s), "Python 3.11.2");
    EXPECT_EQ(version_of_program(programs.add("printf 'Python 3.9'"), 5s), "Python 3.9");
    EXPECT_EQ(version_of_program(programs.add("echo Python 2.7.18 >&2"), 5s), "Python 2.7.18") << "as old ones do";
    EXPECT_EQ(version_of_program(programs.add("echo \"<$*>\""), 5s), "<--version>");
}

TEST(ProgramVersion, FailuresAreNoVersion) {
    Programs programs;
    EXPECT_EQ(version_of_program(programs.add("echo broken installation; exit 1"), 5s), "");
    EXPECT_EQ(version_of_program(programs.add("echo Python 3.11.2; kill -SEGV $$"), 5s), "");
    EXPECT_EQ(version_of_program(programs.add("exit 0"), 5s), "");
    EXPECT_EQ(version_of_program(programs.file("missing"), 5s), "");
    EXPECT_EQ(version_of_program("no-such-program-in-path", 5s), "");
    EXPECT_EQ(version_of_program("", 5s), "");
}

TEST(ProgramVersion, TheAnswerStaysOnOneShortLine) {
    Programs programs;
    EXPECT_EQ(version_of_program(programs.add("printf 'a\\033[31mb\\tc\\n'"), 5s), "a?[31mb?c");
    const std::string endless = version_of_program(programs.add("head -c 1000000 /dev/zero | tr '\\0' x; exit 0"), 5s);
    EXPECT_LE(endless.size(), 120U) << "and a full pipe stops nobody";
}

TEST(ProgramVersion, OneThatDoesNotComeBackIsEndedWithAllItStarted) {
    Programs programs;
    const std::string pids = programs.file("pids");
    const Instant before = os::now();
    EXPECT_EQ(version_of_program(programs.add("sleep 60 & echo $$ $! >" + pids + "; echo Python 3.11.2; wait"), 300ms),
              "");
    EXPECT_GE(os::now() - before, Duration(300ms));
    EXPECT_LT(os::now() - before, Duration(5s));
    pid_t program = 0;
    pid_t child = 0;
    std::ifstream(pids) >> program >> child;
    ASSERT_GT(program, 0);
    ASSERT_GT(child, 0);
    EXPECT_EQ(::kill(program, 0), -1) << "it was reaped";
    const os::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0U)));  // none: it is gone already
    pollfd ended{pidfd.get(), POLLIN, 0};
    EXPECT_TRUE(!pidfd || ::poll(&ended, 1, 5000) == 1);
}

TEST(ProgramVersion, WhatItLeftInTheBackgroundDoesNotHoldUsUp) {
    Programs programs;
    const Instant before = os::now();
    EXPECT_EQ(version_of_program(programs.add("sleep 60 & echo Python 3.11.2"), 20s), "Python 3.11.2");
    EXPECT_LT(os::now() - before, Duration(10s));
}

TEST(ProgramVersion, ReadsNothingFromOurInput) {
    Programs programs;
    EXPECT_EQ(version_of_program(programs.add("read line; echo \"got <$line>\""), 5s), "got <>");
}

}  // namespace
}  // namespace ddl::run
