// What a worker left in its TORCHELASTIC_ERROR_FILE, whatever state the file is in.
#pragma once

#include <string>

namespace ddl::run {

// The message of either torchelastic format ({"message": {"message": …, "extraInfo": {"py_callstack": …}}} or
// {"message": "…"}); with a call stack, that. A file that is not such JSON comes back as text with a remark; a missing
// or empty one as "". Reads at most 64 KiB; never fails.
[[nodiscard]] std::string read_error_file(const std::string& path);

}  // namespace ddl::run
