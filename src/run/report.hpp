// The texts that explain how a job ended: same on every node, first cause first.
//
// Pure: values in, text out. A launcher-stopped worker never appears. Hints are given for what a number alone does not
// say (SIGKILL and memory, SIGABRT, SIGSEGV, SIGBUS, start failures).
#pragma once

#include <string>

#include "wire/agent_message.hpp"

namespace ddl::run {

// Several lines for the console; the last one always says exit code and who decided it:
//   "ddlaunch: exit code 7: from rank 3 on n1"  /  "ddlaunch: exit code 64: decided by ddlaunch: …".
[[nodiscard]] std::string failure_report(const wire::JobOver& over);

// --result-file: one JSON object (documented in docs/OPERATING.md).
[[nodiscard]] std::string result_json(const wire::JobOver& over);

}  // namespace ddl::run
