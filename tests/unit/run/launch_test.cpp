// Whole jobs of one node, from the plan to the exit code, each in a process of its own.
#include "run/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "plan/make_plan.hpp"
#include "unit/net/support.hpp"
#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

using plan::Flag;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kLimitMilliseconds = 20'000;

// A forked copy of this process that does one thing and exits with its result; its output goes to files.
class Process {
public:
    Process(const testing::ScratchDirectory& scratch, const std::function<int()>& body)
        : out_(scratch / "out"), err_(scratch / "err"), pid_(fork_flushed()) {
        if (pid_ == 0) {
            ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
            ::dup2(::open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
            ::dup2(::open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
            ::_exit(body());
        }
        pidfd_ = os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0U)));
    }
    ~Process() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
    }

    void signal(int number) const {
        ::kill(pid_, number);
    }
    // -1: not in time; 128 + n: killed by a signal.
    int wait() {
        pollfd ended{pidfd_.get(), POLLIN, 0};
        int status = 0;
        if (::poll(&ended, 1, kLimitMilliseconds) != 1 || ::waitpid(pid_, &status, 0) != pid_) {
            return -1;
        }
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    [[nodiscard]] std::string out() const {
        return testing::content_of(out_);
    }
    [[nodiscard]] std::string err() const {
        return testing::content_of(err_);
    }

private:
    // What stdio holds would come out of both processes.
    static pid_t fork_flushed() {
        std::fflush(nullptr);
        return ::fork();
    }

    std::string out_;
    std::string err_;
    pid_t pid_;
    os::Fd pidfd_;
};

class Launch : public ::testing::Test {
protected:
    struct Given {
        Flag flag;
        std::string text;
    };

    // `script` is what each worker's shell runs.
    std::unique_ptr<Process> job(const std::string& script, const std::vector<Given>& given = {}) {
        plan::Requested requested;
        requested.set(Flag::kNoPython, {"1", "--no-python", true});
        for (const Given& one : given) {
            requested.set(one.flag, {one.text, plan::spelling(one.flag), true});
        }
        requested.program = {"/bin/bash", "-c", script};
        return std::make_unique<Process>(scratch_, [requested] {
            const Result<plan::LaunchPlan> plan = plan::make_plan(requested, host_facts("ddlaunch"));
            return plan ? launch(*plan) : 250;
        });
    }
    nlohmann::json result() const {
        return nlohmann::json::parse(testing::content_of(scratch_ / "result"), nullptr, false);
    }
    // Until a worker has written the file.
    bool appears(const std::string& name) const {
        net::Loop loop;
        return net::test::run_until(loop, [&] { return !testing::content_of(scratch_ / name).empty(); });
    }

    testing::ScratchDirectory scratch_;
};

TEST_F(Launch, SuccessIsQuiet) {
    const auto process = job("echo from $RANK of $WORLD_SIZE",
                             {{Flag::kNprocPerNode, "2"}, {Flag::kOmp, "1"}, {Flag::kResultFile, scratch_ / "result"}});
    EXPECT_EQ(process->wait(), 0);
    EXPECT_THAT(process->out(), HasSubstr("from 0 of 2\n"));
    EXPECT_THAT(process->out(), HasSubstr("from 1 of 2\n"));
    EXPECT_EQ(process->err(), "");
    EXPECT_EQ(result()["exit_code"], 0);
    EXPECT_EQ(result()["origin"], "success");
}

TEST_F(Launch, AWorkersExitCodeIsTheJobs) {
    const auto process = job("[ $RANK = 1 ] || exec sleep 60; echo no weights >&2; exit 7",
                             {{Flag::kNprocPerNode, "2"}, {Flag::kResultFile, scratch_ / "result"}});
    EXPECT_EQ(process->wait(), 7);
    EXPECT_THAT(process->err(), HasSubstr("first failure: rank 1 on "));
    EXPECT_THAT(process->err(), HasSubstr("    no weights\n"));
    EXPECT_THAT(process->err(), HasSubstr("ddlaunch: exit code 7: from rank 1 on "));
    EXPECT_THAT(process->err(), Not(HasSubstr("rank 0 on"))) << "it was stopped, which is no failure";
    ASSERT_EQ(result()["deaths"].size(), 1U);
    EXPECT_EQ(result()["deaths"][0]["rank"], 1);
    EXPECT_EQ(result()["deaths"][0]["stderr_tail"], nlohmann::json::array({"no weights"}));
}

