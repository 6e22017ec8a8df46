// One stream of one worker on its way from the pipe to console, log file, filtered copies and tail.
//
// Owned by LogPump, which reads the pipe and says when time has passed. Holds back an unfinished line (bounded), so
// that whole lines reach the console; everything else gets the bytes as they come.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "os/fd.hpp"
#include "run/console_lines.hpp"
#include "run/stderr_tail.hpp"

namespace ddl::run {

// Lines with one of `needles`, of all ranks, in one file.
struct LineFilter {
    os::Fd file;
    std::vector<std::string> needles;
};

struct StreamTargets {
    int number = 0;                   // tells streams apart on a console
    ConsoleLines* console = nullptr;  // null: none
    std::string prefix;               // of console lines; empty: bytes as they are
    os::Fd file;                      // none: no log file
    std::shared_ptr<LineFilter> filter;
    bool keep_tail = false;
};

// Trouble that is worth a warning.
enum class StreamTrouble : std::uint8_t { kNone, kConsoleGone, kFileFailed };
using TroubleReport = std::function<void(StreamTrouble, int error)>;

class WorkerStream {
public:
    WorkerStream(StreamTargets targets, TroubleReport report)
        : targets_(std::move(targets)), report_(std::move(report)) {
    }

    void feed(std::string_view bytes, Instant now);
    void flush();  // puts out an unfinished line
    [[nodiscard]] std::optional<Instant> flush_at() const {
        return flush_at_;
    }
    [[nodiscard]] std::vector<std::string> tail() const {
        return tail_.lines();
    }

private:
    void to_console(std::string_view text);
    void to_file(std::string_view bytes);
    void to_filter(std::string_view bytes);

    StreamTargets targets_;
    TroubleReport report_;
    StderrTail tail_;
    std::string pending_;    // start of a line that is not on the console yet
    std::string unmatched_;  // start of a line that the filter has not seen yet
    std::optional<Instant> flush_at_;
};

}  // namespace ddl::run
