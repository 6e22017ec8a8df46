#include "run/result_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

wire::JobOver over(int exit_code, const std::string& why) {
    wire::JobOver job;
    job.exit_code = exit_code;
    job.why = why;
    return job;
}

TEST(ResultFile, HoldsOneObjectAndNothingOfAnEarlierJob) {
    testing::ScratchDirectory directory;
    const std::string path = directory / "result.json";
    ASSERT_TRUE(write_result_file(path, over(7, std::string(1000, 'x'))));
    ASSERT_TRUE(write_result_file(path, over(3, "short")));
    const auto json = nlohmann::json::parse(testing::content_of(path));
    EXPECT_EQ(json["exit_code"], 3);
    EXPECT_EQ(json["why"], "short");
}

TEST(ResultFile, WhatCannotBeWrittenIsNamed) {
    const Result<void> nowhere = write_result_file("/nonexistent/result", over(0, ""));
    ASSERT_FALSE(nowhere);
    EXPECT_THAT(nowhere.error().message, AllOf(HasSubstr("/nonexistent/result"), HasSubstr("No such file")));
    const Result<void> full = write_result_file("/dev/full", over(0, ""));
    ASSERT_FALSE(full);
    EXPECT_THAT(full.error().message, HasSubstr("No space left"));
}

TEST(ResultFile, IsCheckedWithoutLosingWhatItHolds) {
    testing::ScratchDirectory directory;
    const std::string path = directory / "result.json";
    ASSERT_TRUE(check_result_file(path));
    EXPECT_TRUE(std::filesystem::exists(path));
    ASSERT_TRUE(write_result_file(path, over(7, "")));
    ASSERT_TRUE(check_result_file(path));
    EXPECT_EQ(nlohmann::json::parse(testing::content_of(path))["exit_code"], 7);
    const Result<void> nowhere = check_result_file("/nonexistent/result");
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().message, "--result-file: cannot open /nonexistent/result: No such file or directory");
    const Result<void> folder = check_result_file(directory.path());
    ASSERT_FALSE(folder);
    EXPECT_THAT(folder.error().message, HasSubstr("Is a directory"));
}

TEST(ResultFile, APipeMayGetItsReaderLater) {
    testing::ScratchDirectory directory;
    const std::string path = directory / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_TRUE(check_result_file(path));
}

TEST(ResultFile, APipeWithoutAReaderIsNotWaitedFor) {
    testing::ScratchDirectory directory;
    const std::string path = directory / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_FALSE(write_result_file(path, over(0, "")));
}

}  // namespace
}  // namespace ddl::run