TEST_F(Launch, ASignalBecomes128AndItsNumber) {
    const auto process = job("kill -KILL $$");
    EXPECT_EQ(process->wait(), 137);
    EXPECT_THAT(process->err(), HasSubstr("was killed by SIGKILL"));
    EXPECT_THAT(process->err(), HasSubstr("hint: nobody inside the job sends SIGKILL"));
}

TEST_F(Launch, AFailureIsRestartedWhileTheBudgetLasts) {
    const std::string script = "echo $DDLAUNCH_GENERATION:$TORCHELASTIC_RESTART_COUNT:$MASTER_PORT >> " +
                               (scratch_ / "rounds") + "; [ $TORCHELASTIC_RESTART_COUNT = 2 ]";
    const auto process = job(
        script, {{Flag::kMaxRestarts, "2"}, {Flag::kCrashLoopWindow, "0"}, {Flag::kResultFile, scratch_ / "result"}});
    EXPECT_EQ(process->wait(), 0);
    EXPECT_THAT(process->err(), HasSubstr("restart 1 of 2"));
    EXPECT_THAT(process->err(), HasSubstr("restart 2 of 2"));
    EXPECT_EQ(result()["restart_count"], 2);
    std::istringstream rounds(testing::content_of(scratch_ / "rounds"));
    std::set<std::string> ports;
    int number = 0;
    for (std::string line; std::getline(rounds, line); ++number) {
        EXPECT_EQ(line.substr(0, 4), std::to_string(number + 1) + ":" + std::to_string(number) + ":");
        EXPECT_TRUE(ports.insert(line.substr(4)).second) << "a port is for one round";
    }
    EXPECT_EQ(number, 3);
}

TEST_F(Launch, ABudgetThatIsUsedUpEndsTheJob) {
    const auto process = job("echo x >> " + (scratch_ / "rounds") + "; exit 9", {{Flag::kMaxRestarts, "1"}});
    EXPECT_EQ(process->wait(), 9);
    EXPECT_EQ(testing::content_of(scratch_ / "rounds"), "x\nx\n");
}

TEST_F(Launch, AClassOfExitCodesIsForSchedulers) {
    const auto process = job("exit 9", {{Flag::kExitCode, "class"}, {Flag::kResultFile, scratch_ / "result"}});
    EXPECT_EQ(process->wait(), 67);
    EXPECT_EQ(result()["exit_code"], 9) << "the file still has the exact one";
}

TEST_F(Launch, AProgramThatCannotBeStartedIsSaid) {
    std::ofstream(scratch_ / "empty") << "no program at all\n";
    ::chmod((scratch_ / "empty").c_str(), 0755);
    plan::Requested requested;
    requested.set(Flag::kNoPython, {"1", "--no-python", true});
    requested.program = {scratch_ / "empty"};
    Process process(scratch_, [requested] {
        const Result<plan::LaunchPlan> plan = plan::make_plan(requested, host_facts("ddlaunch"));
        return plan ? launch(*plan) : 250;
    });
    EXPECT_NE(process.wait(), 0);
    EXPECT_THAT(process.err(), HasSubstr("could not be started: exec " + (scratch_ / "empty") + ": Exec format error"));
}

TEST_F(Launch, ATermEndsTheJobWithItsGrace) {
    const std::string script = "trap 'echo saved > " + (scratch_ / "saved") + "; exit 0' TERM; echo up > " +
                               (scratch_ / "up") + "; while :; do sleep 0.01; done";
    const auto process = job(script, {{Flag::kResultFile, scratch_ / "result"}});
    ASSERT_TRUE(appears("up"));
    process->signal(SIGTERM);
    EXPECT_EQ(process->wait(), 66);
    EXPECT_EQ(testing::content_of(scratch_ / "saved"), "saved\n");
    EXPECT_EQ(result()["origin"], "launcher");
    EXPECT_TRUE(result()["deaths"].empty());
}

