#include "os/signals.hpp"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace ddl::os {

Result<SignalSource> SignalSource::open(const std::vector<int>& signals) {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : signals) {
        if (sigaddset(&set, number) != 0) {
            return fail("signal " + std::to_string(number) + " does not exist");
        }
    }
    if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
        return fail(std::string("cannot block signals: ") + std::strerror(error));
    }
    Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) {
        return fail(std::string("cannot open a signal descriptor: ") + std::strerror(errno));
    }
    return SignalSource(std::move(fd));
}

std::optional<int> SignalSource::next() {
    signalfd_siginfo info{};
    ssize_t count = 0;
    do {
        count = ::read(fd_.get(), &info, sizeof info);
    } while (count < 0 && errno == EINTR);
    if (count != static_cast<ssize_t>(sizeof info)) {
        return std::nullopt;
    }
    return static_cast<int>(info.ssi_signo);
}

}  // namespace ddl::os
