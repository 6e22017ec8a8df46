// A directory of the test's own, a pipe as console, and whole files, for the tests of run/.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "os/fd.hpp"
#include "run/console_output.hpp"

namespace ddl::run::testing {

class ScratchDirectory {
public:
    ScratchDirectory() {
        std::string path = (std::filesystem::temp_directory_path() / "ddl_run_test-XXXXXX").string();
        if (::mkdtemp(path.data()) == nullptr) {
            std::abort();
        }
        path_ = path;
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    ~ScratchDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string operator/(const std::string& name) const {
        return path_ + "/" + name;
    }
    [[nodiscard]] const std::string& path() const {
        return path_;
    }
    [[nodiscard]] bool empty() const {
        return std::filesystem::is_empty(path_);
    }

private:
    std::string path_;
};

inline std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A pipe of one page whose reader takes what is there when asked.
struct NarrowPipe {
    NarrowPipe() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
            std::abort();
        }
        read.reset(ends[0]);
        write.reset(ends[1]);
        ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
        ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
    }
    std::string take() const {
        std::array<char, 4096> bytes{};
        const ssize_t got = ::read(read.get(), bytes.data(), bytes.size());
        return {bytes.data(), static_cast<std::size_t>(got > 0 ? got : 0)};
    }
    os::Fd read;
    os::Fd write;
};

// What was written to fd() since the last take().
class CapturedConsole {
public:
    CapturedConsole()
        : file_(directory_ / "console"),
          fd_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)),
          output_(fd_.get()) {
    }
    [[nodiscard]] int fd() const {
        return fd_.get();
    }
    [[nodiscard]] ConsoleOutput& output() {
        return output_;
    }
    std::string take() {
        const std::string all = content_of(file_);
        return all.substr(std::exchange(taken_, all.size()));
    }

private:
    ScratchDirectory directory_;
    std::string file_;
    os::Fd fd_;
    ConsoleOutput output_;
    std::size_t taken_ = 0;
};

}  // namespace ddl::run::testing
