// Starts at the edges: very many, very large, with odd names, and whatever must not reach a worker.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "os/host.hpp"
#include "os/process.hpp"
#include "process_tools.hpp"

namespace ddl::os {
namespace {

using testing::ends_within;
using ::testing::HasSubstr;
using testing::Pipe;
using testing::shell;
using testing::wait_for;

std::string output_of(SpawnRequest request) {
    Pipe pipe;
    request.standard_out = pipe.write_end.get();
    const auto child = spawn(request);
    if (!child) {
        return child.error().text();
    }
    std::string text = pipe.read_until();
    wait_for(*child);
    return text;
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        ++count;
    }
    return count;
}

class Folder {
public:
    Folder() : path_((std::filesystem::temp_directory_path() / ("ddl_spawn_" + random_hex(4))).string()) {
        std::filesystem::create_directory(path_);
    }
    ~Folder() {
        std::filesystem::remove_all(path_);
    }
    std::string program(const std::string& name, const std::string& script, unsigned mode = 0755) const {
        std::string file = path_ + "/" + name;
        std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
        ::chmod(file.c_str(), mode);
        return file;
    }
    [[nodiscard]] const std::string& path() const {
        return path_;
    }

private:
    std::string path_;
};

TEST(SpawnEdges, ManyStartsLeaveNoDescriptorAndNoChild) {
    (void)reap_strangers({});
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 100; ++i) {
        const auto child = spawn(shell("exit " + std::to_string(i)));
        ASSERT_TRUE(child) << child.error().text();
        EXPECT_EQ(wait_for(*child).number, i);
    }
    SpawnRequest missing;
    missing.arguments = {"/no/such/program"};
    for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(spawn(missing));
    }
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_EQ(reap_strangers({}), 0);
}

TEST(SpawnEdges, AnArgumentThatIsTooLargeIsAFailedStart) {
    SpawnRequest request;
    request.arguments = {"/bin/true", std::string(std::size_t{8} << 20U, 'x')};
    const auto child = spawn(request);
    ASSERT_FALSE(child);
    EXPECT_EQ(child.error().error, E2BIG);
    EXPECT_EQ(child.error().text(), "exec /bin/true: Argument list too long");
}

TEST(SpawnEdges, AFolderIsNoProgram) {
    const Folder folder;
    SpawnRequest request;
    request.arguments = {folder.path()};
    EXPECT_EQ(spawn(request).error().error, EACCES);
    std::filesystem::create_directory(folder.path() + "/tool");
    request.arguments = {"tool"};
    request.environment = {"PATH=" + folder.path()};
    EXPECT_FALSE(spawn(request));
}

TEST(SpawnEdges, TheFirstOneInPathThatMayBeExecutedCounts) {
    const Folder first;
    const Folder second;
    first.program("ddl_tool", "echo first", 0644);
    second.program("ddl_tool", "echo second");
    SpawnRequest request;
    request.arguments = {"ddl_tool"};
    request.environment = {"PATH=/no/such:" + first.path() + ":" + second.path() + ":/usr/bin:/bin"};
    EXPECT_EQ(output_of(request), "second\n") << "as a shell would";
    request.environment = {"PATH=" + first.path()};
    EXPECT_EQ(output_of(request), "find ddl_tool in PATH: Permission denied");
}

TEST(SpawnEdges, WithoutAPathTheUsualFoldersAreLookedThrough) {
    SpawnRequest request;
    request.arguments = {"sh", "-c", "echo found"};
    EXPECT_EQ(output_of(request), "found\n");
    request.environment = {"PATHS=/nowhere", "APATH=/nowhere"};
    EXPECT_EQ(output_of(request), "found\n") << "other names are other variables";
}

TEST(SpawnEdges, OddNamesAndArgumentsGetThrough) {
    const Folder folder;
    const std::string program = folder.program("a name with 'quotes' & more", "printf '<%s>' \"$@\"");
    SpawnRequest request;
    request.arguments = {program, "", " ", "\n", "--", "\xC3\xA4", "$HOME", "*"};
    request.environment = {"PATH=/usr/bin:/bin"};
    EXPECT_EQ(output_of(request), "<>< ><\n><--><\xC3\xA4><$HOME><*>");
}

TEST(SpawnEdges, BlockedAndIgnoredSignalsOfOursAreNotTheWorkers) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    const auto child = spawn(shell("kill -TERM $$; exit 3"));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ASSERT_TRUE(child);
    const ExitStatus status = wait_for(*child);
    EXPECT_TRUE(status.signalled) << "a worker must be stoppable";
    EXPECT_EQ(status.number, SIGTERM);
}

TEST(SpawnEdges, AKillOfTheGroupReachesWhatTheWorkerStarted) {
    Pipe output;
    SpawnRequest request = shell("sleep 60 & echo $!; wait");
    request.standard_out = output.write_end.get();
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    const Fd helper = testing::pidfd_of(std::stoi(output.read_until("\n")));
    ::kill(-child->pid, SIGKILL);
    EXPECT_TRUE(ends_within(helper, 5000));
    EXPECT_EQ(wait_for(*child).number, SIGKILL);
}

TEST(SpawnEdges, AReapedOneIsReapedOnce) {
    const auto child = spawn(shell("exit 4"));
    ASSERT_TRUE(child);
    ASSERT_TRUE(ends_within(child->pidfd, 5000));
    const auto first = reap(child->pid);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->number, 4);
    EXPECT_FALSE(reap(child->pid));
    EXPECT_FALSE(has_ended(child->pid));
}

TEST(SpawnEdges, OfARepeatedVariableTheFirstIsUsedForTheLookUpAndAllAreHandedOn) {
    const Folder folder;
    std::filesystem::create_symlink("/usr/bin/env", folder.path() + "/ddl_tool");
    SpawnRequest request;
    request.arguments = {"ddl_tool"};
    request.environment = {"PATH=" + folder.path(), "PATH=/no/such", "A=1", "A=2"};
    EXPECT_THAT(output_of(request), HasSubstr("PATH=/no/such\nA=1\nA=2\n"));
}

TEST(SpawnEdges, AScriptIsStartedByItsInterpreterWithItsOwnPath) {
    const Folder folder;
    const std::string script = folder.program("script", "echo $0 $1");
    SpawnRequest request;
    request.arguments = {script, "x"};
    request.environment = {"PATH=/usr/bin:/bin"};
    EXPECT_EQ(output_of(request), script + " x\n");
}

TEST(SpawnEdges, AGivenInputIsReadToItsEnd) {
    Pipe input;
    SpawnRequest request = shell("wc -c");
    request.standard_in = input.read_end.get();
    const std::string text(50'000, 'x');
    ASSERT_EQ(::write(input.write_end.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    input.write_end.reset();  // or the worker, had it inherited this end, would wait for ever
    EXPECT_EQ(output_of(request), "50000\n");
}

TEST(SpawnEdges, FailuresReadAsOneLine) {
    EXPECT_EQ((SpawnFailure{"setsid", EPERM}.text()), "setsid: Operation not permitted");
    EXPECT_THAT((SpawnFailure{"exec ./a", ENOEXEC}.text()), HasSubstr("a script needs a #! line"));
    EXPECT_THAT((SpawnFailure{"exec ./a", ENOENT}.text()), ::testing::Not(HasSubstr("#!")));
}

}  // namespace
}  // namespace ddl::os
