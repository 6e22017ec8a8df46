#include "run/worker_stream.hpp"

#include <algorithm>
#include <cerrno>

#include "os/write_all.hpp"

namespace ddl::run {
namespace {

constexpr auto kSilence = std::chrono::milliseconds(100);
constexpr std::size_t kMaxHeldBytes = 64 * 1024;  // of a line without end

// How much of `text` may go to the console: whole lines, or up to a CR. A CR at the very end may be half of a CR LF.
std::size_t whole_part(std::string_view text) {
    const std::size_t newline = text.rfind('\n');
    const std::size_t end = newline == std::string_view::npos ? 0 : newline + 1;
    const std::size_t cr = text.size() < 2 ? std::string_view::npos : text.rfind('\r', text.size() - 2);
    return cr == std::string_view::npos ? end : std::max(end, cr + 1);
}

}  // namespace

void WorkerStream::feed(std::string_view bytes, Instant now) {
    if (targets_.keep_tail) {
        tail_.feed(bytes);
    }
    to_file(bytes);
    to_filter(bytes);
    if (targets_.console == nullptr) {
        return;
    }
    std::string joined;
    if (!pending_.empty()) {
        joined = std::move(pending_) + std::string(bytes);
        bytes = joined;
    }
    const std::size_t whole = bytes.size() > kMaxHeldBytes ? bytes.size() : whole_part(bytes);
    to_console(bytes.substr(0, whole));
    pending_ = std::string(bytes.substr(whole));
    flush_at_ = pending_.empty() ? std::nullopt : std::optional(now + kSilence);
}

void WorkerStream::flush() {
    flush_at_.reset();
    to_console(std::exchange(pending_, {}));
}

void WorkerStream::to_console(std::string_view text) {
    if (targets_.console != nullptr && !targets_.console->write(targets_.number, targets_.prefix, text)) {
        targets_.console = nullptr;
        report_(StreamTrouble::kConsoleGone, EPIPE);
    }
}

void WorkerStream::to_file(std::string_view bytes) {
    if (!targets_.file) {
        return;
    }
    if (const int error = os::write_all(targets_.file.get(), bytes); error != 0) {
        targets_.file.reset();
        report_(StreamTrouble::kFileFailed, error);
    }
}

void WorkerStream::to_filter(std::string_view bytes) {
    if (!targets_.filter || !targets_.filter->file) {
        return;
    }
    unmatched_ += bytes;
    std::size_t start = 0;
    std::string matching;
    for (std::size_t end = unmatched_.find('\n'); end != std::string::npos; end = unmatched_.find('\n', start)) {
        const std::string_view line = std::string_view(unmatched_).substr(start, end + 1 - start);
        const auto& needles = targets_.filter->needles;
        if (std::any_of(needles.begin(), needles.end(),
                        [line](const std::string& needle) { return line.find(needle) != std::string_view::npos; })) {
            matching += targets_.prefix;
            matching += line;
        }
        start = end + 1;
    }
    unmatched_.erase(0, start);
    if (unmatched_.size() > kMaxHeldBytes) {
        unmatched_.clear();
    }
    if (const int error = os::write_all(targets_.filter->file.get(), matching); error != 0) {
        targets_.filter->file.reset();
        report_(StreamTrouble::kFileFailed, error);
    }
}

}  // namespace ddl::run
