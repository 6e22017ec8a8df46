#include "os/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace ddl::os {
namespace {

std::string text_of(const char* path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

// proc(5): blanks and backslashes in mountinfo are written as three octal digits.
std::string unescaped(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size()) {
            plain += static_cast<char>(std::strtol(std::string(text.substr(i + 1, 3)).c_str(), nullptr, 8));
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

std::optional<std::string_view> own_group(std::string_view cgroup) {
    constexpr std::string_view kVersion2 = "0::";
    for (const std::string_view line : split(cgroup, '\n')) {
        if (line.substr(0, kVersion2.size()) == kVersion2) {
            return line.substr(kVersion2.size());
        }
    }
    return std::nullopt;
}

// The part of `group` below the directory that is mounted; nullopt when it lies outside.
std::optional<std::string_view> below(std::string_view group, std::string_view root) {
    if (root == "/") {
        return group == "/" ? "" : group;
    }
    if (group.substr(0, root.size()) != root || (group.size() > root.size() && group[root.size()] != '/')) {
        return std::nullopt;
    }
    return group.substr(root.size());
}

}  // namespace

std::optional<std::string> own_group_directory(std::string_view mountinfo, std::string_view cgroup) {
    const auto group = own_group(cgroup);
    if (!group) {
        return std::nullopt;
    }
    for (const std::string_view line : split(mountinfo, '\n')) {
        const auto separator = line.find(" - cgroup2 ");
        const auto fields = split(line.substr(0, separator), ' ');
        if (separator == std::string_view::npos || fields.size() < 5) {  // proc(5): 4th the root, 5th the mount point
            continue;
        }
        if (const auto rest = below(*group, fields[3])) {
            return unescaped(fields[4]) + std::string(*rest);
        }
    }
    return std::nullopt;
}

std::optional<WorkerCgroup> WorkerCgroup::create(const std::string& nonce) {
    if (std::getenv("SLURM_JOB_ID") != nullptr) {
        return std::nullopt;
    }
    const auto parent = own_group_directory(text_of("/proc/self/mountinfo"), text_of("/proc/self/cgroup"));
    if (!parent) {
        return std::nullopt;
    }
    const std::string path = *parent + "/ddlaunch-" + nonce;
    if (::mkdir(path.c_str(), 0755) != 0) {
        return std::nullopt;
    }
    WorkerCgroup group(path);
    const bool can_kill = ::access((path + "/cgroup.kill").c_str(), W_OK) == 0;
    return can_kill ? std::optional(std::move(group)) : std::nullopt;
}

WorkerCgroup::WorkerCgroup(WorkerCgroup&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      round_(std::move(other.round_)),
      directory_(std::move(other.directory_)),
      rounds_(other.rounds_) {
}

WorkerCgroup::~WorkerCgroup() {
    if (!path_.empty()) {
        ::rmdir(round_.c_str());
        ::rmdir(path_.c_str());
    }
}

int WorkerCgroup::open_round() {
    if (!round_.empty()) {
        ::rmdir(round_.c_str());
    }
    round_ = path_ + "/" + std::to_string(rounds_++);
    ::mkdir(round_.c_str(), 0755);
    directory_.reset(::open(round_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return directory_.get();
}

void WorkerCgroup::kill_round() const {
    kill_cgroup(round_);
}

void kill_cgroup(const std::string& path) {
    if (path.empty()) {
        return;
    }
    const Fd file(::open((path + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
    if (file && ::write(file.get(), "1", 1) < 0) {
        return;  // an empty or vanished group: nothing to end
    }
}

void remove_cgroup(const std::string& path) {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries && !path.empty() && ::rmdir(path.c_str()) != 0 && errno == EBUSY; ++i) {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
            if (entry.is_directory(ignored)) {
                ::rmdir(entry.path().c_str());
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(i == 0 ? 0 : 10));
    }
}

}  // namespace ddl::os
