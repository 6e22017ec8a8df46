// The store of `ddlaunch store`, ended by signals.
#include "net/bare_store.hpp"

#include <csignal>

#include "support.hpp"

namespace ddl::net {
namespace {

using namespace test;

class EndingSignals : public testing::TestWithParam<int> {};

TEST_P(EndingSignals, EndABareStore) {
    std::vector<std::string> lines;
    std::uint16_t port = 0;
    BareStoreOptions options;
    options.reach = Reach::kLoopback;
    options.port = 0;
    options.listening = [&](std::string line) {
        lines.push_back(line);
        port = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(' '))));
        EXPECT_EQ(RawClient(port).connect_error(), 0);
        ::raise(GetParam());
    };
    EXPECT_TRUE(run_bare_store(options).has_value());
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines.at(0), "listening on port " + std::to_string(port));
    EXPECT_EQ(RawClient(port).connect_error(), ECONNREFUSED);
}

INSTANTIATE_TEST_SUITE_P(BareStore, EndingSignals, testing::Values(SIGINT, SIGTERM));

TEST(BareStore, APortInUseIsAnError) {
    const RawServer other;
    BareStoreOptions options;
    options.reach = Reach::kLoopback;
    options.port = other.port();
    options.listening = [](const std::string&) {
        FAIL();
    };
    const auto result = run_bare_store(options);
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message.find("pid"), std::string::npos) << result.error().message;
}

TEST(BareStore, ABadAllowListIsAnError) {
    BareStoreOptions options;
    options.reach = Reach::kLoopback;
    options.port = 0;
    options.allow = {.any = false, .networks = {"everybody"}};
    const auto result = run_bare_store(options);
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message.find("everybody"), std::string::npos);
}

}  // namespace
}  // namespace ddl::net
