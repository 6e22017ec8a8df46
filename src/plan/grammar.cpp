#include "plan/grammar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>

#include "base/text.hpp"
#include "plan/quoted.hpp"

namespace ddl::plan {

namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return out;
}

std::string short_number(double value) {
    std::array<char, 32> buffer{};
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return error == std::errc{} ? std::string(buffer.data(), end) : std::string("?");
}

struct SignalName {
    std::string_view name;
    int number;
};

// Those that a launcher may be asked to act on. Without KILL and STOP, which nobody can handle, CHLD, which is ours,
// and those that report a fault in the launcher itself.
constexpr std::array<SignalName, 14> kSignals = {{{"HUP", SIGHUP},
                                                  {"INT", SIGINT},
                                                  {"QUIT", SIGQUIT},
                                                  {"TERM", SIGTERM},
                                                  {"USR1", SIGUSR1},
                                                  {"USR2", SIGUSR2},
                                                  {"ALRM", SIGALRM},
                                                  {"CONT", SIGCONT},
                                                  {"PIPE", SIGPIPE},
                                                  {"PWR", SIGPWR},
                                                  {"TSTP", SIGTSTP},
                                                  {"URG", SIGURG},
                                                  {"WINCH", SIGWINCH},
                                                  {"XCPU", SIGXCPU}}};

Result<int> parse_signal(std::string_view text) {
    std::string name(text);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    if (name.starts_with("SIG")) {
        name.erase(0, 3);
    }
    const std::optional<std::int64_t> number = parse_integer(name);
    std::vector<std::string> names;
    for (const SignalName& known : kSignals) {
        if (known.name == name || (number && *number == known.number)) {
            return known.number;
        }
        names.push_back("SIG" + std::string(known.name));
    }
    if (name == "KILL" || name == "STOP" || name == "CHLD") {
        return fail(quoted(text) + " can't be handled; leave it out");
    }
    const std::optional<std::string> nearest = nearest_name("SIG" + name, names);
    return fail(quoted(text) + " is not a signal to handle; try " + (nearest ? *nearest : join(names, ", ")));
}

}  // namespace

Result<int> parse_count(std::string_view text, int least, int most) {
    const std::optional<std::int64_t> value = parse_integer(text);
    if (!value) {
        return fail(quoted(text) + " is not a whole number");
    }
    if (*value < least || *value > most) {
        return fail(quoted(text) + " is not between " + std::to_string(least) + " and " + std::to_string(most));
    }
    return static_cast<int>(*value);
}

Result<NodeRange> parse_node_range(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, ':');
    if (parts.size() > 2) {
        return fail(quoted(text) + " is neither N nor MIN:MAX; try 2 or 1:4");
    }
    const std::optional<std::int64_t> min = parse_integer(parts.front());
    const std::optional<std::int64_t> max = parse_integer(parts.back());
    if (!min || !max) {
        return fail(quoted(text) + " is neither N nor MIN:MAX; try 2 or 1:4");
    }
    if (*min < 1 || *max > kMaxNodes) {
        return fail(quoted(text) + " is not between 1 and " + std::to_string(kMaxNodes) + " nodes");
    }
    if (*min > *max) {
        return fail(quoted(text) + " has its bounds the wrong way round; try " + std::to_string(*max) + ":" +
                    std::to_string(*min));
    }
    return NodeRange{static_cast<int>(*min), static_cast<int>(*max)};
}

Result<Duration> parse_duration(std::string_view text, double least, double most) {
    const std::optional<double> value = parse_seconds(text);
    if (!value) {
        return fail(quoted(text) + " is not a number of seconds");
    }
    if (*value < least || *value > most) {
        return fail(quoted(text) + " is not between " + short_number(least) + " and " + short_number(most) +
                    " seconds");
    }
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*value));
}

Result<bool> parse_boolean(std::string_view text) {
    const std::string word = lower(trim(text));
    for (const char* yes : {"1", "true", "t", "yes", "y", "on"}) {
        if (word == yes) {
            return true;
        }
    }
    for (const char* no : {"0", "false", "f", "no", "n", "off"}) {
        if (word == no) {
            return false;
        }
    }
    return fail(quoted(text) + " is neither yes nor no; try 1 or 0");
}

std::vector<std::string> parse_text_list(std::string_view text) {
    std::vector<std::string> items(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool comma = text[i] == ',';
        const bool escaped = comma && i + 1 < text.size() && text[i + 1] == ',';
        if (comma && !escaped) {
            items.emplace_back();
            continue;
        }
        items.back() += text[i];
        i += escaped ? 1 : 0;
    }
    std::erase_if(items, [](const std::string& item) { return item.empty(); });
    return items;
}

Result<std::vector<int>> parse_signals(std::string_view text) {
    std::vector<int> numbers;
    for (const std::string_view part : split(text, ',')) {
        const Result<int> number = parse_signal(trim(part));
        if (!number) {
            return tl::unexpected(number.error());
        }
        if (std::find(numbers.begin(), numbers.end(), *number) == numbers.end()) {
            numbers.push_back(*number);
        }
    }
    return numbers;
}

Result<KeyValues> parse_key_values(std::string_view text) {
    KeyValues pairs;
    if (trim(text).empty()) {
        return pairs;
    }
    for (const std::string_view part : split(text, ',')) {
        const std::size_t equals = part.find('=');
        const std::string key(trim(part.substr(0, equals)));
        const std::string value(equals == std::string_view::npos ? "" : trim(part.substr(equals + 1)));
        if (key.empty() || value.empty()) {
            return fail(quoted(part) + " is not KEY=VALUE");
        }
        std::erase_if(pairs, [&key](const auto& pair) { return pair.first == key; });
        pairs.emplace_back(key, value);
    }
    return pairs;
}

}  // namespace ddl::plan
