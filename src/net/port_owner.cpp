#include "net/port_owner.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace ddl::net {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxCommandBytes = 120;
constexpr char kListening[] = "0A";

struct Holder {
    std::string inode;
    std::string user;
};

// The listening socket of the port in one of the kernel's tables, if there is one.
std::optional<Holder> holder_in(const char* table, std::uint16_t port) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // headings
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
        fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
        const std::size_t colon = local.rfind(':');
        if (!fields || state != kListening || colon == std::string::npos) {
            continue;
        }
        if (std::stoul("0" + local.substr(colon + 1), nullptr, 16) == port) {
            return Holder{inode, user};
        }
    }
    return std::nullopt;
}

bool holds_socket(const fs::path& process, const std::string& inode) {
    std::error_code error;
    const std::string wanted = "socket:[" + inode + "]";
    for (fs::directory_iterator it(process / "fd", error), end; !error && it != end; it.increment(error)) {
        std::error_code unreadable;
        if (fs::read_symlink(it->path(), unreadable) == wanted) {
            return true;
        }
    }
    return false;
}

std::string command_of(const fs::path& process) {
    std::ifstream file(process / "cmdline", std::ios::binary);
    std::string command((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (char& c : command) {
        if (static_cast<unsigned char>(c) < ' ') {
            c = ' ';
        }
    }
    command = std::string(trim(command));
    if (command.size() > kMaxCommandBytes) {
        command.resize(kMaxCommandBytes);
        command += "…";
    }
    return command;
}

}  // namespace

std::string port_owner(std::uint16_t port) {
    auto holder = holder_in("/proc/net/tcp6", port);
    if (!holder.has_value()) {
        holder = holder_in("/proc/net/tcp", port);
    }
    if (!holder.has_value()) {
        return "";
    }
    std::error_code error;
    for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (parse_integer(name).has_value() && holds_socket(it->path(), holder->inode)) {
            return "pid " + name + " (" + command_of(it->path()) + ")";
        }
    }
    return "a process of user " + holder->user;
}

}  // namespace ddl::net
