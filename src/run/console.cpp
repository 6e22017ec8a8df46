#include "run/console.hpp"

#include <unistd.h>

#include <cerrno>

namespace ddl::run {
namespace {

void write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(fd, text.data(), text.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return;
        }
        text.remove_prefix(static_cast<std::size_t>(count));
    }
}

}  // namespace

void Console::note(std::string_view text) const {
    if (!quiet_) {
        line("", text);
    }
}

void Console::warn(std::string_view text) const {
    line("warning: ", text);
}

void Console::error(std::string_view text) const {
    line("error: ", text);
}

void Console::print(std::string_view text) const {
    std::string whole(text);
    if (!whole.empty() && whole.back() != '\n') {
        whole += '\n';
    }
    write_all(fd_, whole);
}

void Console::line(std::string_view kind, std::string_view text) const {
    print("ddlaunch[" + host_ + "]: " + std::string(kind) + std::string(text));
}

}  // namespace ddl::run
