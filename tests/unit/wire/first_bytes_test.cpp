#include "wire/first_bytes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ddl::wire {
namespace {

using namespace std::string_literals;

struct Case {
    const char* name;
    std::string bytes;
    FirstBytes expected;
};

class Classify : public testing::TestWithParam<Case> {};

TEST_P(Classify, AllBytesAtOnce) {
    EXPECT_EQ(classify_first_bytes(GetParam().bytes), GetParam().expected);
}

// A verdict never needs more than kFirstBytesMax bytes and never changes with what follows.
TEST_P(Classify, IsFinalOnceMade) {
    const Case& test = GetParam();
    FirstBytes verdict = FirstBytes::kNeedMore;
    for (std::size_t length = 0; length <= test.bytes.size(); ++length) {
        const FirstBytes now = classify_first_bytes(std::string_view(test.bytes).substr(0, length));
        if (verdict != FirstBytes::kNeedMore) {
            EXPECT_EQ(now, verdict) << "after " << length << " bytes";
        }
        verdict = now;
        if (length >= kFirstBytesMax) {
            EXPECT_NE(now, FirstBytes::kNeedMore);
        }
    }
    EXPECT_EQ(verdict, test.expected);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Classify,
    testing::Values(Case{"nothing", "", FirstBytes::kNeedMore}, Case{"zero", "\0"s, FirstBytes::kNeedMore},
                    Case{"half_a_handshake", "\0\xCE\xF7"s, FirstBytes::kNeedMore},
                    Case{"handshake", "\0\xCE\xF7\x85\x3C"s, FirstBytes::kStore},
                    Case{"handshake_and_ping", "\0\xCE\xF7\x85\x3C\x0D\1\2\3\4"s, FirstBytes::kStore},
                    Case{"byte_swapped_magic", "\0\x3C\x85\xF7\xCE"s, FirstBytes::kUnknown},
                    Case{"old_set", "\0\2\0\0\0\0\0\0\0/k"s, FirstBytes::kOldStore},
                    Case{"old_set_of_the_longest_key", "\0\0\x20\0\0"s, FirstBytes::kOldStore},
                    Case{"old_set_of_a_longer_key", "\0\1\x20\0\0"s, FirstBytes::kUnknown},
                    Case{"old_compare_set", "\1"s, FirstBytes::kOldStore},
                    Case{"old_watch_or_delete", "\7\2"s, FirstBytes::kOldStore},
                    Case{"last_old_opcode", "\x0B"s, FirstBytes::kOldStore},
                    Case{"after_the_last_old_opcode", "\x0C"s, FirstBytes::kUnknown},
                    Case{"ping_without_handshake", "\x0D\1\2\3\4"s, FirstBytes::kUnknown},
                    Case{"tls", "\x16\3\1"s, FirstBytes::kTls}, Case{"agent_begins", "\xDD"s, FirstBytes::kNeedMore},
                    Case{"agent_half", "\xDDL"s, FirstBytes::kNeedMore},
                    Case{"agent", "\xDDLA\1"s, FirstBytes::kAgentSession},
                    Case{"agent_and_a_message", "\xDDLA\1\5\0\0\0"s, FirstBytes::kAgentSession},
                    Case{"agent_of_another_version", "\xDDLA\2"s, FirstBytes::kUnknown},
                    Case{"agent_misspelt", "\xDDLB"s, FirstBytes::kUnknown},
                    Case{"http", "GET / HTTP/1.1\r\n", FirstBytes::kUnknown},
                    Case{"ssh", "SSH-2.0-OpenSSH", FirstBytes::kUnknown},
                    Case{"all_ones", "\xFF\xFF\xFF\xFF\xFF"s, FirstBytes::kUnknown}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace ddl::wire
