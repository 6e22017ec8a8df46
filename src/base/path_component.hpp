// Names of jobs and nodes as names of directories.
//
// Called where log files are placed and where a plan tells people about them. Touches no file.
#pragma once

#include <string>
#include <string_view>

namespace ddl {

// A job id or node name as one component of a path: harmless characters, at most 100 bytes; different names stay
// different, since what was changed carries a digest of the original.
[[nodiscard]] std::string path_component(std::string_view name);

}  // namespace ddl
