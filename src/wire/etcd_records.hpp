// What this job keeps in etcd, under /ddlaunch/<job id>/: who leads, and the last round that was agreed on.
//
// Written and read by core/etcd_election. Pure. A record of another release may have more fields; those are ignored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace ddl::wire {

inline constexpr std::size_t kMaxRecordPlaces = 100'000;

struct LeaderRecord {
    std::string node;
    std::string incarnation;
    std::string address;
    std::uint16_t port = 0;
    std::int64_t lease = 0;

    friend bool operator==(const LeaderRecord&, const LeaderRecord&) = default;
};

struct StoredPlace {
    std::string name;
    int workers = 1;

    friend bool operator==(const StoredPlace&, const StoredPlace&) = default;
};
struct StoredRound {
    Generation generation;
    int restart_count = 0;
    std::vector<StoredPlace> places;  // by group rank

    friend bool operator==(const StoredRound&, const StoredRound&) = default;
};

[[nodiscard]] std::string encode(const LeaderRecord& record);
[[nodiscard]] std::string encode(const StoredRound& record);
[[nodiscard]] Result<LeaderRecord> decode_leader(std::string_view text);
[[nodiscard]] Result<StoredRound> decode_round(std::string_view text);

}  // namespace ddl::wire
