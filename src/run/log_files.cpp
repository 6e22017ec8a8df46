#include "run/log_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/path_component.hpp"
#include "os/host.hpp"

namespace ddl::run {
namespace {

constexpr int kNonceBytes = 8;

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

std::string private_directory_path(const std::string& nonce) {
    const char* const base = std::getenv("TMPDIR");
    const std::string path =
        (base != nullptr && *base != '\0' ? std::string(base) : os::scratch_base()) + "/ddlaunch-" + nonce;
    std::error_code error;  // without a current directory the path stays as it is
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    return error ? path : absolute.string();
}

LogFiles::LogFiles(std::string directory, std::string node_name)
    : directory_(std::move(directory)),
      node_name_(std::move(node_name)),
      private_directory_(private_directory_path(os::random_hex(kNonceBytes))) {
}

void LogFiles::remove_private_directory() {
    if (std::exchange(private_directory_made_, false)) {
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
           path_component(std::to_string(place.group_rank) + "-" + node_name_);
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
    if (!private_directory_made_) {
        if (::mkdir(private_directory_.c_str(), 0700) != 0) {
            return fail("cannot make a directory for workers' error files (" + private_directory_ +
                        "): " + std::strerror(errno) + "; set TMPDIR to a writable one");
        }
        private_directory_made_ = true;
    }
    return private_directory_;
}

}  // namespace ddl::run
