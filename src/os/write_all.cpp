#include "os/write_all.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace ddl::os {
namespace {

constexpr int kPatienceMilliseconds = 5000;

}  // namespace

int write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(count));
        } else if (count < 0 && errno == EAGAIN) {
            pollfd ready{fd, POLLOUT, 0};
            if (::poll(&ready, 1, kPatienceMilliseconds) == 0) {
                return ETIMEDOUT;
            }
        } else if (count == 0 || errno != EINTR) {
            return count == 0 ? EIO : errno;
        }
    }
    return 0;
}

}  // namespace ddl::os