TEST_F(Launch, OneThatIgnoresTermIsKilledAfterItsGrace) {
    const auto process = job("trap '' TERM; echo up > " + (scratch_ / "up") + "; while :; do sleep 0.01; done",
                             {{Flag::kShutdownTimeout, "0.1"}});
    ASSERT_TRUE(appears("up"));
    process->signal(SIGTERM);
    EXPECT_EQ(process->wait(), 66);
}

TEST_F(Launch, TheStoreIsServedWhereTheEnvironmentSays) {
    // The handshake, then "how many keys": eight bytes of nought come back.
    const auto process =
        job("exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT && printf '\\x00\\xce\\xf7\\x85\\x3c\\x07' >&3 && "
            "[ \"$(head -c 8 <&3 | od -An -tx1 | tr -d ' \\n')\" = 0000000000000000 ]");
    EXPECT_EQ(process->wait(), 0) << process->err();
}

TEST_F(Launch, WorkersMayServeItThemselves) {
    const auto process =
        job("! (exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT) 2>/dev/null && [ $TORCHELASTIC_USE_AGENT_STORE = False ]",
            {{Flag::kWorkerStore, "worker"}});
    EXPECT_EQ(process->wait(), 0) << process->err();
}

TEST_F(Launch, EventsTellTheStoryInOrder) {
    const auto process = job("exit 0", {{Flag::kEvents, scratch_ / "events"}});
    EXPECT_EQ(process->wait(), 0);
    std::vector<std::string> names;
    std::istringstream lines(testing::content_of(scratch_ / "events"));
    for (std::string line; std::getline(lines, line);) {
        names.push_back(nlohmann::json::parse(line)["event"]);
    }
    EXPECT_THAT(names, ::testing::IsSupersetOf({"round", "worker_exec", "worker_reaped", "job_over"}));
    EXPECT_EQ(names.back(), "job_over");
}

TEST_F(Launch, AFileThatCannotBeWrittenIsSaidBeforeAnythingStarts) {
    for (const Flag flag : {Flag::kEvents, Flag::kResultFile}) {
        const auto process = job("echo ran", {{flag, scratch_ / "no/such/folder"}});
        EXPECT_EQ(process->wait(), 2);
        EXPECT_EQ(process->out(), "");
        const std::string reason = ": cannot open " + (scratch_ / "no/such/folder") + ": No such file or directory\n";
        EXPECT_THAT(process->err(), HasSubstr(plan::spelling(flag) + reason));
    }
}

TEST_F(Launch, AResultFileThatFailsInTheEndIsAWarning) {
    const auto process = job("exit 0", {{Flag::kResultFile, "/dev/full"}});
    EXPECT_EQ(process->wait(), 0);
    EXPECT_THAT(process->err(), HasSubstr("warning: cannot write --result-file /dev/full: No space left on device"));
}

TEST_F(Launch, LogsGoWhereTheyShould) {
    const auto process = job("echo to out; echo to err >&2",
                             {{Flag::kLogDir, scratch_ / "logs"}, {Flag::kRedirects, "1"}, {Flag::kRdzvId, "j"}});
    EXPECT_EQ(process->wait(), 0);
    EXPECT_EQ(process->out(), "");
    EXPECT_EQ(process->err(), "to err\n");
    const std::string folder = scratch_ / ("logs/j/generation_1/0-" + host_facts("").host_name + "/0/");
    EXPECT_EQ(testing::content_of(folder + "stdout.log"), "to out\n");
}

