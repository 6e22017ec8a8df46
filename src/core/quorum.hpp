// Until when a coordinator may act: as long as enough of the last round's voters have promised to follow nobody else.
//
// Owned by core::Coordinator. A voter that hears from the coordinator votes for nobody else until the lease timeout has
// passed from then on; the coordinator learns of it by the voter's next word, and counts from when it had itself
// spoken, which is earlier: so its count always ends before the voter's. The sitting coordinator needs half of the
// voters, itself included; a challenger, until its first round is agreed on, more than half. So one voter at least
// knows of both, and a cut in two equal halves is won by the side that coordinates.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "wire/agent_message.hpp"

namespace ddl::core {

class Quorum {
public:
    Quorum(Duration lease, std::string self) : lease_(lease), self_(std::move(self)) {
    }

    // More than half of these rounds' voters, of each of them, decide about the next round: of the last one that is
    // known to be agreed on, and of a later one that may be. `inherited`: the incarnations of voters that are
    // known to be dead because others stand in their place.
    void challenge(std::vector<wire::RoundConfig> rounds, std::set<std::string> inherited = {});
    void inherit(const std::set<std::string>& incarnations);
    // This coordinator's round is agreed on, so half of its voters are enough. None of them has learned of it before
    // `proposed` without a promise.
    void agreed(const wire::RoundConfig& round, Instant proposed);

    void heard(const std::string& incarnation, Instant spoken);  // it has answered what was sent to it at `spoken`
    void lost(const std::string& incarnation);

    // The latest round that the voters may know of.
    [[nodiscard]] Generation latest() const;
    [[nodiscard]] std::vector<wire::Contact> voters() const;
    [[nodiscard]] bool is_voter(const std::string& incarnation) const;
    // nullopt: for ever, since nobody else could be elected. In the past: it has no quorum.
    [[nodiscard]] std::optional<Instant> until() const;
    [[nodiscard]] bool holds(Instant now) const;
    // Whether these voters, with itself, are enough to agree on a round.
    [[nodiscard]] bool enough(const std::set<std::string>& agreeing) const;
    [[nodiscard]] std::string text(Instant now) const;  // "2 of the 5 voters of round 3 are here, 3 are needed"

private:
    [[nodiscard]] bool is_own(const std::string& incarnation) const;
    [[nodiscard]] int needed(const wire::RoundConfig& round) const;  // voters, itself included
    [[nodiscard]] std::optional<Instant> until(const wire::RoundConfig& round) const;

    Duration lease_;
    std::string self_;
    std::vector<wire::RoundConfig> rounds_;
    bool challenger_ = false;
    std::set<std::string> inherited_;
    std::map<std::string, Instant> spoken_;
};

}  // namespace ddl::core
