// The launcher's own lines on stderr: "ddlaunch[host]: text".
//
// Owned by main and handed to run::Driver. Each text is one write(), so lines of several processes don't mix. Workers'
// output does not come through here (log_pump.hpp). A closed stderr is ignored: there is nobody left to tell.
#pragma once

#include <string>
#include <string_view>

namespace ddl::run {

class Console {
public:
    // With `quiet`, notes are left out; warnings and errors are not.
    Console(std::string host, bool quiet, int fd = 2) : host_(std::move(host)), quiet_(quiet), fd_(fd) {
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
    int fd_;
};

}  // namespace ddl::run
