// Budgets, exit codes, spans of time and signals: the values of the flags about failures.
#include <algorithm>
#include <array>
#include <csignal>
#include <set>

#include "base/text.hpp"
#include "plan/grammar.hpp"
#include "plan/quoted.hpp"

namespace ddl::plan {

namespace {

constexpr int kMaxRestarts = 1'000'000;
constexpr int kMaxRestartsOfWindow = 100;  // an agent keeps no more of them for the coordinator that may follow
constexpr double kYear = 365.0 * 86'400;
constexpr int kLargestExitCode = 255;

struct Unit {
    char letter;
    double seconds;
};
constexpr std::array<Unit, 4> kUnits = {{{'s', 1}, {'m', 60}, {'h', 3'600}, {'d', 86'400}}};

// "3" or "10-20".
Result<void> add_codes(std::string_view text, std::set<int>& codes) {
    const std::vector<std::string_view> parts = split(text, '-');
    const Result<int> first = parse_count(trim(parts.front()), 1, kLargestExitCode);
    const Result<int> last = parse_count(trim(parts.back()), 1, kLargestExitCode);
    if (parts.size() > 2 || !first || !last) {
        return fail(quoted(text) + " is neither an exit code (1 to 255) nor a range of them; try 3 or 3,10-20");
    }
    if (*first > *last) {
        return fail(quoted(text) + " has its bounds the wrong way round; try " + std::to_string(*last) + "-" +
                    std::to_string(*first));
    }
    for (int code = *first; code <= *last; ++code) {
        codes.insert(code);
    }
    return {};
}

}  // namespace

Result<Duration> parse_span(std::string_view text, double least, double most) {
    text = trim(text);
    const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                   [text](const Unit& known) { return !text.empty() && text.back() == known.letter; });
    const std::string_view number = unit == kUnits.end() ? text : text.substr(0, text.size() - 1);
    const std::optional<double> value = parse_seconds(number);
    if (!value) {
        return fail(quoted(text) + " is not a span of time; try 90 (seconds), 30m, 1h or 1d");
    }
    const double in_seconds = *value * (unit == kUnits.end() ? 1 : unit->seconds);
    if (in_seconds < least || in_seconds > most) {
        return fail(quoted(text) + " is not between " + std::to_string(static_cast<long>(least)) + " and " +
                    std::to_string(static_cast<long>(most)) + " seconds");
    }
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(in_seconds));
}

Result<RestartBudget> parse_restart_budget(std::string_view text) {
    const std::size_t slash = text.find('/');
    RestartBudget budget;
    const bool windowed = slash != std::string_view::npos;
    const Result<int> restarts =
        parse_count(text.substr(0, slash), windowed ? 1 : 0, windowed ? kMaxRestartsOfWindow : kMaxRestarts);
    if (!restarts) {
        return fail(restarts.error().message + (windowed ? "; try 3/1h" : ""));
    }
    budget.restarts = *restarts;
    if (windowed) {
        const Result<Duration> window = parse_span(text.substr(slash + 1), 1, kYear);
        if (!window) {
            return tl::unexpected(window.error());
        }
        budget.window = *window;
    }
    return budget;
}

Result<std::vector<int>> parse_exit_codes(std::string_view text) {
    std::set<int> codes;
    for (const std::string_view part : split(text, ',')) {
        if (Result<void> added = add_codes(trim(part), codes); !added) {
            return tl::unexpected(added.error());
        }
    }
    return std::vector<int>(codes.begin(), codes.end());
}

Result<std::vector<int>> parse_forwarded_signals(std::string_view text, const std::vector<int>& that_stop) {
    Result<std::vector<int>> signals = parse_signals(text);
    if (!signals) {
        return signals;
    }
    for (const int signal : *signals) {
        const std::string name = signal_name(signal);
        if (signal == SIGTERM || signal == SIGINT) {
            return fail(name + " stops the job and reaches the workers anyway; leave it out");
        }
        if (std::find(that_stop.begin(), that_stop.end(), signal) != that_stop.end()) {
            std::vector<std::string> others;
            for (const int other : that_stop) {
                if (other != signal) {
                    others.push_back(signal_name(other));
                }
            }
            return fail(name + " is one of --signals-to-handle, which stop the job; leave it out of one of the two: " +
                        "--signals-to-handle " + join(others, ","));
        }
    }
    return signals;
}

}  // namespace ddl::plan
