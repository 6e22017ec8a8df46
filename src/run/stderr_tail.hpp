// The last lines of a stream, for reports. Keeps a bounded number of bytes and looks at lines only when asked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddl::run {

// At most `limit` last lines of `text`, each cut to `max_line_bytes`. Of a line that was rewritten by CRs (progress
// bars) the last state counts; blank lines are left out; control characters are replaced.
[[nodiscard]] std::vector<std::string> last_lines(std::string_view text, std::size_t limit, std::size_t max_line_bytes);

class StderrTail {
public:
    void feed(std::string_view bytes);
    [[nodiscard]] std::vector<std::string> lines() const;  // at most wire::kMaxStderrTailLines

private:
    std::string recent_;
};

}  // namespace ddl::run
