#include "run/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace ddl::run {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

wire::Death death(int rank, wire::DeathKind kind, int status) {
    wire::Death result;
    result.kind = kind;
    result.rank = rank;
    result.local_rank = rank % 4;
    result.node = "n1";
    result.pid = 400 + rank;
    result.status = status;
    return result;
}

wire::JobOver over(int exit_code, wire::ExitOrigin origin, std::vector<wire::Death> deaths, std::string why = "") {
    wire::JobOver result;
    result.exit_code = exit_code;
    result.origin = origin;
    result.deaths = std::move(deaths);
    result.why = std::move(why);
    return result;
}

std::string last_line(const std::string& report) {
    EXPECT_EQ(report.back(), '\n');
    return std::string(split(trim(report), '\n').back());
}

std::string report_of(const wire::Death& first) {
    return failure_report(over(1, wire::ExitOrigin::kWorker, {first}));
}

TEST(FailureReport, NamesTheFirstCauseAndWhoDecided) {
    wire::Death first = death(3, wire::DeathKind::kExited, 7);
    first.stderr_tail = {"Traceback", "ValueError: no weights"};
    first.age = 2s;
    wire::Death later = death(5, wire::DeathKind::kExited, 1);
    later.age = 1750ms;
    const std::string report = failure_report(over(7, wire::ExitOrigin::kWorker, {first, later}));
    EXPECT_EQ(report.rfind("ddlaunch: first failure: rank 3 on n1 (pid 403) exited with code 7\n", 0), 0U) << report;
    EXPECT_THAT(report, HasSubstr("    Traceback\n"));
    EXPECT_THAT(report, HasSubstr("    ValueError: no weights\n"));
    EXPECT_THAT(report, HasSubstr("0.250 s later: rank 5 on n1 (pid 405) exited with code 1\n"));
    EXPECT_EQ(last_line(report), "ddlaunch: exit code 7: from rank 3 on n1");
}

TEST(FailureReport, LauncherDecisionsSaySo) {
    const std::string report = failure_report(over(64, wire::ExitOrigin::kLauncher, {}, "join timeout after 600 s"));
    EXPECT_EQ(report, "ddlaunch: exit code 64: decided by ddlaunch: join timeout after 600 s\n");
    const std::string with_death =
        failure_report(over(65, wire::ExitOrigin::kLauncher, {death(1, wire::DeathKind::kSignalled, SIGKILL)}, "why"));
    EXPECT_THAT(with_death, HasSubstr("was killed by SIGKILL"));
    EXPECT_EQ(last_line(with_death), "ddlaunch: exit code 65: decided by ddlaunch: why");
    EXPECT_EQ(failure_report(over(0, wire::ExitOrigin::kSuccess, {})),
              "ddlaunch: exit code 0: every rank exited with code 0\n");
    EXPECT_EQ(failure_report(over(3, wire::ExitOrigin::kWorker, {}, "w")), "ddlaunch: exit code 3: from a worker: w\n");
}

TEST(FailureReport, EveryLineIsMarkedAsOurs) {
    wire::Death first = death(3, wire::DeathKind::kExited, 7);
    first.message = "Traceback\n  File\nError";
    first.stderr_tail = {"x"};
    const std::string report = report_of(first);
    for (const std::string_view line : split(trim(report), '\n')) {
        EXPECT_EQ(line.rfind("ddlaunch: ", 0), 0U) << line;
    }
}

TEST(FailureReport, ShowsTheErrorFileAndDoesNotSayThingsTwice) {
    wire::Death first = death(0, wire::DeathKind::kExited, 1);
    first.message = "ValueError: x";
    EXPECT_THAT(report_of(first), HasSubstr("exited with code 1: ValueError: x\n"));
    first.message = "Traceback\n  File a\nValueError: x";
    first.stderr_tail = {"unrelated", "ValueError: x"};
    const std::string report = report_of(first);
    EXPECT_THAT(report, HasSubstr("its error file says:\nddlaunch:     Traceback\n"));
    EXPECT_THAT(report, Not(HasSubstr("unrelated")));
    first.stderr_tail = {"something else"};
    EXPECT_THAT(report_of(first), HasSubstr("something else"));
}

