#include "os/host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace ddl::os {
namespace {

using ::testing::Contains;

int gpus_with(const char* value) {
    ::setenv("CUDA_VISIBLE_DEVICES", value, 1);
    const int count = visible_gpus();
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    return count;
}

class TailOfFile : public ::testing::Test {
protected:
    void write(const std::string& text) {
        std::ofstream(path_) << text;
    }
    void TearDown() override {
        std::filesystem::remove(path_);
    }
    std::string path_ = (std::filesystem::temp_directory_path() / ("ddl_tail_" + random_hex(4))).string();
};

TEST(Host, NameIsTheFirstLabel) {
    const std::string name = host_name();
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(name.find('.'), std::string::npos);
}

TEST(Host, AddressesAreNumericAndHaveLoopback) {
    const auto addresses = interface_addresses();
    EXPECT_THAT(addresses, Contains("127.0.0.1"));
    for (const std::string& address : addresses) {
        EXPECT_EQ(address.find_first_not_of("0123456789abcdef.:"), std::string::npos) << address;
    }
}

TEST(Host, CountsCpusOfTheMask) {
    cpu_set_t before;
    CPU_ZERO(&before);
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    EXPECT_EQ(usable_cpus(), CPU_COUNT(&before));
    int first = 0;
    while (!CPU_ISSET(first, &before)) {
        ++first;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cpus(), 1);
    ::sched_setaffinity(0, sizeof before, &before);
}

TEST(Host, CountsGpusAsCudaDoes) {
    EXPECT_EQ(gpus_with(""), 0);
    EXPECT_EQ(gpus_with("-1"), 0);
    EXPECT_EQ(gpus_with("0"), 1);
    EXPECT_EQ(gpus_with("0,1, 3"), 3);
    EXPECT_EQ(gpus_with("0,-1,2"), 1);
    EXPECT_EQ(gpus_with("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,MIG-1234"), 2);
    EXPECT_EQ(gpus_with("NoDevFiles"), 0);
    EXPECT_GE(visible_gpus(), 0);
}

TEST(Host, EnvironmentHasWhatWasSet) {
    ::setenv("DDL_HOST_TEST", "a=b c", 1);
    EXPECT_THAT(environment(), Contains("DDL_HOST_TEST=a=b c"));
    ::unsetenv("DDL_HOST_TEST");
}

TEST(Host, RandomHexIsHexAndFresh) {
    const std::string text = random_hex(16);
    EXPECT_EQ(text.size(), 32U);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_NE(text, random_hex(16));
}

TEST_F(TailOfFile, GivesWholeLastLines) {
    write("one\ntwo\nthree\n");
    EXPECT_EQ(tail_of_file(path_, 2, 1000), "two\nthree\n");
    EXPECT_EQ(tail_of_file(path_, 9, 1000), "one\ntwo\nthree\n");
    EXPECT_EQ(tail_of_file(path_, 0, 1000), "");
    write("one\ntwo");
    EXPECT_EQ(tail_of_file(path_, 1, 1000), "two");
    write("\n\n\n");
    EXPECT_EQ(tail_of_file(path_, 2, 1000), "\n\n");
}

TEST_F(TailOfFile, ReadsNoMoreThanAllowed) {
    write(std::string(100'000, 'x') + "end");
    EXPECT_EQ(tail_of_file(path_, 5, 4), "xend");
}

TEST_F(TailOfFile, IsEmptyForWhatIsNoFile) {
    EXPECT_EQ(tail_of_file(path_, 5, 1000), "");
    EXPECT_EQ(tail_of_file("/", 5, 1000), "");
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_EQ(tail_of_file(path_, 5, 1000), "");
}

}  // namespace
}  // namespace ddl::os
