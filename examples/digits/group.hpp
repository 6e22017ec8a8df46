// The ranks that train together: what training needs from Gloo, and nothing when there is only one rank.
//
// Every call blocks until all ranks have made it, at most the timeout given at the start. When a rank has died, the
// others get an exception within moments; a group is of no use after that.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "model.hpp"

namespace digits {

class Group {
public:
    // One rank by itself.
    Group() = default;
    // All ranks of the job, as told by the environment; blocks until all are there.
    [[nodiscard]] static Group from_environment(std::chrono::milliseconds timeout);

    [[nodiscard]] int rank() const {
        return rank_;
    }
    [[nodiscard]] int size() const {
        return size_;
    }

    // Replaces the numbers by their sums over all ranks, bit for bit the same on each.
    void sum(Numbers& numbers);
    // The highest of all ranks' values.
    [[nodiscard]] std::int64_t highest(std::int64_t value);
    // Replaces the numbers by those of rank `source`.
    void copy_from(int source, Numbers& numbers);
    // The end: returns when all ranks are here, after which any may exit without breaking another's last exchange.
    void leave();

private:
    struct Connections;

    int rank_ = 0;
    int size_ = 1;
    std::shared_ptr<Connections> connections_;  // none in a world of one
};

}  // namespace digits
