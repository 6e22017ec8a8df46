// The launcher's own lines: their form, what quiet leaves out, and a stderr that nobody reads any more.
#include "run/console.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <string>

#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

TEST(Console, LinesNameTheHostAndTheKind) {
    testing::CapturedConsole captured;
    const Console console("n1", false, captured.output());
    console.note("2 of 4 nodes");
    console.warn("log files are off");
    console.error("cannot start");
    EXPECT_EQ(captured.take(),
              "ddlaunch[n1]: 2 of 4 nodes\nddlaunch[n1]: warning: log files are off\nddlaunch[n1]: error: cannot "
              "start\n");
}

TEST(Console, QuietLeavesOutNotesOnly) {
    testing::CapturedConsole captured;
    const Console console("n1", true, captured.output());
    console.note("unheard");
    EXPECT_EQ(captured.take(), "");
    console.warn("heard");
    console.error("heard, too");
    console.print("a report");
    EXPECT_EQ(captured.take(), "ddlaunch[n1]: warning: heard\nddlaunch[n1]: error: heard, too\na report\n");
}

TEST(Console, TextsGetOneNewlineAtTheirEnd) {
    testing::CapturedConsole captured;
    const Console console("n1", false, captured.output());
    console.print("two\nlines\n");
    console.print("one");
    console.print("");
    EXPECT_EQ(captured.take(), "two\nlines\none\n");
}

TEST(Console, AClosedReaderIsNoTrouble) {
    ::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ::close(ends[0]);
    ConsoleOutput output(ends[1]);
    const Console console("n1", false, output);
    console.error("to nobody");
    ::close(ends[1]);
    console.error("to no descriptor at all");
    ::signal(SIGPIPE, SIG_DFL);
}

TEST(Console, ALongTextArrivesWholeThroughASmallPipe) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const os::Fd reader(ends[0]);
    const std::string text(300'000, 'x');
    const pid_t child = ::fork();
    if (child == 0) {
        ConsoleOutput output(ends[1]);
        Console("n1", false, output).print(text);
        drain({output, output});
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string received;
    std::array<char, 65536> bytes{};
    for (ssize_t got = 1; got > 0;) {
        got = ::read(reader.get(), bytes.data(), bytes.size());
        received.append(bytes.data(), static_cast<std::size_t>(got > 0 ? got : 0));
    }
    EXPECT_EQ(received, text + "\n");
    ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace ddl::run
