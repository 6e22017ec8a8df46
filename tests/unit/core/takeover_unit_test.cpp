// One agent's vote and candidacy: the table at the top of core/takeover.hpp, row by row.
#include <gmock/gmock.h>

#include "core/takeover.hpp"
#include "unit/core/effect_text.hpp"

namespace ddl::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

wire::JobTerms terms() {
    wire::JobTerms terms{"job", true, 1, 5, 3, "c10d", "digest"};
    terms.lease = seconds(5);
    terms.takeover = true;
    return terms;
}

wire::Contact contact(const std::string& name) {
    return {name, name, "10.0.0." + name.substr(1), 1000};
}

// "call n1", "n1: trial 2", "reply 7: vote 2", "lead 2", …: what matters of each effect but texts for people.
std::string text_of(const TakeoverEffect& effect) {
    struct Text {
        std::string operator()(const Call& e) const {
            return "call " + e.contact.name;
        }
        std::string operator()(const HangUp& e) const {
            return "hang up" + (e.incarnation.empty() ? "" : " " + e.incarnation);
        }
        std::string operator()(const SayTo& e) const {
            return e.incarnation + ": " + core::text_of(e.message);
        }
        std::string operator()(const Reply& e) const {
            return "reply " + std::to_string(static_cast<int>(e.caller)) + ": " + core::text_of(e.message);
        }
        std::string operator()(const ToLeader& e) const {
            return "to leader: " + core::text_of(e.message);
        }
        std::string operator()(const Lead& e) const {
            return std::string("lead ") + std::to_string(e.term) + (e.handed_over ? " handed over" : "");
        }
        std::string operator()(const Follow& e) const {
            return "follow " + e.leader.name;
        }
        std::string operator()(const LookElsewhere&) const {
            return "look elsewhere";
        }
        std::string operator()(const StepDown&) const {
            return "step down";
        }
        std::string operator()(const Abandon&) const {
            return "abandon";
        }
        std::string operator()(const Say&) const {
            return "say";
        }
    };
    return std::visit(Text{}, effect);
}

constexpr auto kCaller = static_cast<PeerId>(7);

// Node `name` of a job whose round 1 had the voters n0 (the coordinator) to n4.
class Voter {
public:
    explicit Voter(const std::string& name, int voters = 5) : takeover_({terms(), contact(name), {}}, Instant{}) {
        step(LeaderWelcomed{"job", 0, contact("n0")});
        wire::Assignment assignment;
        assignment.config.generation = {0, 1};
        assignment.config.nodes = voters;
        for (int i = 0; i < voters; ++i) {
            assignment.config.voters.push_back(contact("n" + std::to_string(i)));
        }
        step(LeaderSaid{assignment});
    }

    std::vector<std::string> step(const TakeoverEvent& event) {
        std::vector<std::string> texts;
        for (const TakeoverEffect& effect : takeover_.step(event, now_)) {
            if (const std::string text = text_of(effect); text != "say") {
                texts.push_back(text);
            }
        }
        return texts;
    }
    std::vector<std::string> time() {
        now_ = std::max(now_, takeover_.next_deadline().value_or(now_));
        return step(TakeoverTime{});
    }
    std::vector<std::string> asked(const std::string& candidate, std::uint32_t term, bool trial = false,
                                   Generation last = {0, 1}) {
        return step(CallerSaid{kCaller, wire::VoteRequest{"job", term, trial, last, contact(candidate)}});
    }
    std::vector<std::string> voted(const std::string& voter, std::uint32_t term, bool trial) {
        return step(CallSaid{voter, wire::Vote{term, trial, true, 0}});
    }
    void advance(Duration by) {
        now_ += by;
    }
    [[nodiscard]] Instant now() const {
        return now_;
    }
    [[nodiscard]] std::optional<Instant> next_deadline() const {
        return takeover_.next_deadline();
    }

private:
    Takeover takeover_;
    Instant now_{};
};

wire::Redirect redirect(const std::string& leader, std::uint32_t term, bool opened = true) {
    return {terms(), term, opened, contact(leader)};
}

TEST(Takeover, TheFirstVoterThatIsLeftCampaignsAtOnce) {
    Voter first("n1");
    EXPECT_THAT(first.step(LeaderLost{true}), ElementsAre("call n0", "call n2", "call n3", "call n4"));
    EXPECT_EQ(first.next_deadline(), first.now());
    Voter third("n3");
    third.step(LeaderLost{true});
    EXPECT_EQ(third.next_deadline(), third.now() + milliseconds(300));
}

