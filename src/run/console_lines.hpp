// Puts the output of several workers onto one console descriptor so that lines of two ranks are never glued.
//
// Owned by LogPump, one per console descriptor. Text comes in pieces that end with a line, a CR, or in the middle of a
// line (a prompt, a progress bar). When another stream has its turn while a line is unfinished, a newline is put in
// between; a stream that goes on undisturbed is passed through byte by byte. Keeps nothing back: what the
// console does not take now waits in ConsoleOutput.
#pragma once

#include <string>
#include <string_view>

#include "run/console_output.hpp"

namespace ddl::run {

class ConsoleLines {
public:
    explicit ConsoleLines(ConsoleOutput& output) : output_(output) {
    }

    // `stream` is any number that tells streams apart. `prefix` is put before each line; empty: bytes as they are.
    // False when the console is gone (nobody can read it any more); it stays gone.
    bool write(int stream, std::string_view prefix, std::string_view text);

    // Ends a line that is still unfinished, so that a line of the launcher's own starts at its beginning.
    bool end_line();

private:
    bool put(std::string_view bytes);

    ConsoleOutput& output_;
    bool gone_ = false;
    int open_stream_ = -1;  // whose line is unfinished
};

}  // namespace ddl::run
