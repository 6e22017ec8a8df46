// The text of --help, made from plan's flag table: grouped, one line for each flag.
#pragma once

#include <string>

namespace ddl::cli {

[[nodiscard]] std::string help_text();

}  // namespace ddl::cli
