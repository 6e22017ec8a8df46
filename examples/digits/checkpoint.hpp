// The state of training after an epoch, and its file.
//
// The file is replaced in one step (temporary file, flush to disk, rename), so a crash at any moment leaves the old or
// the new one, never half of one. Reading checks length and checksum.
#pragma once

#include <optional>
#include <string>

#include "model.hpp"

namespace digits {

struct State {
    int epochs_done = 0;
    Numbers parameters;
    Numbers momentum;
};

// Throws std::runtime_error naming file and reason.
void save_checkpoint(const std::string& path, const State& state);

// nullopt when there is no such file; throws std::runtime_error when it is not a whole checkpoint of this program.
[[nodiscard]] std::optional<State> load_checkpoint(const std::string& path);

}  // namespace digits
