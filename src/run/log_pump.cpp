#include "run/log_pump.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "os/clock.hpp"
#include "os/host.hpp"
#include "run/log_files.hpp"
#include "run/worker_stream.hpp"
#include "wire/agent_message.hpp"

namespace ddl::run {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;  // what a pipe holds

bool chosen(const std::vector<plan::Streams>& ranks, int local_rank, bool err) {
    const auto index = static_cast<std::size_t>(local_rank);
    return index < ranks.size() && (err ? ranks[index].err : ranks[index].out);
}

std::string replace_all(std::string text, std::string_view macro, std::string_view value) {
    for (std::size_t at = text.find(macro); at != std::string::npos; at = text.find(macro, at + value.size())) {
        text.replace(at, macro.size(), value);
    }
    return text;
}

std::string prefix_for(const plan::LaunchPlan& plan, const plan::RankPlace& place) {
    const std::string& chosen_text = plan.logs.prefix_template;
    std::string prefix = chosen_text.empty() ? "[${role_name}${local_rank}]:" : chosen_text;
    prefix = replace_all(std::move(prefix), "${role_name}", plan.role);
    prefix = replace_all(std::move(prefix), "${local_rank}", std::to_string(place.local_rank));
    prefix = replace_all(std::move(prefix), "${rank}", std::to_string(place.rank));
    return replace_all(std::move(prefix), "${hostname}", plan.node_name.substr(0, plan.node_name.find('.')));
}

// The part of a file that was written since it had `start` bytes.
std::vector<std::string> tail_since(const std::string& path, off_t start) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || info.st_size <= start) {
        return {};
    }
    constexpr auto kMaxBytes = static_cast<off_t>(wire::kMaxStderrTailLines * wire::kMaxLineBytes);
    const auto bytes = static_cast<int>(std::min(info.st_size - start, kMaxBytes));
    const std::string text = os::tail_of_file(path, bytes, bytes);
    return last_lines(text, wire::kMaxStderrTailLines, wire::kMaxLineBytes);
}

struct Channel {
    os::Fd pipe;
    WorkerStream stream;
    const ConsoleOutput* console;       // null: shown nowhere
    std::unique_ptr<net::Watch> watch;  // none while the console is full; last: it must go before the pipe does
};

struct WorkerLogs {
    std::array<std::unique_ptr<Channel>, 2> channels;  // stdout, stderr; null: not through a pipe
    std::string stderr_file;                           // where stderr goes straight into a file
    off_t stderr_start = 0;
};

}  // namespace

