#include "run/error_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "unit/run/scratch.hpp"

namespace ddl::run {
namespace {

class ErrorFileTest : public ::testing::Test {
protected:
    std::string read(const std::string& content) {
        std::ofstream(path_, std::ios::binary) << content;
        return read_error_file(path_);
    }
    testing::ScratchDirectory directory_;
    std::string path_ = directory_ / "error.json";
};

TEST_F(ErrorFileTest, ReadsBothFormats) {
    EXPECT_EQ(read(R"({"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "Traceback\n  x\n",)"
                   R"( "timestamp": "17"}}})"),
              "Traceback\n  x");
    EXPECT_EQ(read(R"({"message": {"message": "ValueError: x", "extraInfo": {}}})"), "ValueError: x");
    EXPECT_EQ(read(R"({"message": {"message": "ValueError: x"}})"), "ValueError: x");
    EXPECT_EQ(read(R"({"message": "plain", "timestamp": 17})"), "plain");
}

TEST_F(ErrorFileTest, NothingIsNothing) {
    EXPECT_EQ(read_error_file(path_), "");
    EXPECT_EQ(read_error_file(""), "");
    EXPECT_EQ(read(""), "");
    EXPECT_EQ(read(" \n"), "");
    EXPECT_EQ(read_error_file(directory_.path()), "") << "a directory";
}

TEST_F(ErrorFileTest, WhatIsNotTheFormatComesBackAsTextWithARemark) {
    for (const char* content : {R"({"message": {"mess)", "just text", "[1, 2]", R"({"message": 17})",
                                R"({"message": ""})", R"({"message": {"message": [1]}})", "null"}) {
        const std::string text = read(content);
        EXPECT_EQ(text.rfind(content, 0), 0U) << text;
        EXPECT_NE(text.find("is not in torchelastic's format"), std::string::npos);
    }
}

TEST_F(ErrorFileTest, BinaryBecomesPresentable) {
    const std::string text = read(std::string("\x00\x01\xff\xfe bytes\x1b[31m", 15));
    EXPECT_NE(text.find("bytes"), std::string::npos);
    for (const char c : text) {
        EXPECT_TRUE(static_cast<unsigned char>(c) >= ' ' || c == '\n') << static_cast<int>(c);
    }
}

TEST_F(ErrorFileTest, ReadsABoundedPartOfAHugeFile) {
    const std::string text = read(std::string(5'000'000, 'x'));
    EXPECT_LT(text.size(), 70'000U);
    EXPECT_EQ(text.rfind("xxx", 0), 0U);
}

TEST_F(ErrorFileTest, DoesNotWaitForAFifo) {
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_EQ(read_error_file(path_), "");
}

TEST_F(ErrorFileTest, SurvivesDeepNesting) {
    EXPECT_NE(read(std::string(60'000, '[')), "");
}

}  // namespace
}  // namespace ddl::run
