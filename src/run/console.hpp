// The launcher's own lines on stderr: "ddlaunch[host]: text".
//
// Owned by main and handed to run::Driver. Each text is one write() if stderr takes it (up to PIPE_BUF), so lines
// of several processes don't mix. Workers' output does not come through here (log_pump.hpp). Never blocks
// (console_output.hpp). A closed stderr is ignored: there is nobody left to tell.
#pragma once

#include <string>
#include <string_view>

#include "run/console_output.hpp"

namespace ddl::run {

class Console {
public:
    // With `quiet`, notes are left out; warnings and errors are not.
    Console(std::string host, bool quiet, ConsoleOutput& output)
        : host_(std::move(host)), quiet_(quiet), output_(output) {
    }

    void note(std::string_view text) const;
    void warn(std::string_view text) const;
    void error(std::string_view text) const;

    // Text that brings its own layout (the failure report): as it is, with a newline at its end.
    void print(std::string_view text) const;

private:
    void line(std::string_view kind, std::string_view text) const;

    std::string host_;
    bool quiet_;
    ConsoleOutput& output_;
};

}  // namespace ddl::run
