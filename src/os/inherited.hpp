// What a careless parent hands down, put right: the first thing that main does.
//
// Closed standard descriptors become /dev/null, or else a socket of ours would get their number and be written to by
// whoever prints. SIGCHLD that is ignored is set back, or else the kernel would throw exit statuses away.
#pragma once

namespace ddl::os {

void repair_inherited_state();

// Whether this process ignores the signal, which is inherited: nohup does so with SIGHUP.
[[nodiscard]] bool is_ignored(int signal);

}  // namespace ddl::os
