// Runs a transcript: a text of what happens to a job and what is expected to follow (docs/TESTING.md has the words).
//
// Called by scenario_test for each file. Everything that agents do (start, signal, sweep, finish) must be expected
// before the next line that makes something happen; what they say may be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/cluster.hpp"

namespace ddl::scenario {

class Transcript {
public:
    Transcript();

    // nullopt: as expected. Otherwise one text for people that begins with the line's number.
    [[nodiscard]] std::optional<std::string> run(std::string_view text);

private:
    using Words = std::vector<std::string>;

    [[nodiscard]] std::string line(const std::string& text);  // empty: fine
    [[nodiscard]] std::string act(const Words& words);
    [[nodiscard]] std::string act_on_node(const Words& words);
    [[nodiscard]] std::string set(const Words& words);
    [[nodiscard]] std::string start(const Words& words);
    [[nodiscard]] std::string end_worker(const Words& words);
    [[nodiscard]] std::string expect(const std::string& rest);
    [[nodiscard]] std::string expect_said(const std::string& rest, bool wanted);
    [[nodiscard]] std::string expect_entry(const std::string& node, const std::string& text);
    [[nodiscard]] std::string nothing_left();

    Settings settings_;
    std::optional<Cluster> cluster_;
};

}  // namespace ddl::scenario
