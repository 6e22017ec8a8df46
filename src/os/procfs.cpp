#include "os/procfs.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <memory>
#include <thread>

#include "base/text.hpp"
#include "os/family.hpp"
#include "os/fd.hpp"

namespace ddl::os {
namespace {

constexpr std::size_t kMaxFileBytes = 8U << 20U;  // an environment may be as large as a quarter of the stack limit

std::string path_of(pid_t pid, std::string_view name) {
    return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

// nullopt if there is no such file; what could be read otherwise.
std::optional<std::string> read_whole(const std::string& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) {
        return std::nullopt;
    }
    std::string text;
    std::size_t size = 0;
    while (size < kMaxFileBytes) {
        text.resize(std::max<std::size_t>(1024, 2 * size));
        const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        size += static_cast<std::size_t>(count);
    }
    text.resize(size);
    return text;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

std::vector<pid_t> numeric_entries(const std::string& directory) {
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
    std::vector<pid_t> numbers;
    while (entries != nullptr) {
        const dirent* const entry = ::readdir(entries.get());
        if (entry == nullptr) {
            break;
        }
        if (const auto number = number_in<pid_t>(entry->d_name)) {
            numbers.push_back(*number);
        }
    }
    return numbers;
}

// Not every kernel has these files; children hang below the thread that made them.
std::vector<pid_t> listed_children(pid_t pid) {
    std::vector<pid_t> children;
    for (const pid_t thread : numeric_entries(path_of(pid, "task"))) {
        const auto text = read_whole(path_of(pid, "task/" + std::to_string(thread) + "/children"));
        if (!text) {
            continue;
        }
        for (const std::string_view word : split(*text, ' ')) {
            if (const auto child = number_in<pid_t>(word)) {
                children.push_back(*child);
            }
        }
    }
    return children;
}

bool kernel_lists_children() {
    static const bool kThere = ::access("/proc/thread-self/children", R_OK) == 0;
    return kThere;
}

bool contains(const std::vector<pid_t>& pids, pid_t pid) {
    return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

std::vector<ProcessFacts> walk_down(pid_t top, const std::vector<pid_t>& spared) {
    std::vector<ProcessFacts> found;
    std::vector<pid_t> open{top};
    while (!open.empty()) {
        const pid_t parent = open.back();
        open.pop_back();
        for (const pid_t child : listed_children(parent)) {
            if (contains(spared, child)) {
                continue;
            }
            if (auto facts = read_process(child)) {
                found.push_back(std::move(*facts));
                open.push_back(child);
            }
        }
    }
    return found;
}

std::vector<ProcessFacts> pick_descendants(std::vector<ProcessFacts> all, pid_t top, const std::vector<pid_t>& spared) {
    std::stable_sort(all.begin(), all.end(),
                     [](const ProcessFacts& a, const ProcessFacts& b) { return a.parent < b.parent; });
    std::vector<ProcessFacts> found;
    std::vector<pid_t> open{top};
    while (!open.empty()) {
        const pid_t parent = open.back();
        open.pop_back();
        auto at = std::lower_bound(all.begin(), all.end(), parent,
                                   [](const ProcessFacts& facts, pid_t wanted) { return facts.parent < wanted; });
        for (; at != all.end() && at->parent == parent; ++at) {
            if (!contains(spared, at->pid)) {
                open.push_back(at->pid);
                found.push_back(*at);
            }
        }
    }
    return found;
}

}  // namespace

std::optional<ProcessFacts> parse_stat(std::string_view text) {
    const auto open = text.find(" (");
    const auto close = text.rfind(") ");
    if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) {
        return std::nullopt;
    }
    const std::vector<std::string_view> fields = split(trim(text.substr(close + 2)), ' ');
    if (fields.size() < 20 || fields[0].size() != 1) {  // proc(5): these are fields 3 (state) to 22 (starttime)
        return std::nullopt;
    }
    const auto pid = number_in<pid_t>(text.substr(0, open));
    const auto parent = number_in<pid_t>(fields[1]);
    const auto session = number_in<pid_t>(fields[3]);
    const auto threads = number_in<int>(fields[17]);
    const auto start = number_in<std::uint64_t>(fields[19]);
    if (!pid || !parent || !session || !threads || !start) {
        return std::nullopt;
    }
    ProcessFacts facts;
    facts.pid = *pid;
    facts.parent = *parent;
    facts.session = *session;
    facts.state = fields[0][0];
    facts.start_ticks = *start;
    facts.command = std::string(text.substr(open + 2, close - open - 2));
    constexpr std::size_t kEnvironmentEnd = 48;  // field 51, an address: the last thing that an exec puts in place
    facts.has_image = fields.size() > kEnvironmentEnd && fields[kEnvironmentEnd] != "0";
    constexpr std::size_t kFlags = 6;   // field 9
    constexpr unsigned kExiting = 0x4;  // PF_EXITING, include/linux/sched.h; unchanged since Linux 2.6
    facts.exiting = (number_in<unsigned>(fields[kFlags]).value_or(0) & kExiting) != 0;
    facts.ended = facts.state == 'X' || (facts.state == 'Z' && *threads <= 1);
    return facts;
}

std::optional<ProcessFacts> read_process(pid_t pid) {
    const auto text = read_whole(path_of(pid, "stat"));
    return text ? parse_stat(*text) : std::nullopt;
}

std::vector<ProcessFacts> all_processes() {
    std::vector<ProcessFacts> processes;
    for (const pid_t pid : numeric_entries("/proc")) {
        if (auto facts = read_process(pid)) {
            processes.push_back(std::move(*facts));
        }
    }
    return processes;
}

bool all_threads_are_exiting(pid_t pid) {
    const std::vector<pid_t> threads = numeric_entries(path_of(pid, "task"));
    return std::all_of(threads.begin(), threads.end(), [pid](pid_t thread) {
        const auto text = read_whole(path_of(pid, "task/" + std::to_string(thread) + "/stat"));
        const auto facts = text ? parse_stat(*text) : std::nullopt;
        return !facts || facts->exiting;  // one that has vanished was
    });
}

std::vector<pid_t> children_of(pid_t pid) {
    if (kernel_lists_children()) {
        return listed_children(pid);
    }
    std::vector<pid_t> children;
    for (const ProcessFacts& facts : all_processes()) {
        if (facts.parent == pid) {
            children.push_back(facts.pid);
        }
    }
    return children;
}

std::vector<ProcessFacts> descendants_of(pid_t pid, const std::vector<pid_t>& spared) {
    return kernel_lists_children() ? walk_down(pid, spared) : pick_descendants(all_processes(), pid, spared);
}

std::optional<int> spawn_serial(std::string_view environment, std::string_view nonce) {
    const std::string wanted = std::string(kSpawnIdVariable) + "=" + std::string(nonce) + ".";
    for (const std::string_view entry : split(environment, '\0')) {
        if (entry.substr(0, wanted.size()) == wanted) {
            const auto serial = number_in<int>(entry.substr(wanted.size()));
            if (serial && *serial >= 0) {
                return serial;
            }
        }
    }
    return std::nullopt;
}

std::optional<std::string> read_environment(pid_t pid) {
    return read_whole(path_of(pid, "environ"));
}

std::string settled_environment(pid_t pid) {
    constexpr int kLooks = 200;
    constexpr auto kPause = std::chrono::microseconds(200);
    int looks_with_image = 0;  // the first may have been at what comes after the exec, with the text from before
    for (int look = 0; look < kLooks && looks_with_image < 2; ++look) {
        auto text = read_environment(pid);
        if (!text || !text->empty()) {
            return std::move(text).value_or("");
        }
        const auto facts = read_process(pid);
        if (!facts || facts->ended) {
            break;
        }
        if (facts->has_image) {
            ++looks_with_image;
        } else {
            std::this_thread::sleep_for(kPause);
        }
    }
    return "";
}

std::string read_wait_channel(pid_t pid) {
    return read_whole(path_of(pid, "wchan")).value_or("");
}

}  // namespace ddl::os