struct LogPump::Impl {
    Impl(net::Loop& the_loop, const plan::LaunchPlan& the_plan, std::function<void(std::string)> the_warn,
         ConsoleOutputs the_outputs)
        : loop(the_loop),
          plan(the_plan),
          warn(std::move(the_warn)),
          outputs{&the_outputs.out, &the_outputs.err},
          consoles{ConsoleLines(the_outputs.out), ConsoleLines(the_outputs.err)},
          files(the_plan.logs.directory, the_plan.node_name),
          buffer(kReadBytes, '\0') {
        for (ConsoleOutput* output : outputs) {
            output->attach(loop, [this] { resume(); });
        }
    }
    ~Impl() {
        for (ConsoleOutput* output : outputs) {
            output->detach();
        }
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void report(StreamTrouble trouble, int error) {
        if (trouble == StreamTrouble::kConsoleGone && !std::exchange(console_reported, true)) {
            warn("the console is closed; workers' output is no longer shown there");
        }
        if (trouble == StreamTrouble::kFileFailed) {
            report_files(std::string("cannot write a log file: ") + std::strerror(error));
        }
    }

    void report_files(const std::string& why) {
        if (!std::exchange(files_reported, true)) {
            warn(why + "; the job goes on without");
        }
    }

    // An empty Fd when there is no such file to be had.
    os::Fd open_file(const plan::RankPlace& place, const char* name) {
        if (plan.logs.directory.empty() || files_unusable) {
            return {};
        }
        auto file = files.open_for_rank(place, name);
        if (!file) {
            files_unusable = true;
            report_files(file.error().message);
            return {};
        }
        return std::move(*file);
    }

    std::shared_ptr<LineFilter> filter_for(const plan::RankPlace& place, bool err) {
        const auto& needles = err ? plan.logs.stderr_filters : plan.logs.stdout_filters;
        if (needles.empty() || plan.logs.directory.empty() || files_unusable) {
            return nullptr;
        }
        std::shared_ptr<LineFilter>& filter = filters[err ? 1 : 0];
        if (!filter) {
            auto file = files.open_for_node(place, err ? "filtered_stderr.log" : "filtered_stdout.log");
            if (!file) {
                report_files(file.error().message);
                return nullptr;
            }
            filter = std::make_shared<LineFilter>(LineFilter{std::move(*file), needles});
        }
        return filter;
    }

    // The descriptor for the worker; an empty one: inherited.
    Result<os::Fd> open_stream(const plan::RankPlace& place, bool err, WorkerLogs& logs) {
        const auto index = static_cast<std::size_t>(place.local_rank);
        const bool shown = index >= plan.logs.on_console.size() || plan.logs.on_console[index];
        const bool tee = chosen(plan.logs.tees, place.local_rank, err);
        const bool wants_file = tee || chosen(plan.logs.redirects, place.local_rank, err);
        const char* const name = err ? "stderr.log" : "stdout.log";
        os::Fd file = wants_file ? open_file(place, name) : os::Fd();
        if (file && !(tee && shown)) {
            if (err) {
                logs.stderr_file = files.rank_directory(place) + "/" + name;
                logs.stderr_start = ::lseek(file.get(), 0, SEEK_END);
            }
            return file;
        }
        if (!err && !tee) {
            return shown ? os::Fd() : os::Fd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        }
        StreamTargets targets;
        targets.number = 2 * place.local_rank + (err ? 1 : 0);
        targets.console = shown ? &consoles[err ? 1 : 0] : nullptr;
        targets.prefix = tee ? prefix_for(plan, place) : "";
        targets.file = std::move(file);
        targets.filter = tee && shown ? filter_for(place, err) : nullptr;
        targets.keep_tail = err;
        return open_pipe(std::move(targets), shown ? outputs[err ? 1 : 0] : nullptr, logs.channels[err ? 1 : 0]);
    }

    Result<os::Fd> open_pipe(StreamTargets targets, const ConsoleOutput* console, std::unique_ptr<Channel>& channel) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
            return fail(std::string("pipe for a worker's output: ") + std::strerror(errno) +
                        "; raise the limit on open files (ulimit -n)");
        }
        os::Fd write_end(ends[1]);
        ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
        channel = std::make_unique<Channel>(Channel{
            os::Fd(ends[0]),
            WorkerStream(std::move(targets), [this](StreamTrouble trouble, int error) { report(trouble, error); }),
            console, nullptr});
        watch(channel);
        return write_end;
    }

    void watch(std::unique_ptr<Channel>& channel) {
        channel->watch = loop.watch_readable(channel->pipe.get(), [this, place = &channel] {
            const ConsoleOutput* const console = (*place)->console;
            if (console != nullptr && console->full()) {
                (*place)->watch.reset();  // until resume()
            } else {
                read(*place, kReadBytes);
            }
        });
    }

    void resume() {
        for (auto& [local_rank, worker] : workers) {
            for (std::unique_ptr<Channel>& channel : worker.channels) {
                if (channel && channel->pipe && !channel->watch) {
                    watch(channel);
                }
            }
        }
    }

    // Returns how many bytes were there; at the pipe's end the channel's descriptor is closed.
    std::size_t read(std::unique_ptr<Channel>& channel, std::size_t limit) {
        if (!channel || !channel->pipe) {
            return 0;
        }
        const ssize_t count = ::read(channel->pipe.get(), buffer.data(), std::min(limit, buffer.size()));
        if (count > 0) {
            const bool armed = channel->stream.flush_at().has_value();
            const auto size = static_cast<std::size_t>(count);
            channel->stream.feed(std::string_view(buffer).substr(0, size), os::now());
            if (!armed && channel->stream.flush_at() && earlier) {
                earlier();
            }
            return size;
        }
        if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            channel->stream.flush();
            channel->watch.reset();
            channel->pipe.reset();
        }
        return 0;
    }

    // What was in the pipe when we came: all that the ended worker wrote, whatever others add meanwhile.
    void drain(std::unique_ptr<Channel>& channel) {
        int waiting = 0;
        if (!channel || !channel->pipe) {
            return;
        }
        ::ioctl(channel->pipe.get(), FIONREAD, &waiting);
        for (auto left = static_cast<std::size_t>(waiting); left > 0;) {
            const std::size_t count = read(channel, left);
            if (count == 0) {
                break;
            }
            left -= count;
        }
        channel->stream.flush();
    }

    net::Loop& loop;
    const plan::LaunchPlan& plan;
    std::function<void(std::string)> warn;
    std::function<void()> earlier;
    std::array<ConsoleOutput*, 2> outputs;  // stdout, stderr
    std::array<ConsoleLines, 2> consoles;
    LogFiles files;
    bool files_unusable = false;
    bool files_reported = false;
    bool console_reported = false;
    std::array<std::shared_ptr<LineFilter>, 2> filters;
    std::map<int, WorkerLogs> workers;  // by local rank; its nodes stay where they are
    std::string buffer;
};

