#include "os/host.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/text.hpp"
#include "os/fd.hpp"

namespace ddl::os {
namespace {

bool exists(const char* path) {
    return ::access(path, F_OK) == 0;
}

std::string numeric(const sockaddr* address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* bytes = nullptr;
    if (address->sa_family == AF_INET) {
        bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    } else if (address->sa_family == AF_INET6) {
        bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    }
    if (bytes == nullptr || ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr) {
        return "";
    }
    return text.data();
}

// CUDA stops at the first entry that names no device; what follows is invisible.
int count_listed(std::string_view list) {
    int count = 0;
    for (const std::string_view entry : split(list, ',')) {
        const std::string_view name = trim(entry);
        const bool index = !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
        if (!index && name.substr(0, 4) != "GPU-" && name.substr(0, 4) != "MIG-") {
            break;
        }
        ++count;
    }
    return count;
}

bool is_gpu_device(std::string_view name) {
    constexpr std::string_view kStem = "nvidia";
    return name.size() > kStem.size() && name.substr(0, kStem.size()) == kStem &&
           name.find_first_not_of("0123456789", kStem.size()) == std::string_view::npos;
}

int count_device_files() {
    const std::unique_ptr<DIR, int (*)(DIR*)> devices(::opendir("/dev"), ::closedir);
    int count = 0;
    while (devices != nullptr) {
        const dirent* const entry = ::readdir(devices.get());
        if (entry == nullptr) {
            break;
        }
        count += is_gpu_device(entry->d_name) ? 1 : 0;
    }
    return count;
}

bool in_container() {
    struct stat info {};
    constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel
    const bool own_pids = ::stat("/proc/self/ns/pid", &info) == 0 && info.st_ino != kFirstPidNamespace;
    return own_pids || exists("/.dockerenv") || exists("/run/.containerenv");
}

}  // namespace

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
        return "localhost";
    }
    return std::string(split(name.data(), '.').front());
}

std::vector<std::string> interface_addresses() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) {
        return {};
    }
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
    std::vector<std::string> addresses;
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        std::string text = entry->ifa_addr == nullptr ? "" : numeric(entry->ifa_addr);
        if (!text.empty() && std::find(addresses.begin(), addresses.end(), text) == addresses.end()) {
            addresses.push_back(std::move(text));
        }
    }
    return addresses;
}

int usable_cpus() {
    for (std::size_t cpus = 1024; cpus <= 65536; cpus *= 2) {  // the kernel refuses a mask smaller than its own
        std::vector<unsigned long> words(cpus / (8 * sizeof(unsigned long)));
        const std::size_t bytes = words.size() * sizeof(unsigned long);
        auto* const mask = reinterpret_cast<cpu_set_t*>(words.data());
        if (::sched_getaffinity(0, bytes, mask) == 0) {
            return std::max(1, CPU_COUNT_S(bytes, mask));
        }
    }
    return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

int visible_gpus() {
    const char* const listed = std::getenv("CUDA_VISIBLE_DEVICES");
    if (listed != nullptr) {
        return count_listed(listed);
    }
    return exists("/dev/nvidiactl") ? count_device_files() : 0;  // reading all of /dev costs every launch
}

bool own_network_namespace_in_container() {
    // The kernel shows the machine-wide knobs only in the first network namespace, somaxconn in each.
    const bool own_network = exists("/proc/sys/net/core/somaxconn") && !exists("/proc/sys/net/core/dev_weight");
    return own_network && in_container();
}

std::vector<std::string> environment() {
    std::vector<std::string> entries;
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
        entries.emplace_back(*entry);
    }
    return entries;
}

std::string random_hex(int bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::vector<unsigned char> drawn(static_cast<std::size_t>(bytes));
    while (::getrandom(drawn.data(), drawn.size(), 0) != static_cast<ssize_t>(drawn.size())) {
    }
    std::string text;
    for (const unsigned char byte : drawn) {
        text += kDigits[byte >> 4U];
        text += kDigits[byte & 15U];
    }
    return text;
}

std::string scratch_base() {
    return ::access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

std::string tail_of_file(const std::string& path, int lines, int max_bytes) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return "";
    }
    std::string text(static_cast<std::size_t>(std::min<off_t>(info.st_size, max_bytes)), '\0');
    const ssize_t count = ::pread(file.get(), text.data(), text.size(), info.st_size - static_cast<off_t>(text.size()));
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    std::size_t start = text.size();
    for (int left = lines; left > 0 && start > 0; --left) {
        const std::size_t newline = start >= 2 ? text.rfind('\n', start - 2) : std::string::npos;
        start = newline == std::string::npos ? 0 : newline + 1;
    }
    return text.substr(start);
}

}  // namespace ddl::os
