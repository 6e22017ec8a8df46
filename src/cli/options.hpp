// From argv and environment to a command: what this invocation of the launcher should do.
//
// Called once by main. Knows spellings, prefixes, where the options end and PET_*/DDL_* variables; knows nothing of the
// values' grammar (plan::make_plan does). Never prints, never exits, never throws. An error is one line without the
// program's name in front; main prints it as "ddlaunch: <line>" and exits with plan::kUsageError.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "plan/requested.hpp"

namespace ddl::cli {

// Start workers (`ddlaunch …` or `ddlaunch run …`), or, with dry_run, print plan::describe() of the plan and exit 0.
struct Launch {
    plan::Requested requested;
    bool dry_run = false;
};

// `ddlaunch store --port N`: a bare store and nothing else, until a signal comes.
struct ServeStore {
    std::uint16_t port = 0;          // 0: any free one, to be printed
    bool everywhere = false;         // else loopback only
    std::string compat = "auto";     // auto | 1.13 | 2.1
    std::vector<std::string> allow;  // CIDRs, or "any"; empty with everywhere: any
};

// --help, --version: print this on stdout and exit 0.
struct PrintText {
    std::string text;
};

using Command = std::variant<Launch, ServeStore, PrintText>;

// `environment` is NAME=VALUE texts.
[[nodiscard]] Result<Command> parse(int argc, const char* const* argv, const std::vector<std::string>& environment);

}  // namespace ddl::cli
