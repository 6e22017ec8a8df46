// Workers' output: files, prefixed console lines, and the last stderr lines for the report.
//
// Default (neither -r nor -t): stdout is the agent's own, inherited; stderr goes through a pipe so that the tail can be
// kept, and comes out unchanged, whole lines at a time (an unfinished line after 100 ms of silence or at a CR). -r:
// straight into a file. -t: pipe, file and console with prefix. A rank that --local-ranks-filter leaves out keeps its
// files and its tail, and has no console. Without a (usable) log directory the console gets what files would have got.
// Owned by Driver, which must ignore SIGPIPE. Pipes are read by the loop as they become readable, never polled. The
// console is written as soon as a line is whole. While it does not take what is there, the pipes that feed it are not
// read: the workers wait, as they would with the console itself, and the loop does not. A closed one (EPIPE) is dropped
// with one warning.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/loop.hpp"
#include "os/fd.hpp"
#include "plan/launch_plan.hpp"
#include "run/console_output.hpp"

namespace ddl::run {

// What a worker's descriptors 1 and 2 should be; -1 means inherited. Close after the spawn (RAII).
struct WorkerStreams {
    os::Fd out;
    os::Fd err;
    std::string error_file;  // path for TORCHELASTIC_ERROR_FILE
};

class LogPump {
public:
    // `warn` gets one line for each kind of trouble that the job survives (log files, console), once per pump.
    LogPump(net::Loop& loop, const plan::LaunchPlan& plan, std::function<void(std::string)> warn,
            ConsoleOutputs console);
    ~LogPump();

    // Where error files of workers without a log directory are to lie, as the guard knows it too. Before open().
    void keep_error_files_in(std::string private_directory);

    // Opens files and pipes for one worker of a round. Trouble with log files is a warning; an error is lack of pipes.
    [[nodiscard]] Result<WorkerStreams> open(const plan::RankPlace& place);

    // Reads what the worker has written (it has ended), without blocking, and puts out an unfinished last line;
    // grandchildren may keep the pipe open and go on writing.
    void drain(int local_rank);

    // The last lines of a worker's stderr, at most wire::kMaxStderrTailLines.
    [[nodiscard]] std::vector<std::string> stderr_tail(int local_rank) const;

    // When unfinished lines that have been quiet for 100 ms are to be put out by tick(). The caller re-arms its alarm
    // when `earlier` runs, which is when such a time has come up between two of its own turns.
    [[nodiscard]] std::optional<Instant> next_deadline() const;
    void tick(Instant now);
    void when_deadline_is_earlier(std::function<void()> earlier);

    // Ends an unfinished line on the console, before the launcher writes a line of its own.
    void end_line();

    // Ends the round: drains, flushes partial lines, closes all pipes and files.
    void close_round();

    // The job is over: also removes the error files that nobody asked to keep.
    void close();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ddl::run
