#include "run/event_log.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "os/clock.hpp"
#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

TEST(EventLog, WritesOneJsonLinePerEvent) {
    testing::ScratchDirectory directory;
    const std::string path = directory / "events";
    const Instant before = os::now();
    {
        auto log = EventLog::open(path, "n1");
        ASSERT_TRUE(log);
        log->write("worker_exec", {{"pid", 17}, {"rank", -1}}, {{"text", "a \"quoted\"\nline \xff"}});
        log->write("end", {});
    }
    const std::string text = testing::content_of(path);
    const auto lines = split(text, '\n');
    ASSERT_EQ(lines.size(), 3U);
    const auto first = nlohmann::json::parse(lines[0]);
    EXPECT_EQ(first["event"], "worker_exec");
    EXPECT_EQ(first["node"], "n1");
    EXPECT_EQ(first["pid"], 17);
    EXPECT_EQ(first["rank"], -1);
    EXPECT_EQ(first["text"], "a \"quoted\"\nline \xef\xbf\xbd");
    const auto second = nlohmann::json::parse(lines[1]);
    EXPECT_EQ(second["event"], "end");
    EXPECT_GE(first["t_ns"].get<std::int64_t>(), before.time_since_epoch().count());
    EXPECT_GE(second["t_ns"], first["t_ns"]);
}

TEST(EventLog, AppendsAndNamesTheHostByDefault) {
    testing::ScratchDirectory directory;
    const std::string path = directory / "events";
    for (int i = 0; i < 2; ++i) {
        auto log = EventLog::open(path);
        ASSERT_TRUE(log);
        log->write("start", {});
    }
    const std::string text = testing::content_of(path);
    EXPECT_EQ(split(text, '\n').size(), 3U);
    EXPECT_FALSE(nlohmann::json::parse(split(text, '\n')[0])["node"].get<std::string>().empty());
}

TEST(EventLog, APipeThatNobodyReadsHoldsNothingUp) {
    testing::ScratchDirectory directory;
    const std::string path = directory / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_FALSE(EventLog::open(path)) << "an error, not a wait for a reader";
    const os::Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    auto log = EventLog::open(path);
    ASSERT_TRUE(log);
    const std::string text(1000, 'x');
    for (int i = 0; i < 100; ++i) {  // more than a pipe holds
        log->write("event", {}, {{"text", text}});
    }
    std::string first(text.size(), '\0');
    EXPECT_EQ(::read(reader.get(), first.data(), first.size()), static_cast<ssize_t>(first.size()));
}

TEST(EventLog, WithoutAFileNothingHappens) {
    EventLog log;
    log.write("start", {});
    const auto failed = EventLog::open("/nonexistent/events");
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find("/nonexistent/events"), std::string::npos);
}

}  // namespace
}  // namespace ddl::run