TEST(Takeover, ATrialComesBeforeTheVoteAndMoreThanHalfMustAgree) {
    Voter voter("n1");
    voter.step(LeaderLost{true});
    voter.step(CallUp{"n2"});
    voter.step(CallUp{"n3"});
    EXPECT_THAT(voter.time(), ElementsAre("n2: trial 2", "n3: trial 2"));
    EXPECT_THAT(voter.voted("n2", 2, true), IsEmpty()) << "two of five";
    EXPECT_THAT(voter.voted("n3", 2, true), ElementsAre("n2: request 2", "n3: request 2"));
    EXPECT_THAT(voter.voted("n2", 2, false), IsEmpty());
    EXPECT_THAT(voter.voted("n2", 2, false), IsEmpty()) << "once each";
    EXPECT_THAT(voter.voted("n3", 2, false), Contains("lead 2"));
}

TEST(Takeover, WhoLeadsTellsThoseThatAsk) {
    Voter voter("n1");
    voter.step(LeaderLost{true});
    EXPECT_THAT(voter.step(CallerSaid{kCaller, wire::Seek{"job", "x"}}), IsEmpty()) << "later";
    voter.step(CallUp{"n2"});
    voter.step(CallUp{"n3"});
    voter.time();
    voter.voted("n2", 2, true);
    voter.voted("n3", 2, true);
    voter.voted("n2", 2, false);
    const auto led = voter.voted("n3", 2, false);
    EXPECT_THAT(led, Contains("reply 7: redirect to n1"));
    EXPECT_THAT(led, Contains("n2: redirect to n1"));
    EXPECT_THAT(voter.time(), Contains("n2: redirect to n1")) << "until its first round is open, again and again";
    EXPECT_THAT(voter.step(LeadsIn{2, true}), Contains("hang up n2"));
}

TEST(Takeover, AFollowerVotesForNobodyAndPointsToItsLeader) {
    Voter voter("n2");
    EXPECT_THAT(voter.asked("n1", 2, true), ElementsAre("reply 7: no vote 2", "reply 7: redirect to n0"));
    EXPECT_THAT(voter.step(CallerSaid{kCaller, wire::Seek{"job", "x"}}), ElementsAre("reply 7: redirect to n0"));
}

TEST(Takeover, AVoteIsGivenOnceInATerm) {
    Voter voter("n2");
    voter.step(LeaderLost{true});
    EXPECT_THAT(voter.asked("n1", 2), ElementsAre("reply 7: vote 2"));
    EXPECT_THAT(voter.asked("n3", 2), ElementsAre("reply 7: no vote 2"));
    EXPECT_THAT(voter.asked("n1", 2), ElementsAre("reply 7: vote 2")) << "the same again";
    EXPECT_THAT(voter.asked("n3", 4), ElementsAre("reply 7: vote 4"));
    EXPECT_THAT(voter.asked("n1", 2), ElementsAre("reply 7: no vote 2"));
}

TEST(Takeover, WhoKnowsLessIsNotElected) {
    Voter voter("n2");
    voter.step(LeaderLost{true});
    EXPECT_THAT(voter.asked("n1", 2, false, {0, 0}), ElementsAre("reply 7: no vote 2"));
    EXPECT_THAT(voter.time(), IsEmpty()) << "nobody is on a call yet, but it campaigns itself";
    EXPECT_THAT(voter.step(CallUp{"n3"}), Contains("n3: trial 2"));
}

TEST(Takeover, APromiseOutlastsASilentLeaderByTheLeaseTimeout) {
    Voter voter("n2");
    voter.step(LeaderSaid{wire::Lease{3, seconds(4)}});
    voter.advance(seconds(3));
    voter.step(LeaderLost{false});
    EXPECT_THAT(voter.asked("n1", 2), IsEmpty()) << "it is answered when the promise ends";
    EXPECT_EQ(voter.next_deadline(), voter.now() + seconds(2));
    EXPECT_THAT(voter.time(), Contains("reply 7: vote 2"));
}

TEST(Takeover, ALeaderWithoutAQuorumIsLeftForACandidate) {
    Voter voter("n2");
    voter.step(LeaderSaid{wire::Lease{3, seconds(0)}});
    EXPECT_THAT(voter.asked("n1", 2, true), Contains("abandon"));
    EXPECT_THAT(voter.time(), Contains("reply 7: vote 2"));
}

TEST(Takeover, AcceptsARoundOnlyFromALeaderThatKnowsEnough) {
    Voter voter("n2");
    wire::Propose propose;
    propose.config.generation = {0, 2};
    propose.config.voters = {contact("n0"), contact("n2")};
    propose.previous = {0, 1};
    EXPECT_THAT(voter.step(LeaderSaid{propose}), ElementsAre("to leader: accepted"));
    wire::Propose stale = propose;
    stale.config.generation = {1, 2};
    EXPECT_THAT(voter.step(LeaderSaid{stale}), ElementsAre("to leader: not accepted"))
        << "its coordinator does not know of the round accepted before";
    voter.step(LeaderLost{true});
    voter.asked("n1", 4, false, {0, 2});
    propose.config.generation = {0, 3};
    EXPECT_THAT(voter.step(LeaderSaid{propose}), ElementsAre("to leader: not accepted")) << "term 4 is promised";
}

