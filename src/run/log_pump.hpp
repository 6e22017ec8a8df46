// Workers' output: files, prefixed console lines, and the last stderr lines for the report.
//
// Default (neither -r nor -t): stdout is the agent's own, inherited; stderr goes through a pipe so that the tail can be
// kept, and comes out unchanged, whole lines at a time (an unfinished line after 100 ms of silence or at a CR). -r:
// straight into a file. -t: pipe, file and console with prefix. Pipes are read by the loop as they become readable,
// never polled. The console is written as soon as a line is whole; a console that blocks does not block the loop for
// ever: it is set up by the caller, and a closed one (EPIPE) is dropped with one warning.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/loop.hpp"
#include "os/fd.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::run {

// What a worker's descriptors 1 and 2 should be; -1 means inherited. Close after the spawn (RAII).
struct WorkerStreams {
    os::Fd out;
    os::Fd err;
    std::string error_file;  // path for TORCHELASTIC_ERROR_FILE
};

class LogPump {
public:
    LogPump(net::Loop& loop, const plan::LaunchPlan& plan, std::function<void(std::string)> warn);
    ~LogPump();

    // Opens files and pipes for one worker of a round.
    [[nodiscard]] Result<WorkerStreams> open(const plan::RankPlace& place);

    // Reads what is left without blocking (the worker has ended); grandchildren may keep the pipe open.
    void drain(int local_rank);

    // The last lines of a worker's stderr, at most wire::kMaxStderrTailLines.
    [[nodiscard]] std::vector<std::string> stderr_tail(int local_rank) const;

    // Ends the round: drains, flushes partial lines, closes all pipes and files.
    void close_round();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ddl::run
