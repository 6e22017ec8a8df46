// Settings by local rank: which streams go where, and who reaches the console.
#include <algorithm>

#include "base/text.hpp"
#include "plan/grammar.hpp"
#include "plan/quoted.hpp"

namespace ddl::plan {

namespace {

struct RankRange {
    int first = 0;
    int last = 0;
};

Result<RankRange> parse_ranks(std::string_view text) {
    const std::vector<std::string_view> bounds = split(text, '-');
    const Result<int> first = parse_count(trim(bounds.front()), 0, kMaxWorkersPerNode - 1);
    const Result<int> last = parse_count(trim(bounds.back()), 0, kMaxWorkersPerNode - 1);
    if (bounds.size() > 2 || !first || !last || *first > *last) {
        return fail(quoted(text) + " is neither a local rank nor a range of them; try 3 or 0-3");
    }
    return RankRange{*first, *last};
}

Result<Streams> parse_digit(std::string_view text) {
    const Result<int> digit = parse_count(trim(text), 0, 3);
    if (!digit || trim(text).size() != 1) {
        return fail(quoted(text) + " is not 0 (none), 1 (stdout), 2 (stderr) or 3 (both)");
    }
    return Streams{(*digit & 1) != 0, (*digit & 2) != 0};
}

}  // namespace

Result<std::vector<Streams>> parse_streams(std::string_view text, int workers) {
    std::vector<Streams> by_rank(static_cast<std::size_t>(workers));
    if (text.find(':') == std::string_view::npos) {
        const Result<Streams> all = parse_digit(text);
        if (!all) {
            return fail(all.error().message + "; try 3, or 0:3,1-7:1 by local rank");
        }
        std::fill(by_rank.begin(), by_rank.end(), *all);
        return by_rank;
    }
    for (const std::string_view part : split(text, ',')) {
        const std::size_t colon = part.find(':');
        const Result<RankRange> ranks = parse_ranks(part.substr(0, colon));
        if (!ranks) {
            return tl::unexpected(ranks.error());
        }
        const Result<Streams> streams = parse_digit(colon == std::string_view::npos ? "" : part.substr(colon + 1));
        if (!streams) {
            return tl::unexpected(streams.error());
        }
        // A rank that this node does not have may be one of a larger node's: not an error.
        for (int rank = ranks->first; rank <= std::min(ranks->last, workers - 1); ++rank) {
            by_rank[static_cast<std::size_t>(rank)] = *streams;
        }
    }
    return by_rank;
}

Result<std::vector<bool>> parse_rank_filter(std::string_view text, int workers) {
    std::vector<bool> shown(static_cast<std::size_t>(workers), false);
    for (const std::string_view part : split(text, ',')) {
        const Result<RankRange> ranks = parse_ranks(part);
        if (!ranks) {
            return tl::unexpected(ranks.error());
        }
        for (int rank = ranks->first; rank <= std::min(ranks->last, workers - 1); ++rank) {
            shown[static_cast<std::size_t>(rank)] = true;
        }
    }
    return shown;
}

}  // namespace ddl::plan
