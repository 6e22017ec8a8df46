// What was asked for, before anything is understood: one text per flag, with where it came from.
//
// Filled by cli from argv, PET_* and DDL_*; read by make_plan(), which alone knows the grammar of the values, so that a
// bad one is reported in the same way wherever it came from. A value is absent when nobody gave one: defaults are
// make_plan()'s. Holds no host facts.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/flag_table.hpp"

namespace ddl::plan {

struct Setting {
    std::string text;    // "1" for a switch that is on, "0" for one that a variable switched off
    std::string origin;  // "--nnodes" or "PET_NNODES": what to blame
    bool typed = true;   // on the command line, not by a variable

    friend bool operator==(const Setting&, const Setting&) = default;
};

class Requested {
public:
    void set(Flag flag, Setting setting) {
        settings_[static_cast<std::size_t>(flag)] = std::move(setting);
    }
    [[nodiscard]] const std::optional<Setting>& operator[](Flag flag) const {
        return settings_[static_cast<std::size_t>(flag)];
    }
    [[nodiscard]] bool is_on(Flag flag) const {
        return (*this)[flag].has_value() && (*this)[flag]->text == "1";
    }
    [[nodiscard]] bool is_typed(Flag flag) const {
        return (*this)[flag].has_value() && (*this)[flag]->typed;
    }

    std::vector<std::string> program;  // script, module or program, then its arguments; untouched

private:
    std::array<std::optional<Setting>, kFlagCount> settings_;
};

}  // namespace ddl::plan
