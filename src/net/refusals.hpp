// What is said about connections from addresses that may not use the worker store.
//
// A refused client retries silently for up to half an hour, so the refusal must be seen; but a port scanner must not
// flood the log: each address is named at its 1st, 10th, 100th … refusal, and only so many addresses. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace ddl::net {

inline constexpr std::size_t kMaxRefusedAddresses = 256;

class Refusals {
public:
    // Counts one; the line to say about it, if it is time for one.
    [[nodiscard]] std::optional<std::string> count(const std::string& address, std::uint16_t port);

private:
    struct Count {
        std::uint64_t refused = 0;
        std::uint64_t next_line_at = 1;
    };
    std::unordered_map<std::string, Count> counts_;
    bool full_ = false;
};

}  // namespace ddl::net
