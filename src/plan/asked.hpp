// Reading the requested values one after the other, keeping the first error and what turned out to have no effect.
//
// Owned by make_plan() for one call and passed to the steps of the derivation, so that these read as what they decide.
// After an error the steps go on with fallbacks; make_plan() drops their result.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "plan/grammar.hpp"
#include "plan/requested.hpp"

namespace ddl::plan {

class Asked {
public:
    explicit Asked(const Requested& requested) : requested_(requested) {
    }

    [[nodiscard]] bool given(Flag flag) const {
        return requested_[flag].has_value();
    }
    [[nodiscard]] bool typed(Flag flag) const {
        return requested_.is_typed(flag);
    }
    [[nodiscard]] bool on(Flag flag) const {
        return requested_.is_on(flag);
    }
    [[nodiscard]] std::string text(Flag flag) const {
        return given(flag) ? requested_[flag]->text : std::string();
    }
    [[nodiscard]] const std::vector<std::string>& program() const {
        return requested_.program;
    }
    // "--nnodes", or "PET_NNODES" where that is to blame.
    [[nodiscard]] std::string origin(Flag flag) const {
        return given(flag) ? requested_[flag]->origin : spelling(flag);
    }

    // `parse(text)` gives Result<T>; `fallback` where nothing was given or it was bad.
    template <class T, class Parse>
    [[nodiscard]] T value(Flag flag, T fallback, const Parse& parse) {
        if (!given(flag)) {
            return fallback;
        }
        auto result = parse(std::string_view(requested_[flag]->text));
        if (!result) {
            refuse(flag, result.error().message);
            return fallback;
        }
        return *std::move(result);
    }

    void refuse(Flag flag, const std::string& reason) {
        refuse(origin(flag) + ": " + reason);
    }
    void refuse(std::string line) {
        if (!error_) {
            error_ = Error{std::move(line)};
        }
    }
    [[nodiscard]] const std::optional<Error>& error() const {
        return error_;
    }

    // Variables are set by operators for every pod alike, so only what was typed is worth a word.
    void note_no_effect(Flag flag, const std::string& detail = "") {
        if (typed(flag)) {
            no_effect_.push_back(spelling(flag) + (detail.empty() ? "" : " " + detail));
        }
    }
    [[nodiscard]] const std::vector<std::string>& no_effect() const {
        return no_effect_;
    }

private:
    const Requested& requested_;
    std::optional<Error> error_;
    std::vector<std::string> no_effect_;
};

}  // namespace ddl::plan
