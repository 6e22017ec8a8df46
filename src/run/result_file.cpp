#include "run/result_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "os/fd.hpp"
#include "os/write_all.hpp"
#include "run/report.hpp"

namespace ddl::run {

Result<void> check_result_file(const std::string& path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
    const os::Fd file(::open(path.c_str(), kFlags, 0666));
    if (!file && errno != ENXIO) {  // a pipe's reader may come until the end
        return fail("--result-file: cannot open " + path + ": " + std::strerror(errno));
    }
    return {};
}

Result<void> write_result_file(const std::string& path, const wire::JobOver& over) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
    const os::Fd file(::open(path.c_str(), kFlags, 0666));
    const int error = file ? os::write_all(file.get(), result_json(over) + "\n") : errno;
    if (error != 0) {
        return fail("cannot write --result-file " + path + ": " + std::strerror(error));
    }
    return {};
}

}  // namespace ddl::run
