// Random agent messages: there and back again however the stream is cut, and damaged ones that must not be made up.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "unit/wire/agent_message_samples.hpp"
#include "wire/agent_message.hpp"

namespace ddl::wire {
namespace {

class Generator {
public:
    explicit Generator(std::uint32_t seed) : random_(seed) {
    }

    std::size_t below(std::size_t limit) {
        return random_() % limit;
    }
    bool yes() {
        return below(2) == 0;
    }
    // Among them what JSON writes in its own way; always UTF-8.
    std::string text() {
        static const std::vector<std::string> kPieces = {"a",
                                                         "Z",
                                                         "0",
                                                         " ",
                                                         "\"",
                                                         "\\",
                                                         "/",
                                                         "\n",
                                                         "\t",
                                                         "\x01",
                                                         "\x7F",
                                                         "{",
                                                         "}",
                                                         ":",
                                                         ",",
                                                         "\xC3\xA4",
                                                         "\xE2\x82\xAC",
                                                         "\xF0\x9F\x98\x80",
                                                         std::string(1, '\0')};
        std::string made;
        for (std::size_t i = below(12); i > 0; --i) {
            made += kPieces[below(kPieces.size())];
        }
        return made;
    }
    std::vector<std::string> texts(std::size_t most) {
        std::vector<std::string> made(below(most + 1));
        for (std::string& one : made) {
            one = text();
        }
        return made;
    }
    int number() {
        constexpr int kMin = std::numeric_limits<int>::min();
        constexpr int kMax = std::numeric_limits<int>::max();
        const int edges[] = {kMin, -1, 0, 1, kMax};
        return yes() ? edges[below(5)] : static_cast<int>(random_());
    }
    std::uint16_t port() {
        return static_cast<std::uint16_t>(random_());
    }
    Generation generation() {
        return {static_cast<std::uint32_t>(random_()), static_cast<std::uint32_t>(random_())};
    }
    Death death() {
        Death made;
        made.kind = static_cast<DeathKind>(below(4));
        made.rank = number();
        made.local_rank = number();
        made.node = text();
        made.pid = number();
        made.status = number();
        made.age = Duration((std::int64_t{number()} << 31U) + number());
        made.message = text();
        made.stderr_tail = texts(kMaxStderrTailLines);
        made.error_file = text();
        return made;
    }
    std::vector<Death> deaths() {
        std::vector<Death> made(below(4));
        for (Death& one : made) {
            one = death();
        }
        return made;
    }
    Hello hello() {
        Hello made;
        made.protocol = number();
        made.terms = {text(), yes(), number(), number(), number(), text(), text()};
        made.node.name = text();
        made.node.incarnation = text();
        made.node.workers = number();
        made.node.role = text();
        made.node.requested_rank = yes() ? std::optional(number()) : std::nullopt;
        made.node.scheduler_order = yes() ? std::optional(number()) : std::nullopt;
        made.node.announced_address = text();
        made.node.connection_address = text();
        made.node.addresses = texts(5);
        made.last = generation();
        made.last_group_rank = number();
        made.restart_count = number();
        return made;
    }
    Assignment assignment() {
        Assignment made;
        made.generation = generation();
        made.restart_count = number();
        made.group_rank = number();
        made.group_world_size = number();
        made.base_rank = number();
        made.world_size = number();
        made.base_role_rank = number();
        made.role_world_size = number();
        made.master_addr = text();
        made.master_port = port();
        made.serves_store = yes();
        made.store_clients = texts(6);
        return made;
    }
    Message message() {
        switch (below(std::variant_size_v<Message>)) {
            case 0:
                return hello();
            case 1:
                return Ready{generation(), port(), deaths()};
            case 2:
                return Failed{generation(), death()};
            case 3:
                return FirstExit{generation()};
            case 4:
                return Finished{generation()};
            case 5:
                return Leaving{number()};
            case 6:
                return Welcome{text(), static_cast<std::uint32_t>(random_())};
            case 7:
                return Refused{text()};
            case 8:
                return Notice{text()};
            case 9:
                return assignment();
            case 10:
                return Stop{generation(), static_cast<StopReason>(below(2)), text()};
            default:
                return JobOver{number(), static_cast<ExitOrigin>(below(3)), text(), deaths(), number()};
        }
    }

private:
    std::mt19937 random_;
};

class RandomMessages : public ::testing::TestWithParam<std::uint32_t> {
protected:
    Generator generator_{GetParam()};
};

TEST_P(RandomMessages, ComeBackHoweverTheStreamIsCut) {
    std::string stream;
    std::vector<Message> sent;
    for (int i = 0; i < 150; ++i) {
        sent.push_back(generator_.message());
        stream += encode(sent.back());
    }
    MessageReader reader;
    std::size_t received = 0;
    for (std::size_t at = 0; at < stream.size();) {
        const std::size_t size = 1 + generator_.below(generator_.yes() ? 7 : 2000);
        reader.feed(std::string_view(stream).substr(at, size));
        at += size;
        for (auto next = reader.next(); true; next = reader.next()) {
            ASSERT_TRUE(next) << next.error().message;
            if (!*next) {
                break;
            }
            ASSERT_LT(received, sent.size());
            ASSERT_EQ(**next, sent[received]) << "message " << received;
            ++received;
        }
    }
    EXPECT_EQ(received, sent.size());
}

TEST_P(RandomMessages, WhatIsReadIsWrittenInTheSameBytes) {
    for (int i = 0; i < 100; ++i) {
        const std::string bytes = encode(generator_.message());
        MessageReader reader;
        reader.feed(bytes);
        const auto next = reader.next();
        ASSERT_TRUE(next && *next);
        EXPECT_EQ(encode(**next), bytes);
    }
}

// A changed byte may still make a message (a digit, a letter in a text); then that is read, and nothing else.
TEST_P(RandomMessages, DamagedOnesAreReadOrRefused) {
    std::size_t refused = 0;
    for (int i = 0; i < 400; ++i) {
        const Message sent = generator_.message();
        std::string bytes = encode(sent);
        const std::size_t where = 4 + generator_.below(bytes.size() - 4);
        bytes[where] = static_cast<char>(bytes[where] ^ static_cast<char>(1 + generator_.below(255)));
        MessageReader reader;
        reader.feed(bytes);
        const auto next = reader.next();
        if (!next) {
            ++refused;
            EXPECT_FALSE(next.error().message.empty());
            EXPECT_LT(next.error().message.size(), 200U);
            continue;
        }
        ASSERT_TRUE(*next) << "all of its bytes were there";
        MessageReader again;
        again.feed(encode(**next));
        EXPECT_EQ(again.next().value(), *next);
    }
    EXPECT_GT(refused, 50U) << "most of the bytes are names and punctuation";
}

TEST_P(RandomMessages, AnyLengthInFrontIsWaitedForOrRefused) {
    for (int i = 0; i < 300; ++i) {
        std::string bytes(4, '\0');
        for (char& byte : bytes) {
            byte = static_cast<char>(generator_.below(256));
        }
        std::uint32_t length = 0;
        for (std::size_t at = 4; at > 0; --at) {
            length = length << 8U | static_cast<std::uint8_t>(bytes[at - 1]);
        }
        MessageReader reader;
        reader.feed(bytes);
        const auto next = reader.next();
        EXPECT_EQ(next.has_value(), length <= kMaxMessageBytes && length > 0) << length;
        EXPECT_TRUE(!next || !*next) << length;
    }
}

TEST_P(RandomMessages, RandomTextsOfWorkersNeverMakeAMessageTooLong) {
    for (int i = 0; i < 5; ++i) {
        JobOver over{1, ExitOrigin::kWorker, std::string(generator_.below(100'000), 'w'), {}, 0};
        for (std::size_t deaths = 1 + generator_.below(60); deaths > 0; --deaths) {
            Death& death = over.deaths.emplace_back(generator_.death());
            death.message.assign(generator_.below(60'000), static_cast<char>(1 + generator_.below(255)));
            for (std::string& line : death.stderr_tail) {
                line.assign(generator_.below(6000), static_cast<char>(1 + generator_.below(255)));
            }
        }
        const int first_rank = over.deaths.front().rank;
        const std::string bytes = encode(over);
        EXPECT_LE(bytes.size(), kMaxMessageBytes + 4);
        MessageReader reader;
        reader.feed(bytes);
        const auto next = reader.next();
        ASSERT_TRUE(next) << next.error().message;
        EXPECT_EQ(std::get<JobOver>(**next).deaths.front().rank, first_rank) << "the first cause is the one that stays";
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMessages, ::testing::Values(1U, 2U, 3U, 20240501U));

}  // namespace
}  // namespace ddl::wire
