#include "run/log_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

plan::RankPlace place_of(const std::string& job_id, std::uint64_t generation = 1, int local_rank = 0) {
    plan::RankPlace place;
    place.job_id = job_id;
    place.generation = generation;
    place.local_rank = local_rank;
    return place;
}

TEST(LogFiles, LayoutIsPredictable) {
    testing::ScratchDirectory directory;
    const LogFiles files(directory.path(), "n1");
    ASSERT_TRUE(files.open_for_rank(place_of("train", 3, 12), "stdout.log"));
    ASSERT_TRUE(files.open_for_node(place_of("train", 3, 12), "filtered_stdout.log"));
    EXPECT_TRUE(std::filesystem::exists(directory / "train/generation_3/0-n1/12/stdout.log"));
    EXPECT_TRUE(std::filesystem::exists(directory / "train/generation_3/0-n1/filtered_stdout.log"));
}

TEST(LogFiles, TwoNodesWithOneSharedDirectoryDoNotCollide) {
    testing::ScratchDirectory directory;
    const LogFiles one(directory.path(), "n1");
    const LogFiles two(directory.path(), "n2");
    EXPECT_NE(one.rank_directory(place_of("j")), two.rank_directory(place_of("j")));
    plan::RankPlace second = place_of("j");
    second.group_rank = 1;
    EXPECT_NE(one.rank_directory(place_of("j")), one.rank_directory(second)) << "two nodes of one name";
    EXPECT_EQ(one.rank_directory(second), directory / "j/generation_1/1-n1/0");
    EXPECT_NE(one.rank_directory(place_of("j", 1)), one.rank_directory(place_of("j", 2)));
}

TEST(LogFiles, ASecondRunAppends) {
    testing::ScratchDirectory directory;
    for (const char* text : {"first\n", "second\n"}) {
        const LogFiles files(directory.path(), "n1");
        const auto file = files.open_for_rank(place_of("j"), "stderr.log");
        ASSERT_TRUE(file);
        EXPECT_GT(::write(file->get(), text, std::char_traits<char>::length(text)), 0);
    }
    EXPECT_EQ(testing::content_of(directory / "j/generation_1/0-n1/0/stderr.log"), "first\nsecond\n");
}

TEST(LogFiles, SaysWhichPathCannotBeUsed) {
    testing::ScratchDirectory directory;
    std::ofstream(directory / "file") << "x";
    const LogFiles files(directory / "file", "n1");
    const auto file = files.open_for_rank(place_of("j"), "stdout.log");
    ASSERT_FALSE(file);
    EXPECT_NE(file.error().message.find(directory / "file"), std::string::npos);
}

TEST(LogFiles, PrivateDirectoryIsLazyPrivateAndRemoved) {
    testing::ScratchDirectory temporary;
    ::setenv("TMPDIR", temporary.path().c_str(), 1);
    {
        LogFiles files("", "n1");
        EXPECT_TRUE(temporary.empty());
        const auto one = files.error_file(place_of("j", 1, 0), false);
        const auto two = files.error_file(place_of("j", 1, 1), false);
        const auto later = files.error_file(place_of("j", 2, 0), false);
        ASSERT_TRUE(one && two && later);
        EXPECT_EQ((std::set<std::string>{*one, *two, *later}).size(), 3U);
        struct stat info {};
        ASSERT_EQ(::stat(std::filesystem::path(*one).parent_path().c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777U, 0700U);
        std::ofstream(*one) << "{}";
    }
    EXPECT_TRUE(temporary.empty());
    ::setenv("TMPDIR", (temporary / "missing").c_str(), 1);
    LogFiles files("", "n1");
    const auto none = files.error_file(place_of("j"), false);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("TMPDIR"), std::string::npos);
    ::unsetenv("TMPDIR");
}

TEST(LogFiles, AGivenPrivateDirectoryMustBeNew) {
    testing::ScratchDirectory temporary;
    const std::string path = temporary / "mine";
    {
        LogFiles files("", "n1");
        files.use_private_directory(path);
        EXPECT_EQ(files.error_file(place_of("j"), false).value_or("").rfind(path + "/", 0), 0U);
        LogFiles other("", "n1");
        other.use_private_directory(path);
        EXPECT_FALSE(other.error_file(place_of("j"), false)) << "somebody else's";
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(private_directory_path("abc")[0], '/');
}

TEST(LogFiles, StaleErrorFileIsRemoved) {
    testing::ScratchDirectory directory;
    LogFiles files(directory.path(), "n1");
    ASSERT_TRUE(files.open_for_rank(place_of("j"), "stdout.log"));
    std::ofstream(directory / "j/generation_1/0-n1/0/error.json") << "of yesterday";
    EXPECT_EQ(files.error_file(place_of("j"), true).value_or(""), directory / "j/generation_1/0-n1/0/error.json");
    EXPECT_FALSE(std::filesystem::exists(directory / "j/generation_1/0-n1/0/error.json"));
}

}  // namespace
}  // namespace ddl::run