TEST_F(Launch, TheConsoleHasPrefixesOfThoseThatMayReachIt) {
    const auto process = job("echo hello from $RANK", {{Flag::kNprocPerNode, "3"},
                                                       {Flag::kOmp, "1"},
                                                       {Flag::kTee, "3"},
                                                       {Flag::kLogDir, scratch_ / "logs"},
                                                       {Flag::kRole, "actor"},
                                                       {Flag::kLocalRanksFilter, "0,2"}});
    EXPECT_EQ(process->wait(), 0);
    EXPECT_THAT(process->out(), HasSubstr("[actor0]:hello from 0\n"));
    EXPECT_THAT(process->out(), HasSubstr("[actor2]:hello from 2\n"));
    EXPECT_THAT(process->out(), Not(HasSubstr("from 1")));
}

TEST_F(Launch, NotesComeOnceAndNotWhenQuiet) {
    const auto loud = job("exit 0", {{Flag::kNprocPerNode, "2"}, {Flag::kMonitorInterval, "1"}});
    EXPECT_EQ(loud->wait(), 0);
    EXPECT_THAT(loud->err(), HasSubstr("OMP_NUM_THREADS is not set"));
    EXPECT_THAT(loud->err(), HasSubstr("no effect here: --monitor-interval\n"));
    const auto quiet = job("exit 0", {{Flag::kNprocPerNode, "2"}, {Flag::kMonitorInterval, "1"}, {Flag::kQuiet, "1"}});
    EXPECT_EQ(quiet->wait(), 0);
    EXPECT_EQ(quiet->err(), "");
}

TEST_F(Launch, WhatAFailedWorkerLeftBehindEndsWithIt) {
    const auto process = job("setsid sleep 60 >/dev/null 2>&1 & echo $! > " + (scratch_ / "left") + "; exit 5");
    EXPECT_EQ(process->wait(), 5);
    pid_t left = 0;
    std::ifstream(scratch_ / "left") >> left;
    ASSERT_GT(left, 0);
    EXPECT_EQ(::kill(left, 0), -1) << "ended and reaped before the launcher left";
}

TEST_F(Launch, WhatASuccessLeftBehindMayBeKept) {
    const auto process = job("setsid sleep 60 >/dev/null 2>&1 & echo $! > " + (scratch_ / "left") + "; exit 0",
                             {{Flag::kKeepChildren, "1"}});
    EXPECT_EQ(process->wait(), 0);
    pid_t left = 0;
    std::ifstream(scratch_ / "left") >> left;
    ASSERT_GT(left, 0);
    EXPECT_EQ(::kill(left, SIGKILL), 0) << "it was still there";
}

TEST_F(Launch, ASecondSignalHasNoMorePatience) {
    const auto process = job("trap '' TERM; echo up > " + (scratch_ / "up") + "; while :; do sleep 0.01; done",
                             {{Flag::kShutdownTimeout, "600"}});
    ASSERT_TRUE(appears("up"));
    process->signal(SIGTERM);
    net::Loop loop;
    EXPECT_TRUE(net::test::run_until(loop, [&] { return process->err().find("SIGTERM") != std::string::npos; }));
    process->signal(SIGTERM);
    EXPECT_EQ(process->wait(), 66) << "long before its grace is over";
}

TEST_F(Launch, SignalsLeftOutOfTheListStillEndTheJobInOrder) {
    const auto process = job("echo up > " + (scratch_ / "up") + "; exec sleep 60",
                             {{Flag::kSignalsToHandle, "SIGUSR1"}, {Flag::kResultFile, scratch_ / "result"}});
    ASSERT_TRUE(appears("up"));
    process->signal(SIGUSR1);
    EXPECT_EQ(process->wait(), 66);
    EXPECT_EQ(result()["origin"], "launcher");
}

TEST_F(Launch, EachWorkerSeesItsOneDevice) {
    ::setenv("CUDA_VISIBLE_DEVICES", "4,6", 1);
    const auto process = job("echo $RANK has $CUDA_VISIBLE_DEVICES as $LOCAL_RANK",
                             {{Flag::kNprocPerNode, "2"}, {Flag::kOmp, "1"}, {Flag::kVirtualLocalRank, "1"}});
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_EQ(process->wait(), 0);
    EXPECT_THAT(process->out(), HasSubstr("0 has 4 as 0\n"));
    EXPECT_THAT(process->out(), HasSubstr("1 has 6 as 0\n"));
}

