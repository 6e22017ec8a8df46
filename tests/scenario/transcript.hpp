// Runs a transcript: a text of what happens to a job and what is expected to follow, one line each, # for comments.
//
// Called by scenario_test for each file. Everything that agents do (start, signal, sweep, finish) must be expected
// before the next line that makes something happen; what they say may be.
//
//   nodes 2:4 | set max_restarts 1 | set join_timeout 60s      before the first start
//   start n0 host | start n1 workers=2 rank=1 role=reader …    n0 owns the endpoint; the digits are address, port, pid
//   advance 31s                                                virtual time
//   exit n0 all | exit n0 rank=1 | die n1 rank=3 sig=9 | die n1 rank=3 code=1 | cannot_start n1 local=0 errno=2
//   signal n1 TERM | kill n1 | fail n1                         of the agent: a signal, its sudden end, no descriptors
//   cut n1 | cut n1 unnoticed | notice n1 | link n1            broken; only the agent sees it; all see it; back
//   hold n1 | release n1                                       what n1 sends stays in the network
//   ignore n1 | stuck n1 | families n1 2 1 0 0                 workers ignore TERM; KILL too; what sweeps will find
//   expect n0: start ranks 0-1 of 4 generation 1 restarts 0 master h0:40001
//   expect n1: signal 2,3 TERM | expect n1: sweep KILL | expect n1: finish 137 | expect nothing
//   expect says n0 "part of a text" | expect silence n0 "part of a text"     since the last action
//   expect ended | expect not ended                            whether the coordinator needs no more to wait for others
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
