#include "core/placement.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "base/text.hpp"

namespace ddl::core {
namespace {

using Slots = std::vector<std::optional<Candidate>>;

bool comes_before(const Candidate& a, const Candidate& b) {
    static constexpr int kLast = std::numeric_limits<int>::max();
    const auto key = [](const Candidate& c) {
        return std::tuple(!c.owns_endpoint, c.facts.scheduler_order.value_or(kLast));
    };
    if (key(a) != key(b)) {
        return key(a) < key(b);
    }
    if (a.facts.name != b.facts.name) {
        return natural_less(a.facts.name, b.facts.name);
    }
    return a.peer < b.peer;
}

std::vector<Candidate> filled(Slots slots, std::vector<Candidate> rest) {
    auto next = rest.begin();
    std::vector<Candidate> order;
    for (std::optional<Candidate>& slot : slots) {
        if (slot) {
            order.push_back(std::move(*slot));
        } else if (next != rest.end()) {
            order.push_back(std::move(*next++));
        }
    }
    order.insert(order.end(), std::make_move_iterator(next), std::make_move_iterator(rest.end()));
    return order;
}

std::vector<Candidate> first_order(std::vector<Candidate> candidates) {
    std::sort(candidates.begin(), candidates.end(), comes_before);
    Slots slots(candidates.size());
    std::vector<Candidate> rest;
    for (Candidate& candidate : candidates) {
        const int asked = candidate.facts.requested_rank.value_or(-1);
        const auto index = static_cast<std::size_t>(asked);
        if (asked >= 0 && index < slots.size() && !slots[index]) {
            slots[index] = std::move(candidate);
        } else {
            rest.push_back(std::move(candidate));
        }
    }
    return filled(std::move(slots), std::move(rest));
}

// How well a newcomer suits a hole. Who comes back to its own place goes before strangers of the right size.
enum class Fit : std::uint8_t { kSameName, kSameWorkers, kAny };

bool suits(const Candidate& newcomer, const FormerPlace& hole, Fit fit) {
    switch (fit) {
        case Fit::kSameName:
            return newcomer.facts.name == hole.name;
        case Fit::kSameWorkers:
            return newcomer.facts.workers == hole.workers;
        case Fit::kAny:
            break;
    }
    return true;
}

// Moves the newcomers that suit a hole into it; the others stay, in their order.
void fill_holes(Slots& slots, const std::vector<FormerPlace>& former, std::vector<Candidate>& newcomers, Fit fit) {
    std::erase_if(newcomers, [&](Candidate& newcomer) {
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (!slots[i] && suits(newcomer, former[i], fit)) {
                slots[i] = std::move(newcomer);
                return true;
            }
        }
        return false;
    });
}

std::vector<Candidate> next_order(std::vector<Candidate> candidates, const std::vector<FormerPlace>& former) {
    Slots slots(former.size());
    std::vector<Candidate> newcomers;
    for (Candidate& candidate : candidates) {
        const auto index = static_cast<std::size_t>(candidate.survivor_of);
        if (candidate.survivor_of >= 0 && index < slots.size() && !slots[index]) {
            slots[index] = std::move(candidate);
        } else {
            newcomers.push_back(std::move(candidate));
        }
    }
    std::sort(newcomers.begin(), newcomers.end(), comes_before);
    for (const Fit fit : {Fit::kSameName, Fit::kSameWorkers, Fit::kAny}) {
        fill_holes(slots, former, newcomers, fit);
    }
    std::erase_if(slots, [](const auto& slot) { return !slot; });
    return filled(std::move(slots), std::move(newcomers));
}

void put_reachable_first(std::vector<Candidate>& order) {
    const auto found = std::find_if(order.begin(), order.end(), [](const Candidate& c) { return c.reachable; });
    if (found != order.end()) {
        std::rotate(order.begin(), found, found + 1);
    }
}

}  // namespace

std::vector<Candidate> place(std::vector<Candidate> candidates, const std::vector<FormerPlace>& former,
                             std::size_t limit) {
    std::vector<Candidate> order =
        former.empty() ? first_order(std::move(candidates)) : next_order(std::move(candidates), former);
    order.resize(std::min(order.size(), limit));
    put_reachable_first(order);
    return order;
}

std::vector<wire::Assignment> assign_ranks(const std::vector<Candidate>& order) {
    int world = 0;
    std::map<std::string, int> role_sizes;
    std::vector<wire::Assignment> assignments;
    for (const Candidate& candidate : order) {
        wire::Assignment& assignment = assignments.emplace_back();
        assignment.group_rank = static_cast<int>(assignments.size()) - 1;
        assignment.group_world_size = static_cast<int>(order.size());
        assignment.base_rank = world;
        assignment.base_role_rank = role_sizes[candidate.facts.role];
        world += candidate.facts.workers;
        role_sizes[candidate.facts.role] += candidate.facts.workers;
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        assignments[i].world_size = world;
        assignments[i].role_world_size = role_sizes[order[i].facts.role];
    }
    return assignments;
}

}  // namespace ddl::core
