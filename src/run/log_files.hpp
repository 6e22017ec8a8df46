// Where workers' log files and error files lie.
//
//   <log_dir>/<job id>/generation_<g>/<node name>/<local rank>/{stdout.log,stderr.log,error.json}
//   <log_dir>/<job id>/generation_<g>/<node name>/filtered_{stdout,stderr}.log
//
// Owned by LogPump. Directories are made when the first file in them is opened, never before; files are appended to,
// so a second run with the same job id loses nothing. Error files of workers without a log directory lie in a private
// directory under $TMPDIR, which is made when first needed and removed in the end.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/fd.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::run {

// A job id or node name as one component of a path: harmless characters, at most 100 bytes; different names stay
// different, since what was changed carries a digest of the original.
[[nodiscard]] std::string path_component(std::string_view name);

class LogFiles {
public:
    LogFiles(std::string directory, std::string node_name)
        : directory_(std::move(directory)), node_name_(std::move(node_name)) {
    }
    LogFiles(const LogFiles&) = delete;
    LogFiles& operator=(const LogFiles&) = delete;
    ~LogFiles();  // removes the private directory

    // `name`: "stdout.log", … ; the error says which path and why.
    [[nodiscard]] Result<os::Fd> open_for_rank(const plan::RankPlace& place, std::string_view name) const;
    [[nodiscard]] Result<os::Fd> open_for_node(const plan::RankPlace& place, std::string_view name) const;

    [[nodiscard]] std::string node_directory(const plan::RankPlace& place) const;
    [[nodiscard]] std::string rank_directory(const plan::RankPlace& place) const;

    // Removes what an earlier attempt left at that path.
    [[nodiscard]] Result<std::string> error_file(const plan::RankPlace& place, bool in_log_directory);

private:
    [[nodiscard]] Result<std::string> private_directory();

    std::string directory_;
    std::string node_name_;
    std::string private_directory_;
};

}  // namespace ddl::run
