#include "os/family.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>

#include "os/procfs.hpp"
#include "process_tools.hpp"

namespace ddl::os {
namespace {

using testing::ends_within;
using testing::pidfd_of;
using testing::Pipe;
using testing::shell;

std::string id(const std::string& nonce, int serial) {
    return std::string(kSpawnIdVariable) + "=" + nonce + "." + std::to_string(serial);
}

bool has(const std::vector<Member>& members, pid_t pid) {
    return std::any_of(members.begin(), members.end(), [pid](const Member& member) { return member.pid == pid; });
}

// A worker, and a child of it that has become an orphan. Both stop themselves, so that nothing moves in a test.
class Family {
public:
    Family(const std::string& nonce, int serial, const std::string& way = "setsid") {
        SpawnRequest request =
            shell("(" + way + " sh -c 'echo $$; kill -STOP $$' &); kill -STOP $$", {id(nonce, serial)});
        request.standard_out = pipe_.write_end.get();
        auto spawned = spawn(request);
        if (spawned) {
            worker = std::move(*spawned);
            runaway = std::stoi(pipe_.read_until("\n"));
            runaway_fd = pidfd_of(runaway);
            wait_until_stopped(worker.pid);
            wait_until_stopped(runaway);
        }
    }
    ~Family() {
        ::syscall(SYS_pidfd_send_signal, runaway_fd.get(), SIGKILL, nullptr, 0U);
        ends_within(runaway_fd, 5000);
        testing::end(worker);
    }

    Child worker;
    pid_t runaway = -1;
    Fd runaway_fd;

private:
    static void wait_until_stopped(pid_t pid) {
        for (int i = 0; i < 1'000'000 && read_process(pid).value_or(ProcessFacts{}).state != 'T'; ++i) {
            ::sched_yield();
        }
    }
    Pipe pipe_;
};

// As the guard (sees the whole machine) and as the agent (a subreaper: sees its descendants).
class Sweep : public ::testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        ::prctl(PR_SET_CHILD_SUBREAPER, GetParam() ? 1 : 0);
    }
    void TearDown() override {
        ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    }
};

TEST_P(Sweep, FindsAMemberThatLeftItsSession) {
    Family family("cafe", 3);
    ASSERT_GT(family.runaway, 0);
    FamilyQuery query;
    query.nonce = "cafe";
    query.serials = {3};
    query.adopted_strangers = false;
    const auto seen = sweep(query, 0);
    EXPECT_TRUE(has(seen, family.worker.pid));
    EXPECT_TRUE(has(seen, family.runaway));
    EXPECT_FALSE(has_ended(family.worker.pid)) << "signal 0 only looks";

    EXPECT_EQ(sweep(query, SIGKILL).size(), 2U);
    EXPECT_TRUE(ends_within(family.runaway_fd, 5000));
    EXPECT_TRUE(ends_within(family.worker.pidfd, 5000));
    EXPECT_TRUE(sweep(query, SIGKILL).empty());
}

TEST_P(Sweep, KeepsToTheExactNonceAndSerial) {
    Family one("beef", 1);
    Family eleven("beef", 11);
    Family foreign("beefy", 1);
    FamilyQuery query;
    query.nonce = "beef";
    query.serials = {1};
    query.adopted_strangers = false;
    const auto seen = sweep(query, 0);
    EXPECT_EQ(seen.size(), 2U);
    EXPECT_TRUE(has(seen, one.worker.pid));
    EXPECT_TRUE(has(seen, one.runaway));
    query.serials.clear();
    EXPECT_EQ(sweep(query, 0).size(), 4U);
    query.spared = {eleven.worker.pid, eleven.runaway};
    EXPECT_EQ(sweep(query, 0).size(), 2U);
}

TEST_P(Sweep, FindsAWipedEnvironmentByItsSession) {
    Family family("d00d", 2, "env -i");
    FamilyQuery query;
    query.nonce = "another";
    query.adopted_strangers = false;
    EXPECT_TRUE(sweep(query, 0).empty());
    query.sessions = {family.worker.pid};
    const auto seen = sweep(query, 0);
    EXPECT_TRUE(has(seen, family.worker.pid));
    EXPECT_TRUE(has(seen, family.runaway));
}

INSTANTIATE_TEST_SUITE_P(GuardAndAgent, Sweep, ::testing::Bool());

TEST(SweepOfTheAgent, TakesAdoptedStrangersAndReapsThem) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    Family survivor("feed", 7);
    Family failed("feed", 8, "setsid env -i");  // neither environment nor session tell
    FamilyQuery query;
    query.nonce = "feed";
    query.serials = {8};
    query.spared = {survivor.worker.pid};
    const auto killed = sweep(query, SIGKILL);
    EXPECT_TRUE(has(killed, failed.runaway));
    EXPECT_TRUE(has(killed, failed.worker.pid));
    EXPECT_EQ(killed.size(), 2U) << "what carries the survivor's serial is no stranger";
    ASSERT_TRUE(ends_within(failed.runaway_fd, 5000));
    ASSERT_TRUE(ends_within(failed.worker.pidfd, 5000));
    query.spared.push_back(failed.worker.pid);
    EXPECT_TRUE(sweep(query, SIGKILL).empty());
    EXPECT_FALSE(has_ended(failed.runaway)) << "its zombie was reaped";
    EXPECT_TRUE(has_ended(failed.worker.pid)) << "the spared one was not";
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace ddl::os
