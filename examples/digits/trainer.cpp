#include "trainer.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace digits {

Trainer::Trainer(const Options& options, const Dataset& data, Group& group)
    : options_(options), data_(data), group_(group), sums_(kParameters + 1) {
}

void Trainer::start_from(State own) {
    // The newest epoch wins; of equally new ones, the lowest rank. A rank 0 that came back empty-handed (a new machine)
    // must not overwrite what the others have.
    const std::int64_t size = group_.size();
    const std::int64_t best = group_.highest(own.epochs_done * size + (size - 1 - group_.rank()));
    const auto source = static_cast<int>(size - 1 - best % size);
    state_ = std::move(own);
    state_.epochs_done = static_cast<int>(best / size);
    group_.copy_from(source, state_.parameters);
    group_.copy_from(source, state_.momentum);
}

void Trainer::add_part(const std::vector<std::size_t>& order, Range part) {
    const int threads = std::max(1, std::min(options_.threads, static_cast<int>(part.end - part.begin)));
    std::vector<Numbers> sums(static_cast<std::size_t>(threads), Numbers(kParameters + 1, 0.0));
    const auto work = [&](int thread) {
        Numbers& own = sums[static_cast<std::size_t>(thread)];
        const Range mine = share(part, thread, threads);
        for (std::size_t i = mine.begin; i < mine.end; ++i) {
            own[kParameters] += add_gradient(state_.parameters, data_.training[order[i]], own).loss;
        }
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread) {
        others.emplace_back(work, thread);
    }
    work(0);
    for (std::thread& other : others) {
        other.join();
    }
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (const Numbers& own : sums) {
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            sums_[i] += own[i];
        }
    }
}

double Trainer::train_step(const std::vector<std::size_t>& order, Range step) {
    add_part(order, share(step, group_.rank(), group_.size()));
    group_.sum(sums_);
    const auto images = static_cast<double>(step.end - step.begin);
    for (std::size_t i = 0; i < kParameters; ++i) {
        state_.momentum[i] = options_.momentum * state_.momentum[i] + sums_[i] / images;
        state_.parameters[i] -= options_.rate * state_.momentum[i];
    }
    return sums_[kParameters];
}

double Trainer::train_epoch() {
    const std::size_t count = data_.training.size();
    const auto order = epoch_order(count, state_.epochs_done);
    const auto batch = static_cast<std::size_t>(options_.batch);
    double loss = 0;
    for (std::size_t begin = 0; begin < count; begin += batch) {
        loss += train_step(order, {begin, std::min(begin + batch, count)});
        if (options_.step_delay_ms > 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(options_.step_delay_ms));
        }
    }
    ++state_.epochs_done;
    return loss / static_cast<double>(count);
}

Score Trainer::evaluate() {
    const Range mine = share({0, data_.held_out.size()}, group_.rank(), group_.size());
    Numbers sums(2, 0.0);
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
        const Outcome outcome = judge(state_.parameters, data_.held_out[i]);
        sums[0] += outcome.right ? 1 : 0;
        sums[1] += outcome.loss;
    }
    group_.sum(sums);
    const auto count = static_cast<double>(data_.held_out.size());
    return {sums[0] / count, sums[1] / count};
}

}  // namespace digits