// ---- the rest of the header ---------------------------------------------------------------------------------------

TEST_F(Launch, ABareStoreServesUntilItIsStopped) {
    BareStore options;
    options.compat = "auto";
    Process process(scratch_, [&] { return serve_store(options) ? 0 : 1; });
    ASSERT_TRUE(appears("out"));
    const std::string line = process.out();
    ASSERT_EQ(line.rfind("listening on port ", 0), 0U) << line;
    net::Loop loop;
    net::test::RawClient client(static_cast<std::uint16_t>(std::stoi(line.substr(18))));
    std::string bytes;
    wire::append_handshake(bytes);
    wire::append_request(bytes, wire::op::Ping{7});
    client.send(bytes);
    EXPECT_TRUE(client.gets(loop, std::string("\7\0\0\0", 4)));
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(), 0);
}

TEST_F(Launch, ABareStoreNeedsItsPort) {
    const os::Fd taken(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = net::test::loopback(0);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(taken.get(), 1), 0);
    ::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size);
    BareStore options;
    options.compat = "auto";
    options.port = ntohs(address.sin_port);
    Process process(scratch_, [&] {
        const Result<void> served = serve_store(options);
        std::fprintf(stderr, "%s\n", served ? "" : served.error().message.c_str());
        std::fflush(stderr);
        return served ? 0 : 1;
    });
    EXPECT_EQ(process.wait(), 1);
    EXPECT_THAT(process.err(), HasSubstr(std::to_string(options.port)));
}

TEST(HostFacts, AreOfThisMachine) {
    const plan::HostFacts facts = host_facts("/opt/ddlaunch");
    EXPECT_EQ(facts.invoked_as, "/opt/ddlaunch");
    EXPECT_FALSE(facts.host_name.empty());
    EXPECT_GE(facts.cpus, 1);
    EXPECT_GE(facts.gpus, 0);
    EXPECT_EQ(facts.fresh_id.size(), 16U);
    EXPECT_NE(facts.fresh_id, host_facts("").fresh_id) << "two jobs without an id must not meet";
    ::setenv("DDL_LAUNCH_TEST", "x", 1);
    EXPECT_THAT(host_facts("").environment, Contains("DDL_LAUNCH_TEST=x"));
    ::unsetenv("DDL_LAUNCH_TEST");
}

TEST(HostFacts, ProbeLooksAtFilesWithoutOpeningWhatBlocks) {
    const testing::ScratchDirectory scratch;
    const auto probe = host_facts("").probe;
    EXPECT_FALSE(probe(scratch / "missing").exists);
    EXPECT_TRUE(probe(scratch.path()).is_directory);

    std::ofstream(scratch / "script") << "#!/bin/sh\nexit 0\n";
    EXPECT_EQ(probe(scratch / "script").first_bytes, "#!/b");
    EXPECT_FALSE(probe(scratch / "script").executable);
    ::chmod((scratch / "script").c_str(), 0755);
    EXPECT_TRUE(probe(scratch / "script").executable);

    ASSERT_EQ(::symlink((scratch / "script").c_str(), (scratch / "link").c_str()), 0);
    EXPECT_EQ(probe(scratch / "link").first_bytes, "#!/b") << "follows links";
    ASSERT_EQ(::symlink("nowhere", (scratch / "dangling").c_str()), 0);
    EXPECT_FALSE(probe(scratch / "dangling").exists);

    std::ofstream(scratch / "short") << "ab";
    EXPECT_EQ(probe(scratch / "short").first_bytes, "ab");
    std::ofstream(scratch / "empty").flush();
    EXPECT_EQ(probe(scratch / "empty").first_bytes, "");

    ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
    EXPECT_TRUE(probe(scratch / "fifo").exists);  // and comes back although nobody writes
    EXPECT_EQ(probe(scratch / "fifo").first_bytes, "");
}

}  // namespace
}  // namespace ddl::run
