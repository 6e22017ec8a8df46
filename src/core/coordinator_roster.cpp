// Who is here and who is missing, as numbers and as text.

#include <algorithm>

#include "base/text.hpp"
#include "core/coordinator.hpp"

namespace ddl::core {
namespace {

constexpr std::size_t kNamesShown = 16;

// `names` may be cut at kNamesShown: a job of thousands builds no texts that nobody will see.
std::string listed(const std::vector<std::string>& names, std::size_t all) {
    const std::vector<std::string> shown(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesShown)));
    return join(shown, ", ") + (all > shown.size() ? " and " + std::to_string(all - shown.size()) + " more" : "");
}

std::string listed(const std::vector<std::string>& names) {
    return listed(names, names.size());
}

}  // namespace

int Coordinator::count_ready() const {
    return static_cast<int>(std::count_if(
        peers_.begin(), peers_.end(), [](const auto& entry) { return entry.second.ready && !entry.second.leaving; }));
}

int Coordinator::count_present() const {
    return static_cast<int>(std::count_if(
        peers_.begin(), peers_.end(), [](const auto& entry) { return entry.second.hello && !entry.second.leaving; }));
}

int Coordinator::members_running() const {
    return static_cast<int>(std::count_if(
        peers_.begin(), peers_.end(), [](const auto& entry) { return entry.second.member && !entry.second.finished; }));
}

std::string Coordinator::count_text() const {
    const int min = settings_.terms.min_nodes;
    const int max = settings_.terms.max_nodes;
    return std::to_string(count_present()) + " of " + (min == max ? "" : std::to_string(min) + " to ") +
           std::to_string(max) + " nodes here";
}

std::string Coordinator::roster_text() const {
    std::vector<std::string> here;
    for (const auto& [id, peer] : peers_) {
        if (here.size() == kNamesShown) {
            break;
        }
        if (peer.hello && !peer.leaving) {
            here.push_back(peer.hello->node.name + (peer.address.empty() ? "" : " (" + peer.address + ")") +
                           (peer.ready || last_counter_ == 0 || phase_ != Phase::kGathering ? "" : " not ready"));
        }
    }
    const int present = count_present();
    std::string text = count_text() + ": " + listed(here, static_cast<std::size_t>(present)) + missing_text(present);
    if (last_call_until_) {
        const auto left = std::chrono::ceil<std::chrono::seconds>(*last_call_until_ - now_);
        return text + "; starting in " + std::to_string(left.count()) + " s unless more come";
    }
    if (gathering_until_ && phase_ == Phase::kGathering) {
        const auto left = std::chrono::ceil<std::chrono::seconds>(*gathering_until_ - now_);
        text += left.count() > 0 ? "; " + std::to_string(left.count()) + " s left" : "";
    }
    return text;
}

std::string Coordinator::progress_text() const {
    if (phase_ != Phase::kStopping) {
        return "waiting for nodes at " + settings_.endpoint_text + ": " + roster_text();
    }
    std::vector<std::string> busy;
    for (const auto& [id, peer] : peers_) {
        if (peer.member && !peer.ready) {
            busy.push_back(peer.hello->node.name + (peer.address.empty() ? "" : " (" + peer.address + ")"));
        }
    }
    const auto left = std::chrono::ceil<std::chrono::seconds>(stopping_until_.value_or(now_) - now_);
    return "waiting for the workers to end on " + listed(busy, busy.size()) + "; " + std::to_string(left.count()) +
           " s left";
}

// Names who is missing as far as that can be known: by the last round, else by the node ranks that were asked for.
std::string Coordinator::missing_text(int here) const {
    const int missing = settings_.terms.min_nodes - here;
    if (missing <= 0) {
        return "";
    }
    const auto nobody = [this](auto matches) {
        return std::none_of(peers_.begin(), peers_.end(), [&](const auto& entry) {
            return entry.second.hello && !entry.second.leaving && matches(entry.second.hello->node);
        });
    };
    std::vector<std::string> lost;
    for (const FormerPlace& place : places_) {
        if (!place.name.empty() && nobody([&](const wire::NodeFacts& node) { return node.name == place.name; })) {
            lost.push_back(place.name);
        }
    }
    const std::string text = "; missing " + std::to_string(missing);
    if (!lost.empty()) {
        return text + ", lately lost: " + listed(lost);
    }
    if (!nobody([](const wire::NodeFacts& node) { return !node.requested_rank.has_value(); })) {
        return text;
    }
    std::vector<std::string> ranks;
    for (int rank = 0; rank < settings_.terms.min_nodes; ++rank) {
        if (nobody([&](const wire::NodeFacts& node) { return node.requested_rank == rank; })) {
            ranks.push_back(std::to_string(rank));
        }
    }
    return text + ", node rank " + listed(ranks);
}

void Coordinator::send_notice(const std::string& text) {
    for (const auto& [id, peer] : peers_) {
        if (peer.hello) {
            send(id, wire::Notice{text});
        }
    }
}

}  // namespace ddl::core
