// What make_plan() needs to know about this machine, as values and one injected look at files.
//
// Gathered by main from os; made up by tests. Nothing in plan/ asks the system itself.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::plan {

struct FileFacts {
    bool exists = false;
    bool is_directory = false;
    bool executable = false;  // by this user
    std::string first_bytes;  // up to 4; enough for ELF and #!
};

struct HostFacts {
    std::string host_name;
    unsigned user_id = 0;
    int cpus = 1;  // size of the affinity mask
    int gpus = 0;  // visible ones
    bool stdin_is_terminal = false;
    std::vector<std::string> environment;                     // NAME=VALUE
    std::string invoked_as;                                   // argv[0]
    std::string fresh_id;                                     // random text: the id of a job that was given none
    std::function<FileFacts(const std::string& path)> probe;  // follows links
    // Whether a numeric address belongs to an interface of this machine. Asked only where several nodes meet at one.
    std::function<bool(const std::string& address)> owns_address;
    // What a program answers to --version, "Python 3.11.2"; "" if it does not within a few seconds. For --dry-run only:
    // it runs the program.
    std::function<std::string(const std::string& path)> version_of;
};

// The value of a variable in NAME=VALUE texts.
struct Lookup {
    bool found = false;
    std::string_view value;
};
[[nodiscard]] Lookup lookup(const std::vector<std::string>& environment, std::string_view name);

}  // namespace ddl::plan
