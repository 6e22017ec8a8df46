#include "run/program_version.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>

#include "base/text.hpp"
#include "os/clock.hpp"
#include "os/host.hpp"
#include "os/process.hpp"

namespace ddl::run {
namespace {

constexpr std::size_t kLongestAnswer = 120;

bool ends_by(const os::Child& child, Instant deadline) {
    pollfd ended{child.pidfd.get(), POLLIN, 0};
    while (ended.revents == 0) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - os::now()).count();
        if (left <= 0) {
            return false;
        }
        ::poll(&ended, 1, static_cast<int>(left));  // an interrupted one is looked at again
    }
    return true;
}

std::string first_line(const os::Fd& pipe) {
    std::array<char, kLongestAnswer> bytes{};
    const ssize_t got = ::read(pipe.get(), bytes.data(), bytes.size());
    const std::string_view text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    std::string line(trim(text.substr(0, text.find('\n'))));
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
    return line;
}

}  // namespace

std::string version_of_program(const std::string& program, Duration limit) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
        return {};
    }
    const os::Fd answer(ends[0]);
    os::Fd writer(ends[1]);
    os::SpawnRequest request;
    request.arguments = {program, "--version"};
    request.environment = os::environment();
    request.standard_out = request.standard_err = writer.get();
    const Instant deadline = os::now() + limit;
    const auto child = os::spawn(request);
    writer.reset();
    if (!child) {
        return {};
    }
    const bool in_time = ends_by(*child, deadline);
    ::kill(-child->pid, SIGKILL);  // its session, with what it may have started
    if (!in_time) {
        (void)ends_by(*child, os::now() + limit);
    }
    const std::optional<os::ExitStatus> status = os::reap(child->pid);
    const bool answered = in_time && status && !status->signalled && status->number == 0;
    return answered ? first_line(answer) : std::string();
}

}  // namespace ddl::run
