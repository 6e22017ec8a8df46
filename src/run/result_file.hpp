// --result-file: how the job ended, for whoever started it.
//
// Checked by launch(), written by run::Driver once, at the end. A disk that is full by then, or a pipe that nobody
// reads, costs the file, never the job's end.
#pragma once

#include <string>

#include "base/result.hpp"
#include "wire/agent_message.hpp"

namespace ddl::run {

// At the start, so that a job isn't run for an answer that nobody gets. Makes the file if there is none, keeps what it
// holds. Error: one line that names it.
[[nodiscard]] Result<void> check_result_file(const std::string& path);

// Replaces what the file held. Error: one line that names it.
[[nodiscard]] Result<void> write_result_file(const std::string& path, const wire::JobOver& over);

}  // namespace ddl::run
