// Where workers' log files and error files lie.
//
//   <log_dir>/<job id>/generation_<g>/<node>/<local rank>/{stdout.log,stderr.log,error.json}
//   <log_dir>/<job id>/generation_<g>/<node>/filtered_{stdout,stderr}.log
//
// <node> is "<group rank>-<host name>": two nodes of one name that share a directory stay apart.
//
// Owned by LogPump. Directories are made when the first file in them is opened, never before; files are appended to,
// so a second run with the same job id loses nothing. Error files of workers without a log directory lie in a private
// directory under $TMPDIR, else in memory, which is made when first needed and removed in the end (by the guard of an
// agent that was killed).
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/fd.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::run {

// Absolute path of the private directory of the agent with that nonce, made or not.
[[nodiscard]] std::string private_directory_path(const std::string& nonce);

class LogFiles {
public:
    LogFiles(std::string directory, std::string node_name);
    LogFiles(const LogFiles&) = delete;
    LogFiles& operator=(const LogFiles&) = delete;
    ~LogFiles() {
        remove_private_directory();
    }

    // Before the first error_file(); `path` must not exist yet. Without this the directory has a name of its own.
    void use_private_directory(std::string path) {
        private_directory_ = std::move(path);
    }

    // `name`: "stdout.log", … ; the error says which path and why.
    [[nodiscard]] Result<os::Fd> open_for_rank(const plan::RankPlace& place, std::string_view name) const;
    [[nodiscard]] Result<os::Fd> open_for_node(const plan::RankPlace& place, std::string_view name) const;

    [[nodiscard]] std::string node_directory(const plan::RankPlace& place) const;
    [[nodiscard]] std::string rank_directory(const plan::RankPlace& place) const;

    // Removes what an earlier attempt left at that path.
    [[nodiscard]] Result<std::string> error_file(const plan::RankPlace& place, bool in_log_directory);

    void remove_private_directory();

private:
    [[nodiscard]] Result<std::string> private_directory();

    std::string directory_;
    std::string node_name_;
    std::string private_directory_;
    bool private_directory_made_ = false;
};

}  // namespace ddl::run
