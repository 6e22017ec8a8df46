#include "os/family_members.hpp"

#include <algorithm>
#include <unordered_map>

namespace ddl::os {
namespace {

template <class T>
bool contains(const std::vector<T>& values, T value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

enum class Standing : std::uint8_t { kUnknown, kOutside, kMember };

class Selection {
public:
    Selection(const std::vector<Candidate>& candidates, const FamilyQuery& query, pid_t self)
        : candidates_(candidates), query_(query), self_(self), standings_(candidates.size(), Standing::kUnknown) {
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            by_pid_.emplace(candidates[i].facts.pid, i);
        }
    }

    [[nodiscard]] std::vector<ProcessFacts> members() {
        std::vector<ProcessFacts> found;
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            if (!is_spared(i) && standing_along_ancestors(i) == Standing::kMember) {
                found.push_back(candidates_[i].facts);
            }
        }
        return found;
    }

private:
    bool is_spared(std::size_t index) const {
        std::optional<std::size_t> at = query_.spared.empty() ? std::nullopt : std::optional(index);
        for (std::size_t steps = 0; at && steps <= candidates_.size(); ++steps) {
            if (contains(query_.spared, candidates_[*at].facts.pid)) {
                return true;
            }
            at = parent_of(*at);
        }
        return false;
    }

    // The nearest ancestor whose own marks decide also decides for everything below it.
    Standing standing_along_ancestors(std::size_t index) {
        std::vector<std::size_t> path;
        Standing standing = Standing::kUnknown;
        for (std::optional<std::size_t> at = index; at && standing == Standing::kUnknown; at = parent_of(*at)) {
            if (path.size() > candidates_.size()) {
                break;  // a loop, made of a look that was not of one moment
            }
            path.push_back(*at);
            standing = standings_[*at] != Standing::kUnknown ? standings_[*at] : own_standing(candidates_[*at]);
        }
        if (standing == Standing::kUnknown) {
            standing = Standing::kOutside;
        }
        for (const std::size_t at : path) {
            standings_[at] = standing;
        }
        return standing;
    }

    Standing own_standing(const Candidate& candidate) const {
        if (candidate.facts.pid == self_) {
            return Standing::kOutside;
        }
        if (contains(query_.sessions, candidate.facts.session)) {
            return Standing::kMember;
        }
        if (candidate.serial) {
            const bool meant = query_.serials.empty() || contains(query_.serials, *candidate.serial);
            return meant ? Standing::kMember : Standing::kOutside;
        }
        if (query_.adopted_strangers && candidate.facts.parent == self_) {
            return Standing::kMember;
        }
        return Standing::kUnknown;
    }

    // A parent that is younger than its child is another process that got the same pid.
    std::optional<std::size_t> parent_of(std::size_t index) const {
        const auto parent = by_pid_.find(candidates_[index].facts.parent);
        if (parent == by_pid_.end() ||
            candidates_[parent->second].facts.start_ticks > candidates_[index].facts.start_ticks) {
            return std::nullopt;
        }
        return parent->second;
    }

    const std::vector<Candidate>& candidates_;
    const FamilyQuery& query_;
    pid_t self_;
    std::vector<Standing> standings_;
    std::unordered_map<pid_t, std::size_t> by_pid_;
};

}  // namespace

std::vector<ProcessFacts> select_family(const std::vector<Candidate>& candidates, const FamilyQuery& query,
                                        pid_t self) {
    return Selection(candidates, query, self).members();
}

}  // namespace ddl::os
