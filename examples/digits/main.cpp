// Trains a small network on handwritten digits, data-parallel over the ranks that a launcher has started.
//
// Exit codes: 0 done, 1 something broke while training (a file, another rank), 2 bad flags or environment.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "checkpoint.hpp"
#include "dataset.hpp"
#include "group.hpp"
#include "options.hpp"
#include "trainer.hpp"

namespace {

using namespace digits;

State own_state(const Options& options) {
    if (!options.checkpoint.empty()) {
        if (auto saved = load_checkpoint(options.checkpoint)) {
            return *saved;
        }
    }
    return {0, initial_parameters(), Numbers(kParameters, 0.0)};
}

void append_loss(const std::string& path, int epoch, double loss) {
    std::FILE* file = std::fopen(path.c_str(), "a");
    if (file == nullptr || std::fprintf(file, "{\"epoch\": %d, \"loss\": %.12f}\n", epoch, loss) < 0 ||
        std::fclose(file) != 0) {
        throw std::runtime_error("loss log " + path + ": cannot be written");
    }
}

void report_epoch(const Options& options, const State& state, double loss) {
    std::printf("epoch %d/%d loss=%.6f\n", state.epochs_done, options.epochs, loss);
    std::fflush(stdout);
    if (!options.loss_log.empty()) {
        append_loss(options.loss_log, state.epochs_done, loss);
    }
    if (!options.checkpoint.empty()) {
        save_checkpoint(options.checkpoint, state);
    }
}

void run(const Options& options, Group& group) {
    const Dataset data = load_dataset(options.data);
    group = Group::from_environment(std::chrono::milliseconds(options.timeout_ms));
    Trainer trainer(options, data, group);
    trainer.start_from(own_state(options));
    const bool speaks = group.rank() == 0;
    if (speaks && trainer.state().epochs_done > 0) {
        std::printf("going on after epoch %d with %d ranks\n", trainer.state().epochs_done, group.size());
    }
    while (trainer.state().epochs_done < options.epochs) {
        const double loss = trainer.train_epoch();
        if (speaks) {
            report_epoch(options, trainer.state(), loss);
        }
    }
    const Score score = trainer.evaluate();
    if (speaks) {
        std::printf("accuracy=%.4f loss=%.9f ranks=%d\n", score.accuracy, score.loss, group.size());
    }
    group.leave();
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a rank that died shows as an error of the exchange
    Group group;  // here, so that std::_Exit below skips its destructor: a broken one waits for ranks that are gone
    int code = 0;
    try {
        const Options options = parse_options(argc, argv);
        if (options.help) {
            std::fputs(usage().c_str(), stdout);
        } else {
            run(options, group);
        }
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "digits: %s\n", error.what());
        code = 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "digits: rank %d of %d: %s\n", group.rank(), group.size(), error.what());
        code = 1;
    }
    std::fflush(nullptr);
    std::_Exit(code);
}
