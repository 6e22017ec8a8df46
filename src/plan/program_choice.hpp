// What a worker executes: which Python, if any, and the complete argument vector.
//
// Rules in this order: --run-path, -m and --no-python as given; a name that ends in .py goes to Python whatever its
// permissions; an ELF or #! file that may be executed is; everything else goes to Python. Pure: looks at files through
// HostFacts::probe. Called by make_plan() only.
#pragma once

#include "plan/asked.hpp"
#include "plan/host_facts.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::plan {

// Errors go to `asked`.
[[nodiscard]] Program choose_program(Asked& asked, const HostFacts& host);

// Equal on all nodes of a job: of the arguments without the interpreter's path, which may differ between hosts.
[[nodiscard]] std::string command_digest(const Program& program);

}  // namespace ddl::plan