TEST(FailureReport, HintsSayWhatANumberDoesNot) {
    EXPECT_THAT(report_of(death(0, wire::DeathKind::kSignalled, SIGKILL)), HasSubstr("memory limit"));
    EXPECT_THAT(report_of(death(0, wire::DeathKind::kSignalled, SIGABRT)), HasSubstr("assertion"));
    EXPECT_THAT(report_of(death(0, wire::DeathKind::kSignalled, SIGSEGV)), HasSubstr("PYTHONFAULTHANDLER"));
    EXPECT_THAT(report_of(death(0, wire::DeathKind::kSignalled, SIGBUS)), HasSubstr("/dev/shm"));
    EXPECT_THAT(report_of(death(0, wire::DeathKind::kExited, 137)), HasSubstr("code 137 stands for SIGKILL"));
    EXPECT_THAT(report_of(death(0, wire::DeathKind::kExited, 1)), Not(HasSubstr("hint:")));
    EXPECT_THAT(report_of(death(0, wire::DeathKind::kExited, 255)), Not(HasSubstr("hint:")));
    wire::Death starved = death(0, wire::DeathKind::kExited, 1);
    starved.stderr_tail = {"MemoryError"};
    EXPECT_THAT(report_of(starved), HasSubstr("ran out of memory"));
}

TEST(FailureReport, FailedStartsNameTheStep) {
    wire::Death first = death(2, wire::DeathKind::kStartFailed, ENOENT);
    first.pid = 0;
    first.message = "exec ./train: No such file or directory";
    const std::string report = report_of(first);
    EXPECT_THAT(report, HasSubstr("rank 2 on n1 could not be started: exec ./train: No such file or directory\n"));
    EXPECT_THAT(report, HasSubstr("hint: check the path"));
    EXPECT_THAT(report, Not(HasSubstr("wrote nothing")));
}

TEST(FailureReport, LostNodesHaveNoRank) {
    wire::Death lost = death(-1, wire::DeathKind::kNodeLost, 0);
    lost.message = "no sign of life for 10 s";
    const std::string report = failure_report(over(1, wire::ExitOrigin::kWorker, {lost}));
    EXPECT_THAT(report, HasSubstr("first failure: node n1 was lost: no sign of life for 10 s\n"));
    EXPECT_THAT(report, Not(HasSubstr("rank -1")));
    EXPECT_EQ(last_line(report), "ddlaunch: exit code 1: from node n1");
}

TEST(FailureReport, IsBounded) {
    std::vector<wire::Death> deaths;
    for (int rank = 0; rank < 1000; ++rank) {
        deaths.push_back(death(rank, wire::DeathKind::kExited, 1));
    }
    const std::string report = failure_report(over(1, wire::ExitOrigin::kWorker, deaths));
    EXPECT_LT(split(report, '\n').size(), 20U);
    EXPECT_THAT(report, HasSubstr("and 991 more\n"));
}

TEST(ResultJson, HasEverythingAndSurvivesBinaryText) {
    wire::Death first = death(3, wire::DeathKind::kSignalled, SIGKILL);
    first.message = "bad \xff";
    first.stderr_tail = {"line"};
    first.age = 1500ms;
    wire::JobOver ended = over(137, wire::ExitOrigin::kWorker, {first}, "because");
    ended.restart_count = 2;
    const auto json = nlohmann::json::parse(result_json(ended));
    EXPECT_EQ(json["exit_code"], 137);
    EXPECT_EQ(json["origin"], "worker");
    EXPECT_EQ(json["why"], "because");
    EXPECT_EQ(json["restart_count"], 2);
    ASSERT_EQ(json["deaths"].size(), 1U);
    EXPECT_EQ(json["deaths"][0]["kind"], "signalled");
    EXPECT_EQ(json["deaths"][0]["rank"], 3);
    EXPECT_EQ(json["deaths"][0]["status"], SIGKILL);
    EXPECT_EQ(json["deaths"][0]["age_s"], 1.5);
    EXPECT_EQ(json["deaths"][0]["stderr_tail"][0], "line");
    EXPECT_EQ(nlohmann::json::parse(result_json(over(0, wire::ExitOrigin::kSuccess, {})))["origin"], "success");
}

}  // namespace
}  // namespace ddl::run
