#include "run/console_lines.hpp"

namespace ddl::run {
namespace {

// The end of the line at the start of `text`: behind "\n" or "\r\n" or a lone "\r"; its size if none is there.
std::size_t line_end(std::string_view text) {
    const std::size_t at = text.find_first_of("\r\n");
    if (at == std::string_view::npos) {
        return text.size();
    }
    const bool pair = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    return at + (pair ? 2 : 1);
}

bool finished(std::string_view text) {
    return text.back() == '\n' || text.back() == '\r';
}

}  // namespace

bool ConsoleLines::write(int stream, std::string_view prefix, std::string_view text) {
    if (text.empty()) {
        return !gone_;
    }
    std::string bytes;
    bool at_start = open_stream_ != stream;
    if (open_stream_ != -1 && at_start) {
        bytes += '\n';
    }
    if (prefix.empty()) {
        bytes += text;
    } else {
        for (std::string_view rest = text; !rest.empty();) {
            const std::size_t end = line_end(rest);
            if (at_start) {
                bytes += prefix;
            }
            bytes += rest.substr(0, end);
            at_start = finished(rest.substr(0, end));
            rest.remove_prefix(end);
        }
    }
    // With a CR the cursor is at the start of a line that others may not write on: it counts as unfinished, unless
    // lines get a prefix, which has to be written again then.
    const bool complete = text.back() == '\n' || (text.back() == '\r' && !prefix.empty());
    open_stream_ = complete ? -1 : stream;
    return put(bytes);
}

bool ConsoleLines::end_line() {
    const bool open = open_stream_ != -1;
    open_stream_ = -1;
    return open ? put("\n") : !gone_;
}

bool ConsoleLines::put(std::string_view bytes) {
    gone_ = gone_ || !output_.write(bytes);
    return !gone_;
}

}  // namespace ddl::run
