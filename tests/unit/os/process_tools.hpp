// Small helpers for tests that start real processes: pipes, waiting for an end without sleeping.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "os/fd.hpp"
#include "os/host.hpp"
#include "os/process.hpp"

namespace ddl::os::testing {

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
            std::abort();
        }
        read_end = Fd(ends[0]);
        write_end = Fd(ends[1]);
    }

    // Until `until` was seen or everybody has closed the other end; at most 5 s.
    std::string read_until(const std::string& until = "") {
        write_end.reset();
        std::string text;
        while (until.empty() || text.find(until) == std::string::npos) {
            pollfd ready{read_end.get(), POLLIN, 0};
            std::array<char, 4096> buffer{};
            ssize_t count = 0;
            if (::poll(&ready, 1, 5000) <= 0 || (count = ::read(read_end.get(), buffer.data(), buffer.size())) <= 0) {
                break;
            }
            text.append(buffer.data(), static_cast<std::size_t>(count));
        }
        return text;
    }

    Fd read_end;
    Fd write_end;
};

inline bool ends_within(const Fd& pidfd, int milliseconds) {
    pollfd ended{pidfd.get(), POLLIN, 0};
    return ::poll(&ended, 1, milliseconds) == 1;
}

inline Fd pidfd_of(pid_t pid) {
    return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
}

inline SpawnRequest shell(const std::string& script, std::vector<std::string> more_environment = {}) {
    SpawnRequest request;
    request.arguments = {"/bin/sh", "-c", script};
    request.environment = environment();
    request.environment.insert(request.environment.end(), more_environment.begin(), more_environment.end());
    return request;
}

inline ExitStatus wait_for(const Child& child) {
    if (!ends_within(child.pidfd, 5000)) {
        ::kill(child.pid, SIGKILL);
        ends_within(child.pidfd, 5000);
    }
    return reap(child.pid).value_or(ExitStatus{true, -1, false});
}

inline void end(const Child& child) {
    ::kill(child.pid, SIGKILL);
    wait_for(child);
}

}  // namespace ddl::os::testing
