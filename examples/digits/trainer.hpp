// Data-parallel stochastic gradient descent with momentum.
//
// The images of a step are the same whatever the number of ranks: each rank takes its part, the sums of the gradients
// (not the averages, so parts may differ in size) are added over all ranks and divided by the number of images.
#pragma once

#include "checkpoint.hpp"
#include "dataset.hpp"
#include "group.hpp"
#include "options.hpp"

namespace digits {

struct Score {
    double accuracy = 0;
    double loss = 0;
};

class Trainer {
public:
    // All three outlive the trainer.
    Trainer(const Options& options, const Dataset& data, Group& group);

    // Takes the state of the rank whose checkpoint is the newest, the same on all ranks. `own` is this rank's.
    void start_from(State own);

    [[nodiscard]] const State& state() const {
        return state_;
    }
    // Trains one epoch and returns its mean loss.
    double train_epoch();
    // How good the network is on the held-out images.
    [[nodiscard]] Score evaluate();

private:
    double train_step(const std::vector<std::size_t>& order, Range step);
    // Adds up this rank's part into sums_: gradient, then loss.
    void add_part(const std::vector<std::size_t>& order, Range part);

    const Options& options_;
    const Dataset& data_;
    Group& group_;
    State state_;
    Numbers sums_;
};

}  // namespace digits
