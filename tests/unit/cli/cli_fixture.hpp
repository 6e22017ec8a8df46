// Shared by the tests of cli: a command line as a list of words, and what came out of it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options.hpp"

namespace ddl::cli::testing {

using Words = std::vector<std::string>;

inline Result<Command> command_of(const Words& words, const Words& environment = {}) {
    std::vector<const char*> argv = {"ddlaunch"};
    for (const std::string& word : words) {
        argv.push_back(word.c_str());
    }
    return parse(static_cast<int>(argv.size()), argv.data(), environment);
}

inline std::string error_of(const Words& words, const Words& environment = {}) {
    const Result<Command> command = command_of(words, environment);
    return command ? "no error" : command.error().message;
}

// A launch; an empty one, and with it a failing test, when it is anything else.
inline Launch launch_of(const Words& words, const Words& environment = {}) {
    const Result<Command> command = command_of(words, environment);
    const Launch* launch = command ? std::get_if<Launch>(&*command) : nullptr;
    return launch == nullptr ? Launch{} : *launch;
}

inline std::string value_of(const Launch& launch, plan::Flag flag) {
    const std::optional<plan::Setting>& setting = launch.requested[flag];
    return setting ? setting->text : "absent";
}

}  // namespace ddl::cli::testing
