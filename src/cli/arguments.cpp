#include "cli/arguments.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "plan/grammar.hpp"
#include "plan/quoted.hpp"

namespace ddl::cli {

namespace {

using plan::Flag;
using plan::quoted;

// As argparse has it: a number below zero and a text with a blank are values.
bool looks_like_flag(const std::string& word) {
    const bool dash = word.size() > 1 && word.front() == '-';
    return dash && !parse_seconds(std::string_view(word).substr(1)) && word.find(' ') == std::string::npos;
}

class Reader {
public:
    explicit Reader(const std::vector<std::string>& words) : words_(words) {
    }

    Result<plan::Requested> read() {
        while (next_ < words_.size()) {
            const std::string& word = words_[next_];
            if (word == "--") {
                ++next_;
                break;
            }
            if (!looks_like_flag(word)) {
                break;
            }
            ++next_;
            const Result<void> taken = word.starts_with("--") ? take_long(word.substr(2)) : take_letters(word);
            if (!taken) {
                return tl::unexpected(taken.error());
            }
        }
        requested_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
        return std::move(requested_);
    }

private:
    Result<void> take_long(const std::string& text) {
        const std::size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        const std::vector<Flag> flags = plan::flags_for_name(name);
        if (flags.empty()) {
            return unknown("--" + name);
        }
        if (flags.size() > 1) {
            std::vector<std::string> names;
            std::transform(flags.begin(), flags.end(), std::back_inserter(names), plan::spelling);
            return fail("--" + name + ": can mean " + join(names, " or ") + "; write more of it");
        }
        if (equals == std::string::npos) {
            return plan::info(flags.front()).takes_value() ? take_next(flags.front()) : set(flags.front(), "1");
        }
        if (!plan::info(flags.front()).takes_value()) {
            return fail(plan::spelling(flags.front()) + ": takes no value, but " + quoted(text.substr(equals + 1)) +
                        " was given");
        }
        return set(flags.front(), text.substr(equals + 1));
    }

    // "-m", "-r3", "-r=3", "-r 3", "-qm".
    Result<void> take_letters(const std::string& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            const std::optional<Flag> flag = plan::flag_for_letter(word[i]);
            if (!flag) {
                return unknown(word);
            }
            if (plan::info(*flag).takes_value()) {
                const std::size_t start = i + 1 < word.size() && word[i + 1] == '=' ? i + 2 : i + 1;
                return i + 1 == word.size() ? take_next(*flag) : set(*flag, word.substr(start));
            }
            set(*flag, "1");
        }
        return {};
    }

    Result<void> take_next(Flag flag) {
        if (next_ < words_.size() && !looks_like_flag(words_[next_]) && words_[next_] != "--") {
            return set(flag, words_[next_++]);
        }
        const std::string hint =
            next_ < words_.size() ? "; for one with a dash in front write " + plan::spelling(flag) + "=" + words_[next_]
                                  : "";
        return fail(plan::spelling(flag) + ": needs a value (" + std::string(plan::info(flag).value) + ")" + hint);
    }

    Result<void> set(Flag flag, std::string text) {
        requested_.set(flag, {std::move(text), plan::spelling(flag), true});
        return {};
    }

    static Result<void> unknown(const std::string& word) {
        const std::optional<std::string> nearest =
            plan::nearest_flag(std::string_view(word).substr(std::min(word.find_first_not_of('-'), word.size())));
        return fail(word + ": no such flag; " + (nearest ? "did you mean " + *nearest + "?" : "see --help"));
    }

    const std::vector<std::string>& words_;
    std::size_t next_ = 0;
    plan::Requested requested_;
};

const plan::FlagInfo* flag_of_variable(const std::string& name) {
    for (const plan::FlagInfo& entry : plan::flag_table()) {
        if (plan::variable_name(entry.flag) == name) {
            return &entry;
        }
    }
    return nullptr;
}

}  // namespace

Result<plan::Requested> read_arguments(const std::vector<std::string>& words) {
    return Reader(words).read();
}

Result<void> add_variables(plan::Requested& requested, const std::vector<std::string>& environment) {
    for (const std::string& variable : environment) {
        if (!variable.starts_with("PET_") && !variable.starts_with("DDL_")) {
            continue;
        }
        const std::size_t equals = variable.find('=');
        if (equals == std::string::npos || equals + 1 == variable.size()) {
            continue;
        }
        const std::string name = variable.substr(0, equals);
        const plan::FlagInfo* entry = flag_of_variable(name);
        if (entry == nullptr || requested[entry->flag]) {
            continue;
        }
        std::string text = variable.substr(equals + 1);
        if (!entry->takes_value()) {
            const Result<bool> on = plan::parse_boolean(text);
            if (!on) {
                return fail(name + ": " + on.error().message);
            }
            text = *on ? "1" : "0";
        }
        requested.set(entry->flag, {text, name, false});
    }
    return {};
}

}  // namespace ddl::cli
