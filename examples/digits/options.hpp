// What the digits example was asked to do: plain flags, parsed once in main(), passed on by value.
#pragma once

#include <string>

namespace digits {

struct Options {
    std::string data;        // CSV file; default: digits.csv beside the program
    std::string checkpoint;  // empty: none is written or read
    std::string loss_log;    // JSON lines {"epoch": 1, "loss": 2.1}; empty: none
    int epochs = 30;
    int batch = 64;  // images of a step over all ranks, so that the curve does not depend on their number
    int threads = 1;
    int step_delay_ms = 0;    // makes a run last long enough to break it
    int timeout_ms = 60'000;  // for one collective, and for all ranks to be there
    double rate = 0.2;
    double momentum = 0.9;
    bool help = false;
};

// Throws std::invalid_argument with one line that names the flag.
[[nodiscard]] Options parse_options(int argc, char** argv);

// The text of --help.
[[nodiscard]] std::string usage();

}  // namespace digits
