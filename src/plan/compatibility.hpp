// docs/COMPATIBILITY.md, made from the tables that the launcher itself goes by.
//
// Pure. Printed by the hidden --print-compatibility; a test compares it with the file in the repository.
#pragma once

#include <string>

namespace ddl::plan {

[[nodiscard]] std::string compatibility_document();

}  // namespace ddl::plan
