// /proc as it shows real processes: families in motion, environments before and after an exec, and those that ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>

#include "os/family.hpp"
#include "os/procfs.hpp"
#include "process_tools.hpp"

namespace ddl::os {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::ends_within;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::pidfd_of;
using testing::Pipe;
using testing::shell;
using testing::wait_for;

std::vector<pid_t> pids_of(const std::vector<ProcessFacts>& all) {
    std::vector<pid_t> pids;
    for (const ProcessFacts& facts : all) {
        pids.push_back(facts.pid);
    }
    std::sort(pids.begin(), pids.end());
    return pids;
}

// A shell with a child and a grandchild that do nothing until they are killed.
class ThreeGenerations {
public:
    ThreeGenerations() {
        SpawnRequest request =
            shell("sh -c 'sh -c \"echo \\$\\$; exec sleep 60\" & echo $$; wait' & echo $!; wait; true");
        request.standard_out = output_.write_end.get();
        auto spawned = spawn(request);
        if (!spawned) {
            return;
        }
        top = std::move(*spawned);
        std::string text;
        while (std::count(text.begin(), text.end(), '\n') < 3) {
            const std::string more = output_.read_until("\n");
            if (more.empty()) {
                return;
            }
            text += more;
        }
        std::vector<pid_t> below = pids_of(descendants_of(top.pid, {}));
        for (const pid_t pid : below) {
            (read_process(pid)->parent == top.pid ? child : grandchild) = pid;
        }
    }
    ~ThreeGenerations() {
        for (const pid_t pid : {grandchild, child, top.pid}) {
            if (pid > 0) {
                ::kill(pid, SIGKILL);
            }
        }
        testing::end(top);
    }

    Child top;
    pid_t child = -1;
    pid_t grandchild = -1;

private:
    Pipe output_;
};

TEST(LiveProcesses, AFamilyIsSeenGenerationByGeneration) {
    const ThreeGenerations family;
    ASSERT_GT(family.child, 0);
    ASSERT_GT(family.grandchild, 0);
    EXPECT_THAT(children_of(::getpid()), Contains(family.top.pid));
    EXPECT_THAT(children_of(::getpid()), Not(Contains(family.child)));
    EXPECT_THAT(children_of(family.top.pid), ElementsAre(family.child));
    EXPECT_THAT(children_of(family.grandchild), IsEmpty());
    std::vector<pid_t> both = {family.child, family.grandchild};
    std::sort(both.begin(), both.end());
    EXPECT_EQ(pids_of(descendants_of(family.top.pid, {})), both);
}

TEST(LiveProcesses, WhatIsBelowASparedOneIsSparedToo) {
    const ThreeGenerations family;
    ASSERT_GT(family.grandchild, 0);
    EXPECT_THAT(descendants_of(family.top.pid, {family.child}), IsEmpty());
    EXPECT_THAT(pids_of(descendants_of(family.top.pid, {family.grandchild})), ElementsAre(family.child));
    EXPECT_THAT(pids_of(descendants_of(::getpid(), {family.top.pid})), Not(Contains(family.grandchild)));
}

TEST(LiveProcesses, FactsAreThoseOfTheProcess) {
    const ThreeGenerations family;
    ASSERT_GT(family.grandchild, 0);
    const auto top = read_process(family.top.pid);
    const auto grandchild = read_process(family.grandchild);
    ASSERT_TRUE(top && grandchild);
    EXPECT_EQ(top->parent, ::getpid());
    EXPECT_EQ(top->session, family.top.pid) << "a worker has a session of its own";
    EXPECT_EQ(grandchild->session, family.top.pid);
    EXPECT_LE(top->start_ticks, grandchild->start_ticks);
    EXPECT_EQ(top->command, "sh");
    EXPECT_TRUE(top->has_image);
    EXPECT_FALSE(top->ended);
    EXPECT_FALSE(top->exiting);
}

TEST(LiveProcesses, AZombieHasEndedAndHasNothingToRead) {
    const auto child = spawn(shell("exit 3", {"DDL_PROCFS_TEST=1"}));
    ASSERT_TRUE(child);
    ASSERT_TRUE(ends_within(child->pidfd, 5000));
    const auto facts = read_process(child->pid);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->state, 'Z');
    EXPECT_TRUE(facts->ended);
    EXPECT_TRUE(facts->exiting);
    EXPECT_FALSE(facts->has_image);
    EXPECT_EQ(settled_environment(child->pid), "") << "without waiting for an exec that will never come";
    wait_for(*child);
    EXPECT_FALSE(read_process(child->pid));
}

