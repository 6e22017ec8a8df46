#include "os/family_members.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddl::os {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr pid_t kAgent = 100;

Candidate process(pid_t pid, pid_t parent, pid_t session, std::optional<int> serial = std::nullopt,
                  std::uint64_t start = 1000) {
    Candidate candidate;
    candidate.facts.pid = pid;
    candidate.facts.parent = parent;
    candidate.facts.session = session;
    candidate.facts.start_ticks = start;
    candidate.serial = serial;
    return candidate;
}

FamilyQuery of_serials(std::vector<int> serials) {
    FamilyQuery query;
    query.serials = std::move(serials);
    query.adopted_strangers = false;
    return query;
}

std::vector<pid_t> pids(const std::vector<Candidate>& candidates, const FamilyQuery& query) {
    std::vector<pid_t> found;
    for (const ProcessFacts& facts : select_family(candidates, query, kAgent)) {
        found.push_back(facts.pid);
    }
    return found;
}

TEST(SelectFamily, TakesTheSpawnIdsAskedFor) {
    const std::vector<Candidate> all{process(1, 0, 1), process(200, kAgent, 200, 0), process(201, kAgent, 201, 1)};
    EXPECT_THAT(pids(all, of_serials({1})), ElementsAre(201));
    EXPECT_THAT(pids(all, of_serials({})), ElementsAre(200, 201));
    EXPECT_THAT(pids(all, of_serials({9})), IsEmpty());
}

TEST(SelectFamily, TakesDescendantsInWhateverOrderTheyAreSeen) {
    const std::vector<Candidate> all{process(12, 11, 12), process(11, 200, 11), process(200, kAgent, 200, 0),
                                     process(13, 12, 13)};
    EXPECT_THAT(pids(all, of_serials({0})), ElementsAre(12, 11, 200, 13));
}

TEST(SelectFamily, TakesSessions) {
    FamilyQuery query = of_serials({5});
    query.sessions = {200};
    const std::vector<Candidate> all{process(300, 1, 200), process(301, 1, 201)};
    EXPECT_THAT(pids(all, query), ElementsAre(300));
}

TEST(SelectFamily, SparesWorkersWithAllThatIsBelowThem) {
    FamilyQuery query = of_serials({});
    query.spared = {201};
    query.sessions = {202};
    const std::vector<Candidate> all{process(200, kAgent, 200, 0), process(201, kAgent, 201, 1),
                                     process(202, 201, 202, 1), process(203, 202, 203)};
    EXPECT_THAT(pids(all, query), ElementsAre(200));
}

TEST(SelectFamily, AStrangerIsAnUnmarkedChildOfOurs) {
    FamilyQuery query = of_serials({0});
    query.adopted_strangers = true;
    query.spared = {101};
    const std::vector<Candidate> all{process(101, kAgent, 101),     // the guard
                                     process(300, kAgent, 300),     // wiped its environment
                                     process(301, 300, 301),        // below it
                                     process(302, kAgent, 302, 1),  // of a surviving worker
                                     process(303, 1, 303)};         // nothing to do with us
    EXPECT_THAT(pids(all, query), ElementsAre(300, 301));
    query.adopted_strangers = false;
    EXPECT_THAT(pids(all, query), IsEmpty());
}

TEST(SelectFamily, ChildWithAnotherSerialIsNotOfItsParentsFamily) {
    const std::vector<Candidate> all{process(200, kAgent, 200, 0), process(201, 200, 201, 1), process(202, 201, 202)};
    EXPECT_THAT(pids(all, of_serials({0})), ElementsAre(200));
    EXPECT_THAT(pids(all, of_serials({1})), ElementsAre(201, 202));
}

TEST(SelectFamily, NeverTakesTheAskingProcess) {
    FamilyQuery query = of_serials({});
    query.sessions = {kAgent};
    const std::vector<Candidate> all{process(kAgent, 1, kAgent, 0), process(300, kAgent, 300)};
    EXPECT_THAT(pids(all, query), IsEmpty());
}

TEST(SelectFamily, AParentYoungerThanItsChildIsAnotherProcess) {
    const std::vector<Candidate> all{process(200, kAgent, 200, 0, 5000), process(300, 200, 300, std::nullopt, 4000)};
    EXPECT_THAT(pids(all, of_serials({0})), ElementsAre(200));
}

TEST(SelectFamily, SurvivesALookThatHasALoop) {
    const std::vector<Candidate> all{process(10, 11, 10), process(11, 10, 11), process(12, 12, 12)};
    FamilyQuery query = of_serials({0});
    EXPECT_THAT(pids(all, query), IsEmpty());
    query.spared = {99};
    EXPECT_THAT(pids(all, query), IsEmpty());
}

TEST(SelectFamily, HandlesHugeProcessCounts) {
    std::vector<Candidate> all;
    constexpr pid_t kCount = 100'000;
    all.push_back(process(1000, kAgent, 1000, 0));
    for (pid_t pid = 1001; pid < 1000 + kCount; ++pid) {
        all.push_back(process(pid, pid - 1, pid));  // one chain: the worst depth
    }
    EXPECT_EQ(pids(all, of_serials({0})).size(), static_cast<std::size_t>(kCount));
}

}  // namespace
}  // namespace ddl::os
