#include "run/launch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/text.hpp"
#include "core/restart_policy.hpp"
#include "net/address.hpp"
#include "net/bare_store.hpp"
#include "os/host.hpp"
#include "os/inherited.hpp"
#include "os/process.hpp"
#include "plan/make_plan.hpp"
#include "run/driver.hpp"
#include "run/log_files.hpp"
#include "run/program_version.hpp"
#include "run/result_file.hpp"

namespace ddl::run {
namespace {

constexpr int kNonceBytes = 8;
constexpr auto kVersionLimit = std::chrono::seconds(5);  // a Python on a slow file server

plan::FileFacts probe(const std::string& path) {
    plan::FileFacts facts;
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return facts;
    }
    facts.exists = true;
    facts.is_directory = S_ISDIR(info.st_mode);
    facts.executable = ::access(path.c_str(), X_OK) == 0;
    const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    char bytes[4];
    const ssize_t got = file ? ::read(file.get(), bytes, sizeof bytes) : 0;
    facts.first_bytes.assign(bytes, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return facts;
}

// An unknown list of interfaces is nobody's mistake: then every address may be ours.
bool owns_address(const std::string& address) {
    const std::vector<std::string> own = os::interface_addresses();
    const auto set = net::AddressSet::parse(own);
    return own.empty() || !set || set->contains(plain_address(address));
}

// A hangup that is ignored from the start stays ignored: that is what nohup is for.
// TERM and INT always end the job in order, whatever --signals-to-handle leaves out.
std::vector<int> handled_signals(const plan::LaunchPlan& plan) {
    std::vector<int> signals = plan.supervision.signals;
    if (os::is_ignored(SIGHUP)) {
        std::erase(signals, SIGHUP);
    }
    signals.insert(signals.end(), {SIGTERM, SIGINT, SIGCHLD});
    signals.insert(signals.end(), plan.supervision.forward_signals.begin(), plan.supervision.forward_signals.end());
    std::sort(signals.begin(), signals.end());
    signals.erase(std::unique(signals.begin(), signals.end()), signals.end());
    return signals;
}

// What cannot be written is said before anything starts: after hours of training it is too late.
Result<EventLog> open_outputs(const plan::LaunchPlan& plan) {
    if (!plan.result_file.empty()) {
        if (const auto writable = check_result_file(plan.result_file); !writable) {
            return tl::unexpected(writable.error());
        }
    }
    return plan.events_file.empty() ? EventLog() : EventLog::open(plan.events_file, plan.node_name);
}

Result<DriverParts> prepare(const plan::LaunchPlan& plan, EventLog events) {
    ::signal(SIGPIPE, SIG_IGN);
    const std::string nonce = os::random_hex(kNonceBytes);
    auto signals = os::SignalSource::open(handled_signals(plan));
    if (!signals) {
        return tl::unexpected(signals.error());
    }
    // A job of one node does without: births into a group copy page tables, a tenth of its whole start-up time.
    auto cgroup = plan.loopback_only ? std::nullopt : os::WorkerCgroup::create(nonce);
    os::Estate estate{nonce, cgroup ? cgroup->path() : "", private_directory_path(nonce)};
    auto guard = os::Guard::start(estate);
    if (!guard) {
        return tl::unexpected(guard.error());
    }
    if (auto subreaper = os::become_subreaper(); !subreaper) {
        return tl::unexpected(subreaper.error());
    }
    return DriverParts{std::move(cgroup), std::move(*signals), std::move(*guard), std::move(estate), std::move(events)};
}

}  // namespace

plan::HostFacts host_facts(const std::string& invoked_as) {
    plan::HostFacts facts;
    facts.host_name = os::host_name();
    facts.user_id = ::getuid();
    facts.cpus = os::usable_cpus();
    facts.gpus = os::visible_gpus();
    facts.stdin_is_terminal = ::isatty(STDIN_FILENO) == 1;
    facts.environment = os::environment();
    facts.invoked_as = invoked_as;
    facts.fresh_id = os::random_hex(kNonceBytes);
    facts.probe = probe;
    facts.owns_address = owns_address;
    facts.version_of = [](const std::string& path) {
        return version_of_program(path, kVersionLimit);
    };
    return facts;
}

int launch(const plan::LaunchPlan& plan) {
    ConsoleOutput out(STDOUT_FILENO);
    ConsoleOutput err(STDERR_FILENO);
    const ConsoleOutputs outputs{out, err};
    Console console(plan.node_name, plan.quiet, err);
    if (plan.rendezvous.kind == plan::Rendezvous::kEtcd) {
        console.error(
            "--rdzv-backend etcd: this build holds no elections in etcd; use c10d, with several endpoints "
            "(--rdzv-endpoint h0,h1,h2) if any of them may be lost");
        drain(outputs);
        return plan::kUsageError;
    }
    Result<EventLog> events = open_outputs(plan);
    if (!events) {
        console.error(events.error().message);
        drain(outputs);
        return plan::kUsageError;
    }
    Result<DriverParts> parts = prepare(plan, std::move(*events));
    if (!parts) {
        console.error(parts.error().message);
        drain(outputs);
        return core::kExitInternal;
    }
    for (const std::string& note : plan.notes) {
        console.note(note);
    }
    return Driver(plan, std::move(*parts), console, outputs).run();
}

Result<void> serve_store(const BareStore& store) {
    static_cast<void>(os::raise_descriptor_limit());
    net::BareStoreOptions options;
    options.reach = store.everywhere ? net::Reach::kEverywhere : net::Reach::kLoopback;
    options.port = store.port;
    options.compat = store.compat;
    options.allow = {store.allow.empty(), store.allow};
    options.listening = [](const std::string& line) {
        std::printf("%s\n", line.c_str());
        std::fflush(stdout);
    };
    options.warn = [](const std::string& line) {
        std::fprintf(stderr, "ddlaunch: %s\n", line.c_str());
    };
    return net::run_bare_store(std::move(options));
}

}  // namespace ddl::run
