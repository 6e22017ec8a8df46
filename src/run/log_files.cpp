#include "run/log_files.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/text.hpp"

namespace ddl::run {
namespace {

constexpr std::size_t kMaxComponentBytes = 100;

bool harmless(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

Result<os::Fd> open_in(const std::string& directory, std::string_view name) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) {
        return fail("cannot make the log directory " + directory + ": " + error.message());
    }
    const std::string path = directory + "/" + std::string(name);
    os::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!file) {
        return fail("cannot open " + path + ": " + std::strerror(errno));
    }
    return file;
}

}  // namespace

std::string path_component(std::string_view name) {
    constexpr std::size_t kDigestBytes = 8;
    std::string text(name.substr(0, kMaxComponentBytes));
    for (char& c : text) {
        c = harmless(c) ? c : '_';
    }
    if (!text.empty() && text[0] == '.') {
        text[0] = '_';  // "..", and files that hide
    }
    if (text == name && !text.empty()) {
        return text;
    }
    text.resize(std::min(text.size(), kMaxComponentBytes - kDigestBytes - 1));
    return text + "-" + digest(name).substr(0, kDigestBytes);
}

LogFiles::~LogFiles() {
    if (!private_directory_.empty()) {
        std::error_code ignored;  // a leftover in the temporary directory is nothing to end a job's report with
        std::filesystem::remove_all(private_directory_, ignored);
    }
}

Result<os::Fd> LogFiles::open_for_rank(const plan::RankPlace& place, std::string_view name) const {
    return open_in(rank_directory(place), name);
}

Result<os::Fd> LogFiles::open_for_node(const plan::RankPlace& place, std::string_view name) const {
    return open_in(node_directory(place), name);
}

std::string LogFiles::node_directory(const plan::RankPlace& place) const {
    return directory_ + "/" + path_component(place.job_id) + "/generation_" + std::to_string(place.generation) + "/" +
           path_component(node_name_);
}

std::string LogFiles::rank_directory(const plan::RankPlace& place) const {
    return node_directory(place) + "/" + std::to_string(place.local_rank);
}

Result<std::string> LogFiles::error_file(const plan::RankPlace& place, bool in_log_directory) {
    std::string path;
    if (in_log_directory) {
        path = rank_directory(place) + "/error.json";
    } else {
        const auto directory = private_directory();
        if (!directory) {
            return directory;
        }
        path = *directory + "/g" + std::to_string(place.generation) + "_r" + std::to_string(place.local_rank) + ".json";
    }
    ::unlink(path.c_str());
    return path;
}

Result<std::string> LogFiles::private_directory() {
    if (private_directory_.empty()) {
        const char* const base = std::getenv("TMPDIR");
        std::string path = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/ddlaunch-XXXXXX";
        if (::mkdtemp(path.data()) == nullptr) {
            return fail("cannot make a directory for workers' error files (" + path + "): " + std::strerror(errno) +
                        "; set TMPDIR to a writable one");
        }
        private_directory_ = path;
    }
    return private_directory_;
}

}  // namespace ddl::run