LogPump::LogPump(net::Loop& loop, const plan::LaunchPlan& plan, std::function<void(std::string)> warn,
                 ConsoleOutputs console)
    : impl_(std::make_unique<Impl>(loop, plan, std::move(warn), console)) {
}

LogPump::~LogPump() = default;

void LogPump::keep_error_files_in(std::string private_directory) {
    impl_->files.use_private_directory(std::move(private_directory));
}

Result<WorkerStreams> LogPump::open(const plan::RankPlace& place) {
    drain(place.local_rank);  // of the process that had this place before
    WorkerLogs& logs = impl_->workers[place.local_rank];
    logs.channels = {};
    logs.stderr_file.clear();
    WorkerStreams streams;
    for (const bool err : {false, true}) {
        auto fd = impl_->open_stream(place, err, logs);
        if (!fd) {
            return tl::unexpected(fd.error());
        }
        (err ? streams.err : streams.out) = std::move(*fd);
    }
    const bool has_directory = !impl_->plan.logs.directory.empty() && !impl_->files_unusable &&
                               (chosen(impl_->plan.logs.redirects, place.local_rank, false) ||
                                chosen(impl_->plan.logs.redirects, place.local_rank, true) ||
                                chosen(impl_->plan.logs.tees, place.local_rank, false) ||
                                chosen(impl_->plan.logs.tees, place.local_rank, true));
    auto error_file = impl_->files.error_file(place, has_directory);
    if (!error_file) {
        impl_->report_files(error_file.error().message);
    }
    streams.error_file = error_file.value_or("");
    return streams;
}

void LogPump::drain(int local_rank) {
    if (const auto worker = impl_->workers.find(local_rank); worker != impl_->workers.end()) {
        for (std::unique_ptr<Channel>& channel : worker->second.channels) {
            impl_->drain(channel);
        }
    }
}

std::vector<std::string> LogPump::stderr_tail(int local_rank) const {
    const auto worker = impl_->workers.find(local_rank);
    if (worker == impl_->workers.end()) {
        return {};
    }
    const WorkerLogs& logs = worker->second;
    if (!logs.stderr_file.empty()) {
        return tail_since(logs.stderr_file, logs.stderr_start);
    }
    return logs.channels[1] ? logs.channels[1]->stream.tail() : std::vector<std::string>{};
}

std::optional<Instant> LogPump::next_deadline() const {
    std::optional<Instant> next;
    for (const auto& [local_rank, worker] : impl_->workers) {
        for (const std::unique_ptr<Channel>& channel : worker.channels) {
            const auto flush_at = channel ? channel->stream.flush_at() : std::nullopt;
            if (flush_at && (!next || *flush_at < *next)) {
                next = flush_at;
            }
        }
    }
    return next;
}

void LogPump::tick(Instant now) {
    for (auto& [local_rank, worker] : impl_->workers) {
        for (std::unique_ptr<Channel>& channel : worker.channels) {
            if (channel && channel->stream.flush_at() && *channel->stream.flush_at() <= now) {
                channel->stream.flush();
            }
        }
    }
}

void LogPump::when_deadline_is_earlier(std::function<void()> earlier) {
    impl_->earlier = std::move(earlier);
}

void LogPump::end_line() {
    for (ConsoleLines& console : impl_->consoles) {
        console.end_line();
    }
}

void LogPump::close_round() {
    for (auto& [local_rank, worker] : impl_->workers) {
        drain(local_rank);
    }
    impl_->workers.clear();
    impl_->filters = {};
}

void LogPump::close() {
    close_round();
    impl_->files.remove_private_directory();
}

}  // namespace ddl::run
