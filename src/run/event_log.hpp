// --events FILE: one JSON line per event with a monotonic stamp, for tests, benchmarks and operators.
//
// Owned by run::Driver. Several agents may append to one file: each line is a single write. A disk that fills up loses
// events, never the job.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "os/fd.hpp"

namespace ddl::run {

class EventLog {
public:
    EventLog() = default;  // writes nothing
    // Appends. `node`: the value of that field; empty: the host's name.
    [[nodiscard]] static Result<EventLog> open(const std::string& path, std::string node = {});

    // {"event": name, "t_ns": CLOCK_BOOTTIME, "node": …, numbers…, texts…}, written with one write().
    void write(const std::string& name, const std::vector<std::pair<std::string, std::int64_t>>& numbers,
               const std::vector<std::pair<std::string, std::string>>& texts = {});

private:
    os::Fd file_;
    std::string node_;
};

}  // namespace ddl::run
