#include "run/stderr_tail.hpp"

#include <algorithm>

#include "wire/agent_message.hpp"

namespace ddl::run {
namespace {

constexpr std::size_t kKeptBytes = wire::kMaxStderrTailLines * wire::kMaxLineBytes;

std::string_view last_state(std::string_view line) {
    while (!line.empty() && line.back() == '\r') {
        line.remove_suffix(1);
    }
    const std::size_t at = line.rfind('\r');
    return at == std::string_view::npos ? line : line.substr(at + 1);
}

std::string printable(std::string_view line, std::size_t max_bytes) {
    std::string text(line.substr(0, max_bytes));
    std::replace_if(
        text.begin(), text.end(),
        [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\x1b') || c == '\x7f'; }, '?');
    return text;
}

}  // namespace

std::vector<std::string> last_lines(std::string_view text, std::size_t limit, std::size_t max_line_bytes) {
    std::vector<std::string> lines;
    while (!text.empty() && lines.size() < limit) {
        if (text.back() == '\n') {
            text.remove_suffix(1);
        }
        const std::size_t newline = text.rfind('\n');
        const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
        const std::string_view line = last_state(text.substr(start));
        if (line.find_first_not_of(" \t") != std::string_view::npos) {
            lines.push_back(printable(line, max_line_bytes));
        }
        text = text.substr(0, start);
    }
    std::reverse(lines.begin(), lines.end());
    return lines;
}

void StderrTail::feed(std::string_view bytes) {
    if (bytes.size() > kKeptBytes) {
        bytes.remove_prefix(bytes.size() - kKeptBytes);
    }
    recent_ += bytes;
    if (recent_.size() > 2 * kKeptBytes) {  // twice: so that it is not moved for every line
        recent_.erase(0, recent_.size() - kKeptBytes);
    }
}

std::vector<std::string> StderrTail::lines() const {
    return last_lines(recent_, wire::kMaxStderrTailLines, wire::kMaxLineBytes);
}

}  // namespace ddl::run
