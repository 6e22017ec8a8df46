// The only file that knows CLI11: it serves the sub-commands. A launch itself has more flags than CLI11 can register in
// the time that a launch may take; see arguments.hpp.
#include "cli/options.hpp"

#include <algorithm>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/help.hpp"
#include "plan/compatibility.hpp"
#include "plan/grammar.hpp"

namespace ddl::cli {

namespace {

constexpr char kVersionText[] = "ddlaunch " DDLAUNCH_VERSION "\n";

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

Result<Command> checked_store(ServeStore store, const std::string& allow) {
    if (!allow.empty()) {
        Result<std::vector<std::string>> networks = plan::parse_networks(allow);
        if (!networks) {
            return fail("store: --allow: " + networks.error().message);
        }
        store.allow = std::move(*networks);
    }
    return store;
}

Result<Command> parse_store(const std::vector<std::string>& words) {
    ServeStore store;
    int port = -1;
    std::string allow;
    CLI::App app("A store for PyTorch's TCPStore clients, until a signal comes.", "ddlaunch store");
    app.add_option("--port", port, "port to listen on; 0: any free one, which is printed")
        ->required()
        ->check(CLI::Range(0, 65'535));
    app.add_flag("--everywhere", store.everywhere, "listen on all addresses, not on loopback only");
    app.add_option("--allow", allow, "addresses and networks that may connect, with commas between, or any [any]");
    app.add_option("--compat,--store-compat", store.compat, "protocol of clients older than PyTorch 2.2 [auto]")
        ->check(CLI::IsMember({"auto", "1.13", "2.1"}));
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the back
    } catch (const CLI::CallForHelp&) {
        return PrintText{app.help()};
    } catch (const CLI::ParseError& error) {
        return fail("store: " + one_line(error.what()) + "; see ddlaunch store --help");
    }
    store.port = static_cast<std::uint16_t>(port);
    return checked_store(std::move(store), allow);
}

Result<Command> parse_launch(const std::vector<std::string>& words, const std::vector<std::string>& environment) {
    Result<plan::Requested> requested = read_arguments(words);
    if (!requested) {
        return tl::unexpected(requested.error());
    }
    if (requested->is_on(plan::Flag::kHelp)) {
        return PrintText{help_text()};
    }
    if (requested->is_on(plan::Flag::kVersion)) {
        return PrintText{kVersionText};
    }
    if (requested->is_on(plan::Flag::kPrintCompatibility)) {
        return PrintText{plan::compatibility_document()};
    }
    if (Result<void> added = add_variables(*requested, environment); !added) {
        return tl::unexpected(added.error());
    }
    const bool dry_run = requested->is_on(plan::Flag::kDryRun);
    return Launch{std::move(*requested), dry_run};
}

}  // namespace

Result<Command> parse(int argc, const char* const* argv, const std::vector<std::string>& environment) {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (!words.empty() && words.front() == "store") {
        words.erase(words.begin());
        return parse_store(words);
    }
    if (!words.empty() && words.front() == "run") {
        words.erase(words.begin());
    }
    return parse_launch(words, environment);
}

}  // namespace ddl::cli
