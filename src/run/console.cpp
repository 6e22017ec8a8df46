#include "run/console.hpp"

namespace ddl::run {

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
    output_.say(whole);
}

void Console::line(std::string_view kind, std::string_view text) const {
    print("ddlaunch[" + host_ + "]: " + std::string(kind) + std::string(text));
}

}  // namespace ddl::run
