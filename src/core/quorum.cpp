#include "core/quorum.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace ddl::core {

void Quorum::challenge(std::vector<wire::RoundConfig> rounds, std::set<std::string> inherited) {
    rounds_ = std::move(rounds);
    std::erase_if(rounds_, [](const wire::RoundConfig& round) { return round.voters.empty(); });
    challenger_ = true;
    inherited_ = std::move(inherited);
}

void Quorum::inherit(const std::set<std::string>& incarnations) {
    inherited_.insert(incarnations.begin(), incarnations.end());
}

std::vector<wire::Contact> Quorum::voters() const {
    std::vector<wire::Contact> all;
    for (const wire::RoundConfig& round : rounds_) {
        all.insert(all.end(), round.voters.begin(), round.voters.end());
    }
    return all;
}

void Quorum::agreed(const wire::RoundConfig& round, Instant proposed) {
    rounds_ = {round};
    challenger_ = false;
    inherited_.clear();
    for (const wire::Contact& voter : round.voters) {
        heard(voter.incarnation, proposed);
    }
}

void Quorum::heard(const std::string& incarnation, Instant spoken) {
    if (is_voter(incarnation)) {
        Instant& last = spoken_.try_emplace(incarnation, spoken).first->second;
        last = std::max(last, spoken);
    }
}

void Quorum::lost(const std::string& incarnation) {
    spoken_.erase(incarnation);
}

bool Quorum::is_voter(const std::string& incarnation) const {
    return std::any_of(rounds_.begin(), rounds_.end(), [&](const wire::RoundConfig& round) {
        return std::any_of(round.voters.begin(), round.voters.end(),
                           [&](const wire::Contact& voter) { return voter.incarnation == incarnation; });
    });
}

bool Quorum::is_own(const std::string& incarnation) const {
    return incarnation == self_ || inherited_.count(incarnation) > 0;
}

Generation Quorum::latest() const {
    Generation latest;
    for (const wire::RoundConfig& round : rounds_) {
        latest = std::max(latest, round.generation);
    }
    return latest;
}

int Quorum::needed(const wire::RoundConfig& round) const {
    const int voters = static_cast<int>(round.voters.size());
    return challenger_ ? voters / 2 + 1 : (voters + 1) / 2;
}

bool Quorum::enough(const std::set<std::string>& agreeing) const {
    return std::all_of(rounds_.begin(), rounds_.end(), [&](const wire::RoundConfig& round) {
        const auto agree = std::count_if(round.voters.begin(), round.voters.end(), [&](const wire::Contact& voter) {
            return is_own(voter.incarnation) || agreeing.count(voter.incarnation) > 0;
        });
        return static_cast<int>(agree) >= needed(round);
    });
}

std::optional<Instant> Quorum::until(const wire::RoundConfig& round) const {
    std::vector<Instant> others;
    int missing = needed(round);
    for (const wire::Contact& voter : round.voters) {
        if (is_own(voter.incarnation)) {
            --missing;
        } else if (const auto found = spoken_.find(voter.incarnation); found != spoken_.end()) {
            others.push_back(found->second);
        }
    }
    if (missing <= 0) {
        return std::nullopt;
    }
    if (static_cast<int>(others.size()) < missing) {
        return Instant{};
    }
    std::sort(others.begin(), others.end(), std::greater<>());
    return others[static_cast<std::size_t>(missing) - 1] + lease_;
}

std::optional<Instant> Quorum::until() const {
    std::optional<Instant> earliest;
    for (const wire::RoundConfig& round : rounds_) {
        const std::optional<Instant> limit = until(round);
        if (limit && (!earliest || *limit < *earliest)) {
            earliest = limit;
        }
    }
    return earliest;
}

bool Quorum::holds(Instant now) const {
    const std::optional<Instant> limit = until();
    return !limit || *limit > now;
}

std::string Quorum::text(Instant now) const {
    for (const wire::RoundConfig& round : rounds_) {
        const std::optional<Instant> limit = until(round);
        if (!limit || *limit > now) {
            continue;
        }
        const auto here = std::count_if(round.voters.begin(), round.voters.end(), [&](const wire::Contact& voter) {
            const auto found = spoken_.find(voter.incarnation);
            return is_own(voter.incarnation) || (found != spoken_.end() && found->second + lease_ > now);
        });
        return std::to_string(here) + " of the " + std::to_string(round.voters.size()) + " voters of round " +
               std::to_string(round.generation.number()) + " are here, " + std::to_string(needed(round)) +
               " are needed";
    }
    return "";
}

}  // namespace ddl::core