TEST(Takeover, BothRoundsMustElectWhoHasAcceptedOne) {
    Voter voter("n1", 3);
    wire::Propose propose;
    propose.config.generation = {0, 2};
    propose.config.voters = {contact("n0"), contact("n1"), contact("n8"), contact("n9")};
    propose.previous = {0, 1};
    voter.step(LeaderSaid{propose});
    EXPECT_THAT(voter.step(LeaderLost{true}), ElementsAre("call n0", "call n2", "call n8", "call n9"));
    for (const char* other : {"n2", "n8", "n9"}) {
        voter.step(CallUp{other});
    }
    voter.time();
    EXPECT_THAT(voter.voted("n2", 2, true), IsEmpty()) << "enough of round 1, not of round 2";
    EXPECT_THAT(voter.voted("n8", 2, true), IsEmpty()) << "half of round 2";
    EXPECT_THAT(voter.voted("n9", 2, true), Contains("n2: request 2"));
}

TEST(Takeover, ARetiringCoordinatorsVoteComesWithItsWord) {
    Voter of_two("n1", 2);
    EXPECT_THAT(of_two.step(LeaderSaid{wire::Retire{2, contact("n1"), "why"}}), Contains("lead 2 handed over"));
    Voter other("n2");
    EXPECT_THAT(other.step(LeaderSaid{wire::Retire{2, contact("n1"), "why"}}), Not(Contains("lead 2 handed over")));
    EXPECT_THAT(other.asked("n1", 2), ElementsAre("reply 7: vote 2"));
}

TEST(Takeover, WhoLeavesVotesButDoesNotCampaign) {
    Voter voter("n1");
    voter.step(LeavingJob{});
    voter.step(LeaderLost{true});
    EXPECT_EQ(voter.next_deadline(), std::nullopt);
    EXPECT_THAT(voter.asked("n2", 2), ElementsAre("reply 7: vote 2"));
}

TEST(Takeover, FollowsWhoIsPointedOutUnlessThatOneHasJustEnded) {
    Voter voter("n4");
    voter.step(LeaderLost{true});
    EXPECT_THAT(voter.step(CallSaid{"n3", redirect("n0", 0)}), IsEmpty()) << "n3 has not noticed yet";
    EXPECT_THAT(voter.step(CallSaid{"n3", redirect("n1", 2)}), ElementsAre("follow n1"));
    voter.advance(seconds(3));
    EXPECT_THAT(voter.step(TakeoverTime{}), Contains("look elsewhere")) << "it did not answer";
}

TEST(Takeover, OfTwoThatLeadTheLaterGoesOn) {
    Takeover takeover({terms(), contact("n0"), {}}, Instant{});
    takeover.lead_as_owner("job", 0);
    const auto said = [&](const wire::Redirect& message) {
        std::vector<std::string> texts;
        for (const TakeoverEffect& effect : takeover.step(CallerSaid{kCaller, message}, Instant{})) {
            texts.push_back(text_of(effect));
        }
        return texts;
    };
    takeover.step(LeadsIn{3, true}, Instant{});
    EXPECT_THAT(said(redirect("n1", 2)), ElementsAre("reply 7: redirect to n0")) << "that one is told";
    EXPECT_THAT(said(redirect("n1", 5, false)), ElementsAre("reply 7: redirect to n0")) << "an owner that opened none";
    EXPECT_THAT(said(redirect("n1", 4, false)), Contains("step down")) << "elected";
}

TEST(Takeover, AnOwnerThatCameBackGivesWayToARunningJob) {
    Takeover takeover({terms(), contact("n0"), {}}, Instant{});
    takeover.lead_as_owner("job", 7);
    bool stepped_down = false;
    for (const TakeoverEffect& effect : takeover.step(CallerSaid{kCaller, redirect("n1", 2)}, Instant{})) {
        stepped_down = stepped_down || std::holds_alternative<StepDown>(effect);
    }
    EXPECT_TRUE(stepped_down);
    EXPECT_EQ(takeover.term_to_resume() % 2, 1U);
    EXPECT_GT(takeover.term_to_resume(), 7U);
}

TEST(Takeover, IgnoresAnotherJob) {
    Voter voter("n4");
    voter.step(LeaderLost{true});
    wire::Redirect other = redirect("n1", 2);
    other.terms.job_id = "another";
    EXPECT_THAT(voter.step(CallSaid{"n3", other}), IsEmpty());
    EXPECT_THAT(voter.step(CallerSaid{kCaller, wire::VoteRequest{"another", 2, false, {0, 1}, contact("n1")}}),
                ElementsAre("reply 7: no vote 2"));
}

}  // namespace
}  // namespace ddl::core
