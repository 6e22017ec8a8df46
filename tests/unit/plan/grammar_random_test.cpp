// Random texts for every grammar: what was made from a value gives it back, and nonsense ends in one short line.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/grammar.hpp"
#include "plan/rdzv_conf.hpp"

namespace ddl::plan {
namespace {

class RandomGrammar : public ::testing::TestWithParam<std::uint32_t> {
protected:
    int between(int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(random_);
    }
    // Mostly what such values are made of, so that much of it comes near to being right.
    std::string nonsense() {
        static const std::string kLikely = "0123456789:,-=.[]%/ abcdefhostSIGTERM";
        std::string text(static_cast<std::size_t>(between(0, 24)), ' ');
        for (char& c : text) {
            c = between(0, 19) == 0
                    ? static_cast<char>(between(-128, 127))
                    : kLikely[static_cast<std::size_t>(between(0, static_cast<int>(kLikely.size()) - 1))];
        }
        return text;
    }

    std::mt19937 random_{GetParam()};
};

template <class T>
void expect_a_line(const Result<T>& result, const std::string& text) {
    if (!result) {
        const std::string& message = result.error().message;
        EXPECT_FALSE(message.empty()) << text;
        EXPECT_LT(message.size(), 400U) << message;
        EXPECT_TRUE(std::all_of(message.begin(), message.end(), [](char c) {
            return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
        })) << message;
    }
}

TEST_P(RandomGrammar, NodeRangesComeBack) {
    for (int i = 0; i < 200; ++i) {
        const int min = between(1, kMaxNodes);
        const int max = between(min, kMaxNodes);
        EXPECT_EQ(parse_node_range(std::to_string(min) + ":" + std::to_string(max)), (NodeRange{min, max}));
        if (min < max) {
            EXPECT_FALSE(parse_node_range(std::to_string(max) + ":" + std::to_string(min)));
        }
    }
}

TEST_P(RandomGrammar, EndpointsComeBackInEveryForm) {
    for (int i = 0; i < 200; ++i) {
        const auto port = static_cast<std::uint16_t>(between(0, 65535));
        const std::string number = std::to_string(port);
        const std::string four = std::to_string(between(0, 255)) + "." + std::to_string(between(0, 255)) + ".0.1";
        EXPECT_EQ(parse_endpoint(four + ":" + number, 1), (Endpoint{four, port}));
        const std::string name = "n" + std::to_string(between(0, 999)) + ".cluster";
        EXPECT_EQ(parse_endpoint(name + ":" + number, 1), (Endpoint{name, port}));
        EXPECT_EQ(parse_endpoint(name, port), (Endpoint{name, port}));
        const std::string six = "fd00::" + std::to_string(between(0, 9999));
        EXPECT_EQ(parse_endpoint("[" + six + "]:" + number, 1), (Endpoint{six, port}));
        EXPECT_EQ(parse_host("[" + six + "]"), six);
    }
}

TEST_P(RandomGrammar, StreamsComeBackRankByRank) {
    for (int i = 0; i < 100; ++i) {
        const int workers = between(1, 40);
        std::vector<Streams> wanted;
        std::string text;
        for (int rank = 0; rank < workers; ++rank) {
            const int digit = between(0, 3);
            wanted.push_back({(digit & 1) != 0, (digit & 2) != 0});
            text += (rank == 0 ? "" : ",") + std::to_string(rank) + ":" + std::to_string(digit);
        }
        const Result<std::vector<Streams>> read = parse_streams(text, workers);
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(*read, wanted);
    }
}

TEST_P(RandomGrammar, ARangeIsEveryRankInIt) {
    for (int i = 0; i < 100; ++i) {
        const int first = between(0, 20);
        const int last = between(first, 30);
        const Result<std::vector<bool>> shown =
            parse_rank_filter(std::to_string(first) + "-" + std::to_string(last), 24);
        ASSERT_TRUE(shown) << shown.error().message;
        for (int rank = 0; rank < 24; ++rank) {
            EXPECT_EQ((*shown)[static_cast<std::size_t>(rank)], rank >= first && rank <= last) << rank;
        }
    }
}

TEST_P(RandomGrammar, DurationsKeepTheirMilliseconds) {
    for (int i = 0; i < 200; ++i) {
        const int ms = between(0, 999'999);
        std::string fraction = std::to_string(1000 + ms % 1000).substr(1);
        const Result<Duration> read = parse_duration(std::to_string(ms / 1000) + "." + fraction, 0, 1000);
        ASSERT_TRUE(read) << read.error().message;
        const Duration off = *read - std::chrono::milliseconds(ms);
        EXPECT_LT(std::max(off, -off), Duration(std::chrono::microseconds(1)));
    }
}

TEST_P(RandomGrammar, KeysAndValuesComeBackWithoutRepeats) {
    for (int i = 0; i < 100; ++i) {
        KeyValues wanted;
        std::string text;
        for (int n = between(1, 6); n > 0; --n) {
            const std::string key(1, static_cast<char>('a' + between(0, 4)));
            const std::string value = std::to_string(between(0, 99));
            std::erase_if(wanted, [&key](const auto& pair) { return pair.first == key; });
            wanted.emplace_back(key, value);
            text += (text.empty() ? "" : ", ") + key + " = " + value;
        }
        EXPECT_EQ(parse_key_values(text), wanted) << text;
    }
}

TEST_P(RandomGrammar, NonsenseIsRefusedInOneLineOrMeansSomethingInRange) {
    for (int i = 0; i < 2000; ++i) {
        const std::string text = nonsense();
        const auto nodes = parse_node_range(text);
        expect_a_line(nodes, text);
        EXPECT_TRUE(!nodes || (nodes->min >= 1 && nodes->min <= nodes->max && nodes->max <= kMaxNodes)) << text;
        const auto ports = parse_port_range(text);
        expect_a_line(ports, text);
        EXPECT_TRUE(!ports || (ports->first >= 1 && ports->first <= ports->last)) << text;
        const auto duration = parse_duration(text, 0.5, 2);
        expect_a_line(duration, text);
        EXPECT_TRUE(!duration || (*duration >= std::chrono::milliseconds(500) && *duration <= std::chrono::seconds(2)))
            << text;
        const auto streams = parse_streams(text, 3);
        expect_a_line(streams, text);
        EXPECT_TRUE(!streams || streams->size() == 3) << text;
        const auto filter = parse_rank_filter(text, 3);
        expect_a_line(filter, text);
        EXPECT_TRUE(!filter || filter->size() == 3) << text;
        const auto endpoint = parse_endpoint(text, 29400);
        expect_a_line(endpoint, text);
        EXPECT_TRUE(!endpoint || !endpoint->host.empty()) << text;
        const auto signals = parse_signals(text);
        expect_a_line(signals, text);
        EXPECT_TRUE(!signals || !signals->empty()) << text;
        expect_a_line(parse_host(text), text);
        expect_a_line(parse_networks(text), text);
        expect_a_line(parse_endpoints(text, 29400), text);
        expect_a_line(parse_restart_budget(text), text);
        expect_a_line(parse_span(text, 1, 86'400), text);
        expect_a_line(parse_exit_codes(text), text);
        expect_a_line(parse_forwarded_signals(text, {1, 3}), text);
        expect_a_line(parse_boolean(text), text);
        expect_a_line(parse_key_values(text), text);
        expect_a_line(parse_rdzv_conf(text), text);
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGrammar, ::testing::Values(1U, 2U, 3U, 20240501U));

// ---- --rdzv-conf, key by key --------------------------------------------------------------------------------------

TEST(RdzvConfTable, EveryKeyIsTakenAndItsEffectIsAsSaid) {
    for (const RdzvConfKey& key : rdzv_conf_keys()) {
        const std::string name(key.name);
        const std::string value = name == "is_host"      ? "1"
                                  : name == "store_type" ? "tcp"
                                  : name == "protocol"   ? "https"
                                  : name == "takeover"   ? "off"
                                                         : "5";
        const Result<RdzvConf> conf = parse_rdzv_conf(name + "=" + value);
        ASSERT_TRUE(conf) << conf.error().message;
        const bool listed = std::find(conf->no_effect.begin(), conf->no_effect.end(), name) != conf->no_effect.end();
        EXPECT_EQ(listed, !key.used) << name;
        const bool has_effect = conf->join_timeout || conf->last_call_timeout || conf->rejoin_timeout ||
                                conf->is_host || conf->lease_timeout || conf->takeover || !conf->of_etcd.empty();
        EXPECT_EQ(has_effect, key.used) << name;
        EXPECT_FALSE(key.meaning.empty()) << name;
    }
}

TEST(RdzvConfTable, TheLastOfARepeatedKeyCounts) {
    const Result<RdzvConf> conf = parse_rdzv_conf("join_timeout=5,is_host=0,join_timeout=6,is_host=yes");
    ASSERT_TRUE(conf) << conf.error().message;
    EXPECT_EQ(conf->join_timeout, Duration(std::chrono::seconds(6)));
    EXPECT_EQ(conf->is_host, true);
}

TEST(RdzvConfTable, NothingIsNothing) {
    const Result<RdzvConf> conf = parse_rdzv_conf("");
    ASSERT_TRUE(conf);
    EXPECT_FALSE(conf->join_timeout || conf->last_call_timeout || conf->rejoin_timeout || conf->is_host);
    EXPECT_TRUE(conf->no_effect.empty());
}

}  // namespace
}  // namespace ddl::plan
