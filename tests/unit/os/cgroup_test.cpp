#include "os/cgroup.hpp"

#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "unit/os/process_tools.hpp"

namespace ddl::os {
namespace {

using testing::ends_within;
using testing::shell;

constexpr char kUnified[] = "30 1 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
constexpr char kHybrid[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(OwnGroupDirectory, IsFoundWhereverTheHierarchyIsMounted) {
    EXPECT_EQ(own_group_directory(kUnified, "0::/user.slice/a.scope\n"), "/sys/fs/cgroup/user.slice/a.scope");
    EXPECT_EQ(own_group_directory(kHybrid, "5:memory:/x\n1:cpu:/\n0::/job\n"), "/sys/fs/cgroup/unified/job");
    EXPECT_EQ(own_group_directory(kHybrid, "0::/\n"), "/sys/fs/cgroup/unified");
}

TEST(OwnGroupDirectory, CountsFromTheMountedDirectory) {
    const std::string mount = "9 1 0:28 /pods/p1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
    EXPECT_EQ(own_group_directory(mount, "0::/pods/p1/c"), "/sys/fs/cgroup/c");
    EXPECT_EQ(own_group_directory(mount, "0::/pods/p1"), "/sys/fs/cgroup");
    EXPECT_EQ(own_group_directory(mount, "0::/pods/p10"), std::nullopt) << "another group with a longer name";
    EXPECT_EQ(own_group_directory(mount, "0::/elsewhere"), std::nullopt);
}

TEST(OwnGroupDirectory, UnescapesTheMountPoint) {
    EXPECT_EQ(own_group_directory("9 1 0:28 / /sys/a\\040b rw - cgroup2 none rw\n", "0::/c"), "/sys/a b/c");
}

TEST(OwnGroupDirectory, NeedsVersionTwo) {
    EXPECT_EQ(own_group_directory("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "0::/"),
              std::nullopt);
    EXPECT_EQ(own_group_directory(kUnified, "5:memory:/x\n"), std::nullopt);
    EXPECT_EQ(own_group_directory("", ""), std::nullopt);
    EXPECT_EQ(own_group_directory("- cgroup2 \n", "0::/"), std::nullopt) << "too few fields";
}

std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

bool exists(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
}

TEST(WorkerCgroup, EndsAWorkerThatLeftItsSessionAndWipedItsEnvironment) {
    auto group = WorkerCgroup::create("feedc0de");
    if (!group) {
        GTEST_SKIP() << "no writable cgroup version 2 hierarchy with cgroup.kill here";
    }
    SpawnRequest request = shell("setsid env -i /bin/sleep 60 & exec sleep 60");
    request.cgroup = group->open_round();
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    EXPECT_NE(text_of("/proc/" + std::to_string(child->pid) + "/cgroup").find("/ddlaunch-feedc0de/0\n"),
              std::string::npos)
        << "born in the round's group";
    group->kill_round();
    EXPECT_TRUE(ends_within(child->pidfd, 5000));
    (void)reap(child->pid);
    const std::string path = group->path();
    remove_cgroup(path);
    EXPECT_FALSE(exists(path)) << "empty, so its runaway is dead";
}

TEST(WorkerCgroup, ARoundAfterAKillLives) {
    auto group = WorkerCgroup::create("feedc0e1");
    if (!group) {
        GTEST_SKIP() << "no writable cgroup version 2 hierarchy with cgroup.kill here";
    }
    for (int round = 0; round < 3; ++round) {
        SpawnRequest request = shell("exit 0");
        request.cgroup = group->open_round();
        const auto child = spawn(request);
        ASSERT_TRUE(child);
        ASSERT_TRUE(ends_within(child->pidfd, 5000));
        EXPECT_FALSE(reap(child->pid)->signalled);
        group->kill_round();
    }
}

TEST(WorkerCgroup, AWorkerThatDoesNotSurviveItsBirthThereIsBornOutside) {
    auto group = WorkerCgroup::create("feedc0e2");
    if (!group) {
        GTEST_SKIP() << "no writable cgroup version 2 hierarchy with cgroup.kill here";
    }
    SpawnRequest request = shell("exit 4");
    request.cgroup = group->open_round();
    group->kill_round();  // Linux 6.18 ends whatever is born there from now on
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    ASSERT_TRUE(ends_within(child->pidfd, 5000));
    const auto status = reap(child->pid);
    EXPECT_FALSE(status->signalled);
    EXPECT_EQ(status->number, 4);
}

TEST(WorkerCgroup, IsRemovedWithItsOwner) {
    std::string path;
    {
        const auto group = WorkerCgroup::create("feedc0df");
        if (!group) {
            GTEST_SKIP() << "no writable cgroup version 2 hierarchy with cgroup.kill here";
        }
        path = group->path();
        EXPECT_TRUE(exists(path));
    }
    EXPECT_FALSE(exists(path));
}

TEST(WorkerCgroup, IsNotMadeInsideASlurmJob) {
    ::setenv("SLURM_JOB_ID", "7", 1);
    EXPECT_FALSE(WorkerCgroup::create("feedc0e0"));
    ::unsetenv("SLURM_JOB_ID");
}

TEST(WorkerCgroup, IsNoNeedForAWorker) {
    SpawnRequest request = shell("exit 3");
    request.cgroup = 9999;  // not a descriptor: the worker is born beside its agent
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    ASSERT_TRUE(ends_within(child->pidfd, 5000));
    EXPECT_EQ(reap(child->pid)->number, 3);
}

TEST(KillCgroup, OfNoneOrAVanishedOneDoesNothing) {
    kill_cgroup("");
    kill_cgroup("/sys/fs/cgroup/no-such-group");
    remove_cgroup("");
    remove_cgroup("/sys/fs/cgroup/no-such-group");
}

}  // namespace
}  // namespace ddl::os
