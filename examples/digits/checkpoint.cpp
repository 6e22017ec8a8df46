#include "checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace digits {
namespace {

constexpr char kMagic[8] = {'d', 'i', 'g', 'i', 't', 's', '0', '1'};
constexpr std::size_t kHeaderBytes = sizeof kMagic + sizeof(std::uint64_t);
constexpr std::size_t kNumberBytes = kParameters * sizeof(double);
constexpr std::size_t kFileBytes = kHeaderBytes + 2 * kNumberBytes + sizeof(std::uint64_t);

std::uint64_t checksum(const char* bytes, std::size_t count) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
    for (std::size_t i = 0; i < count; ++i) {
        hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3ULL;
    }
    return hash;
}

std::string to_bytes(const State& state) {
    std::string bytes(kFileBytes, '\0');
    const auto epoch = static_cast<std::uint64_t>(state.epochs_done);
    std::memcpy(bytes.data(), kMagic, sizeof kMagic);
    std::memcpy(bytes.data() + sizeof kMagic, &epoch, sizeof epoch);
    std::memcpy(bytes.data() + kHeaderBytes, state.parameters.data(), kNumberBytes);
    std::memcpy(bytes.data() + kHeaderBytes + kNumberBytes, state.momentum.data(), kNumberBytes);
    const std::uint64_t sum = checksum(bytes.data(), kFileBytes - sizeof sum);
    std::memcpy(bytes.data() + kFileBytes - sizeof sum, &sum, sizeof sum);
    return bytes;
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
    throw std::runtime_error("checkpoint " + path + ": " + why);
}

void write_all(int fd, const std::string& bytes, const std::string& path) {
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno != EINTR) {
            fail(path, std::strerror(errno));
        }
        done += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
}

}  // namespace

void save_checkpoint(const std::string& path, const State& state) {
    const std::string temporary = path + "." + std::to_string(::getpid()) + ".tmp";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        fail(temporary, std::strerror(errno));
    }
    try {
        write_all(fd, to_bytes(state), temporary);
    } catch (...) {
        ::close(fd);
        ::unlink(temporary.c_str());
        throw;
    }
    const bool flushed = ::fsync(fd) == 0;
    const bool closed = ::close(fd) == 0;
    if (!flushed || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
        const std::string why = std::strerror(errno);
        ::unlink(temporary.c_str());
        fail(path, why);
    }
}

std::optional<State> load_checkpoint(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        if (errno == ENOENT) {
            return std::nullopt;
        }
        fail(path, std::strerror(errno));
    }
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::uint64_t sum = 0;
    if (bytes.size() == kFileBytes) {
        std::memcpy(&sum, bytes.data() + kFileBytes - sizeof sum, sizeof sum);
    }
    if (bytes.size() != kFileBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0 ||
        sum != checksum(bytes.data(), kFileBytes - sizeof sum)) {
        fail(path, "not a whole checkpoint of this program; remove it to start anew");
    }
    std::uint64_t epoch = 0;
    State state{0, Numbers(kParameters), Numbers(kParameters)};
    std::memcpy(&epoch, bytes.data() + sizeof kMagic, sizeof epoch);
    std::memcpy(state.parameters.data(), bytes.data() + kHeaderBytes, kNumberBytes);
    std::memcpy(state.momentum.data(), bytes.data() + kHeaderBytes + kNumberBytes, kNumberBytes);
    state.epochs_done = static_cast<int>(epoch);
    return state;
}

}  // namespace digits
