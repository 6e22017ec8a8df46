// Shared by the tests of plan: a made-up machine, requests written as lists, and the outcome of make_plan().
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/make_plan.hpp"

namespace ddl::plan::testing {

struct Given {
    Flag flag;
    std::string text;
};

inline Requested request(std::initializer_list<Given> given, std::vector<std::string> program = {"train.py"}) {
    Requested requested;
    for (const Given& one : given) {
        requested.set(one.flag, {one.text, spelling(one.flag), true});
    }
    requested.program = std::move(program);
    return requested;
}

// The same, but by PET_* and DDL_* variables.
inline Requested by_variables(std::initializer_list<Given> given, std::vector<std::string> program = {"train.py"}) {
    Requested requested;
    for (const Given& one : given) {
        requested.set(one.flag, {one.text, variable_name(one.flag), false});
    }
    requested.program = std::move(program);
    return requested;
}

using Files = std::map<std::string, FileFacts>;

inline FileFacts plain_file(std::string first_bytes = "impo") {
    return {true, false, false, std::move(first_bytes)};
}
inline FileFacts executable_file(std::string first_bytes) {
    return {true, false, true, std::move(first_bytes)};
}
inline FileFacts elf_file() {
    return executable_file(
        "\x7F"
        "ELF");
}

// A machine with four cpus, two GPUs, addresses 10.0.0.5 and fd00::5, python3 in /usr/bin, and train.py in the working
// directory.
inline HostFacts machine(Files files = {}, std::vector<std::string> environment = {}) {
    files.emplace("train.py", plain_file());
    files.emplace("/usr/bin/python3", elf_file());
    HostFacts host;
    host.host_name = "n0";
    host.user_id = 1000;
    host.cpus = 4;
    host.gpus = 2;
    host.invoked_as = "/opt/ddl/ddlaunch";
    host.fresh_id = "f00d";
    host.environment = std::move(environment);
    host.environment.emplace_back("PATH=/usr/local/bin:/usr/bin");
    host.probe = [files = std::move(files)](const std::string& path) {
        const auto found = files.find(path);
        return found == files.end() ? FileFacts{} : found->second;
    };
    host.owns_address = [](const std::string& address) {
        return address == "10.0.0.5" || address == "fd00::5";
    };
    host.version_of = [](const std::string& path) {
        return path == "/usr/bin/python3" ? "Python 3.11.2" : "";
    };
    return host;
}

inline std::string error_of(const Requested& requested, const HostFacts& host = machine()) {
    const Result<LaunchPlan> plan = make_plan(requested, host);
    return plan ? "no error" : plan.error().message;
}

}  // namespace ddl::plan::testing