TEST(LiveProcesses, AnEnvironmentIsThatOfTheLastExec) {
    Pipe gate;
    Pipe output;
    SpawnRequest request =
        shell("echo up; read line; exec env -i DDLAUNCH_SPAWN_ID=feed.9 sh -c 'echo again; read line'",
              {std::string(kSpawnIdVariable) + "=feed.4"});
    request.standard_in = gate.read_end.get();
    request.standard_out = output.write_end.get();
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    ASSERT_EQ(output.read_until("\n"), "up\n");
    EXPECT_EQ(spawn_serial(settled_environment(child->pid), "feed"), 4);
    ASSERT_EQ(::write(gate.write_end.get(), "\n", 1), 1);
    ASSERT_EQ(output.read_until("\n"), "again\n");
    EXPECT_EQ(spawn_serial(settled_environment(child->pid), "feed"), 9);
    EXPECT_EQ(spawn_serial(settled_environment(child->pid), "fee"), std::nullopt);
    testing::end(*child);
}

TEST(LiveProcesses, ALargeEnvironmentIsReadWhole) {
    Pipe gate;
    Pipe output;
    SpawnRequest request = shell("echo up; read line");
    request.standard_in = gate.read_end.get();
    request.standard_out = output.write_end.get();
    for (int i = 0; i < 20; ++i) {
        request.environment.push_back("FILL" + std::to_string(i) + "=" + std::string(50'000, 'x'));
    }
    request.environment.push_back(std::string(kSpawnIdVariable) + "=beef.7");
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    ASSERT_EQ(output.read_until("\n"), "up\n");
    const std::string text = settled_environment(child->pid);
    EXPECT_GT(text.size(), 1'000'000U);
    EXPECT_EQ(spawn_serial(text, "beef"), 7) << "the last entry of all";
    testing::end(*child);
}

// The kernel gives the new image its arguments some time before its environment, longer the larger they are.
TEST(LiveProcesses, AnExecUnderWayIsNotTakenForAnEmptyEnvironment) {
    const auto line = [](const std::string& arguments, const std::string& environment) {
        std::string text = "42 (sh) R 7 42 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654";
        for (int field = 23; field <= 47; ++field) {
            text += " 5";
        }
        return text + " " + arguments + " " + arguments + " " + environment + " " + environment + " 0\n";
    };
    EXPECT_FALSE(parse_stat(line("0", "0"))->has_image);
    EXPECT_FALSE(parse_stat(line("140720000", "0"))->has_image);
    EXPECT_TRUE(parse_stat(line("140720000", "140729999"))->has_image);
}

TEST(LiveProcesses, ALookAtTheWholeMachineHasNoDoublesAndNobodyHalf) {
    const ThreeGenerations family;
    std::vector<pid_t> pids = pids_of(all_processes());
    EXPECT_EQ(std::adjacent_find(pids.begin(), pids.end()), pids.end());
    EXPECT_THAT(pids, Contains(family.top.pid));
    for (const ProcessFacts& facts : all_processes()) {
        EXPECT_GT(facts.pid, 0);
        EXPECT_GE(facts.parent, 0);
        EXPECT_NE(facts.state, '?');
    }
}

TEST(LiveProcesses, AStoppedOneIsAliveAndOneWithBracketsInItsNameIsRead) {
    const auto child = spawn(shell("kill -STOP $$"));
    ASSERT_TRUE(child);
    for (int i = 0; i < 1'000'000 && read_process(child->pid)->state != 'T'; ++i) {
        ::sched_yield();
    }
    EXPECT_EQ(read_process(child->pid)->state, 'T');
    EXPECT_FALSE(read_process(child->pid)->ended);
    testing::end(*child);

    ::prctl(PR_SET_NAME, "a) Z 1 (b");
    const auto self = read_process(::getpid());
    ::prctl(PR_SET_NAME, "os_test");
    ASSERT_TRUE(self);
    EXPECT_EQ(self->command, "a) Z 1 (b");
    EXPECT_EQ(self->parent, ::getppid());
    EXPECT_FALSE(self->ended);
}

}  // namespace
}  // namespace ddl::os
