// Which words of the command line are flags, what they are called in full, and where the program begins.
//
// Driven by plan's flag table: dashes or underscores, shortened names, --flag=VALUE and --flag VALUE, -r3 and clusters
// of letters. Options end at the first word that is not one, or after `--`; the rest is the program's, untouched. Of a
// repeated flag the last counts. Done here and not by CLI11, which takes 0.3 ms to register this many flags: a tenth of
// what a whole launch may take.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "plan/requested.hpp"

namespace ddl::cli {

[[nodiscard]] Result<plan::Requested> read_arguments(const std::vector<std::string>& words);

// Adds PET_* and DDL_* (NAME=VALUE texts) for flags that were not typed. Empty ones count as not set.
[[nodiscard]] Result<void> add_variables(plan::Requested& requested, const std::vector<std::string>& environment);

}  // namespace ddl::cli
