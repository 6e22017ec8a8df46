#include "os/procfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace ddl::os {
namespace {

using namespace std::string_literals;

std::string stat_line(const std::string& command, char state, int threads) {
    return "42 (" + command + ") " + state + " 7 42 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 " + std::to_string(threads) +
           " 0 987654 1 2\n";
}

TEST(ParseStat, ReadsTheFieldsThatMatter) {
    const auto facts = parse_stat(stat_line("sleep", 'S', 1));
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->pid, 42);
    EXPECT_EQ(facts->parent, 7);
    EXPECT_EQ(facts->session, 40);
    EXPECT_EQ(facts->state, 'S');
    EXPECT_EQ(facts->start_ticks, 987654U);
    EXPECT_EQ(facts->command, "sleep");
    EXPECT_FALSE(facts->ended);
}

TEST(ParseStat, SurvivesCommandsThatImitateTheFormat) {
    EXPECT_EQ(parse_stat(stat_line("a) S 1 (b", 'R', 1))->command, "a) S 1 (b");
    EXPECT_EQ(parse_stat(stat_line("a) S 1 (b", 'R', 1))->parent, 7);
    EXPECT_EQ(parse_stat(stat_line("", 'R', 1))->command, "");
}

TEST(ParseStat, ALeaderWithLivingThreadsHasNotEnded) {
    EXPECT_TRUE(parse_stat(stat_line("x", 'Z', 1))->ended);
    EXPECT_TRUE(parse_stat(stat_line("x", 'X', 0))->ended);
    EXPECT_FALSE(parse_stat(stat_line("x", 'Z', 3))->ended);
}

TEST(ParseStat, RefusesWhatIsCutOff) {
    const std::string whole = stat_line("sleep", 'S', 1);
    for (std::size_t size = 0; size < whole.find("987654"); ++size) {
        EXPECT_FALSE(parse_stat(whole.substr(0, size))) << size;
    }
    EXPECT_FALSE(parse_stat("x (y) S z"));
}

TEST(SpawnSerial, NeedsTheExactNonceAtTheStartOfAnEntry) {
    EXPECT_EQ(spawn_serial("A=1\0DDLAUNCH_SPAWN_ID=ab12.7\0B=2\0"s, "ab12"), 7);
    EXPECT_EQ(spawn_serial("DDLAUNCH_SPAWN_ID=ab12.0"s, "ab12"), 0);
    EXPECT_EQ(spawn_serial("DDLAUNCH_SPAWN_ID=ab123.7\0"s, "ab12"), std::nullopt);
    EXPECT_EQ(spawn_serial("DDLAUNCH_SPAWN_ID=ab12.7\0"s, "ab1"), std::nullopt);
    EXPECT_EQ(spawn_serial("XDDLAUNCH_SPAWN_ID=ab12.7\0"s, "ab12"), std::nullopt);
    EXPECT_EQ(spawn_serial("NOTE=DDLAUNCH_SPAWN_ID=ab12.7\0"s, "ab12"), std::nullopt);
    EXPECT_EQ(spawn_serial("DDLAUNCH_SPAWN_ID=ab12.7x\0"s, "ab12"), std::nullopt);
    EXPECT_EQ(spawn_serial("DDLAUNCH_SPAWN_ID=ab12.-7\0"s, "ab12"), std::nullopt);
    EXPECT_EQ(spawn_serial("DDLAUNCH_SPAWN_ID=ab12.\0"s, "ab12"), std::nullopt);
    EXPECT_EQ(spawn_serial(std::string(5000, '\xff'), "ab12"), std::nullopt);
    EXPECT_EQ(spawn_serial("", "ab12"), std::nullopt);
}

TEST(ReadProcess, SeesItselfAndToleratesThoseThatAreGone) {
    const auto self = read_process(::getpid());
    ASSERT_TRUE(self);
    EXPECT_EQ(self->parent, ::getppid());
    EXPECT_EQ(self->session, ::getsid(0));
    EXPECT_TRUE(self->has_image);
    EXPECT_EQ(settled_environment(::getpid()), read_environment(::getpid()));
    constexpr pid_t kNobody = 1 << 30;  // above the largest pid_max
    EXPECT_FALSE(read_process(kNobody));
    EXPECT_EQ(read_environment(kNobody), std::nullopt);
    EXPECT_EQ(settled_environment(kNobody), "");
    EXPECT_EQ(read_wait_channel(kNobody), "");
    EXPECT_THAT(children_of(kNobody), ::testing::IsEmpty());
    EXPECT_THAT(descendants_of(kNobody, {}), ::testing::IsEmpty());
}

TEST(AllProcesses, ContainsThisOne) {
    const auto all = all_processes();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const ProcessFacts& facts) { return facts.pid == ::getpid(); }));
}

}  // namespace
}  // namespace ddl::os
