#include "os/inherited.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace ddl::os {

void repair_inherited_state() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        // The lowest free number is taken, which is this one; workers may inherit it, so it stays open across an exec.
        if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0) {
            return;  // not even /dev/null: nothing can be done here that the next open would not say better
        }
    }
    ::signal(SIGCHLD, SIG_DFL);
}

bool is_ignored(int signal) {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace ddl::os
