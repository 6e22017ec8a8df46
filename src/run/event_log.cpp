#include "run/event_log.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "os/clock.hpp"
#include "os/host.hpp"

namespace ddl::run {

Result<EventLog> EventLog::open(const std::string& path, std::string node) {
    EventLog log;
    // A pipe without a reader, or with a slow one, must not hold the job up.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
    log.file_.reset(::open(path.c_str(), kFlags, 0666));
    if (!log.file_) {
        return fail("--events: cannot open " + path + ": " + std::strerror(errno));
    }
    log.node_ = node.empty() ? os::host_name() : std::move(node);
    return log;
}

void EventLog::write(const std::string& name, const std::vector<std::pair<std::string, std::int64_t>>& numbers,
                     const std::vector<std::pair<std::string, std::string>>& texts) {
    if (!file_) {
        return;
    }
    nlohmann::ordered_json line{{"event", name}, {"t_ns", os::now().time_since_epoch().count()}, {"node", node_}};
    for (const auto& [key, number] : numbers) {
        line[key] = number;
    }
    for (const auto& [key, text] : texts) {
        line[key] = text;
    }
    const std::string bytes = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    while (::write(file_.get(), bytes.data(), bytes.size()) < 0 && errno == EINTR) {
    }
}

}  // namespace ddl::run
