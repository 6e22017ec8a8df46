// Processes as /proc shows them. Used by family, guard and process only.
//
// Everything here races with the processes it looks at: one that vanishes in the middle is simply not in the result,
// and what cannot be read (another user's environment) counts as empty. Nothing here signals or reaps.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::os {

struct ProcessFacts {
    pid_t pid = -1;
    pid_t parent = -1;
    pid_t session = -1;
    char state = '?';
    std::uint64_t start_ticks = 0;  // since boot; with the pid it names one process for good
    std::string command;

    // False in the middle of an exec (the environment looks empty then), while ending, and for others' processes.
    bool has_image = false;
    // Ended and not reaped yet. A leader whose other threads go on running is shown as Z too, but is not meant.
    bool ended = false;
    // Its main thread is on its way out. If all others are, too, signals no longer reach it and its descriptors may be
    // closed already.
    bool exiting = false;
};

// The text of /proc/<pid>/stat. The command may hold blanks and parentheses.
[[nodiscard]] std::optional<ProcessFacts> parse_stat(std::string_view text);
[[nodiscard]] std::optional<ProcessFacts> read_process(pid_t pid);
[[nodiscard]] std::vector<ProcessFacts> all_processes();
[[nodiscard]] bool all_threads_are_exiting(pid_t pid);

[[nodiscard]] std::vector<pid_t> children_of(pid_t pid);
// All below `pid`, but not below the pids in `spared`, which are left out themselves.
[[nodiscard]] std::vector<ProcessFacts> descendants_of(pid_t pid, const std::vector<pid_t>& spared);

// The serial in an environment block (NAME=VALUE, each ended by NUL) that has the spawn id of this very nonce.
[[nodiscard]] std::optional<int> spawn_serial(std::string_view environment, std::string_view nonce);
// nullopt when it may not be read, or the process is gone.
[[nodiscard]] std::optional<std::string> read_environment(pid_t pid);
// The same, but an exec that is under way is waited for (bounded); empty when there is nothing to read.
[[nodiscard]] std::string settled_environment(pid_t pid);
[[nodiscard]] std::string read_wait_channel(pid_t pid);

}  // namespace ddl::os
