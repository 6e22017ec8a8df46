// Finds and loads the module ddlaunch-etcd.so, which brings libcurl along.
//
// Called by net/http_client at first use, so that a launch without etcd loads nothing. A loaded module stays loaded.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/http_abi.hpp"

namespace ddl::net {

// Looks in the folder named by DDLAUNCH_MODULE_DIR, if set, else in the program's own folder and in ../lib/ddlaunch
// beside that. Error: one line with the file and, if its library is what is missing, the package that has it.
[[nodiscard]] Result<const DdlHttpModule*> load_http_module();

// The same with given folders, in this order.
[[nodiscard]] Result<const DdlHttpModule*> load_http_module(const std::vector<std::string>& folders);

}  // namespace ddl::net
