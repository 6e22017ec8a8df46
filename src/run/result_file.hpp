// --result-file: how the job ended, for whoever started it.
//
// Called by run::Driver once, at the end. A full disk, or a pipe that nobody reads, costs the file, never the job's
// end.
#pragma once

#include <string>

#include "base/result.hpp"
#include "wire/agent_message.hpp"

namespace ddl::run {

// Replaces what the file held. Error: one line that names it.
[[nodiscard]] Result<void> write_result_file(const std::string& path, const wire::JobOver& over);

}  // namespace ddl::run
