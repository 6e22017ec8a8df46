// Streams of requests and replies: what the parsers hold, when they decide, and what they leave for the next.
#include <gtest/gtest.h>

#include <limits>

#include <random>
#include <string>
#include <vector>

#include "wire/first_bytes.hpp"
#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

using namespace std::string_literals;
using Shape = ReplyParser::Shape;

std::string bytes_of(const Request& request, Dialect dialect = Dialect::kModern) {
    std::string bytes;
    EXPECT_TRUE(append_request(bytes, request, dialect));
    return bytes;
}

std::string bytes_of_reply(const Reply& reply) {
    std::string bytes;
    append_reply(bytes, reply);
    return bytes;
}

std::string announced(std::uint8_t opcode, std::uint64_t first) {
    std::string bytes(1, static_cast<char>(opcode));
    append_u64(bytes, first);
    return bytes;
}

// ---- requests -----------------------------------------------------------------------------------------------------

TEST(RequestStream, NeverHoldsMoreThanItWasFed) {
    std::mt19937 random(7);
    const std::string stream = bytes_of(op::MultiSet{{{"/a", std::string(500, 'x')}, {"/b", ""}}}) +
                               bytes_of(op::Check{{"/k", "/l", "/m"}}) + bytes_of(op::Add{"/n", 5}) +
                               bytes_of(op::Ping{9}) + bytes_of(op::CompareSet{"/c", "d", "e"});
    // What a blob costs beyond its bytes counts as held, so that very many empty ones are not free.
    constexpr std::size_t kCostOfBlobs = 16 * sizeof(std::string);
    for (int round = 0; round < 50; ++round) {
        RequestParser parser;
        std::size_t fed = 0;
        std::size_t requests = 0;
        while (fed < stream.size()) {
            const std::size_t size = std::min<std::size_t>(1 + random() % 30, stream.size() - fed);
            parser.feed(std::string_view(stream).substr(fed, size));
            fed += size;
            for (auto next = parser.next(); next.value(); next = parser.next()) {
                ++requests;
            }
            EXPECT_LE(parser.buffered(), fed + kCostOfBlobs);
        }
        EXPECT_EQ(requests, 5U);
        EXPECT_EQ(parser.buffered(), 0U);
    }
}

TEST(RequestStream, AChangeOfDialectWaitsForTheRequestUnderWay) {
    RequestParser parser;
    parser.change_dialect(Dialect::k1_13);
    const std::string watch = bytes_of(op::WatchKey{"/k"}, Dialect::k1_13);  // 7; in 2.1 that deletes
    parser.feed(watch.substr(0, 4));
    ASSERT_FALSE(parser.next().value());
    parser.change_dialect(Dialect::k2_1);
    parser.feed(watch.substr(4) + bytes_of(op::DeleteKey{"/k"}, Dialect::k2_1));
    EXPECT_EQ(parser.next(), Result<std::optional<Request>>(op::WatchKey{"/k"}));
    EXPECT_EQ(parser.next(), Result<std::optional<Request>>(op::DeleteKey{"/k"}));
    EXPECT_EQ(parser.dialect(), Dialect::k2_1);
}

TEST(RequestStream, SevenAndEightMeanOtherThingsInEachDialect) {
    const std::string seven = "\x07"s + std::string("\x02\0\0\0\0\0\0\0/k", 10);
    const auto first_of = [&seven](Dialect dialect) {
        RequestParser parser;
        parser.change_dialect(dialect);
        parser.feed(seven);
        return parser.next().value();
    };
    EXPECT_EQ(first_of(Dialect::k1_13), std::optional<Request>(op::WatchKey{"/k"}));
    EXPECT_EQ(first_of(Dialect::k2_1), std::optional<Request>(op::DeleteKey{"/k"}));
    EXPECT_EQ(first_of(Dialect::kModern), std::optional<Request>(op::NumKeys{}));
}

TEST(RequestStream, AnEmptyGroupIsWholeAtOnce) {
    for (const Request& request :
         std::vector<Request>{op::Check{}, op::Wait{}, op::MultiGet{}, op::MultiSet{}, op::NumKeys{}, op::ListKeys{}}) {
        RequestParser parser;
        parser.feed(bytes_of(request));
        EXPECT_EQ(parser.next(), Result<std::optional<Request>>(request)) << request.index();
    }
}

TEST(RequestStream, ErrorsNameTheOpcodeOfTheClientsOwnTable) {
    struct Row {
        Dialect dialect;
        std::string bytes;
        const char* error;
    };
    const Row table[] = {
        {Dialect::kModern, "\x13", "unknown opcode 19"},
        {Dialect::kModern, std::string(1, '\0'), "unknown opcode 0"},
        {Dialect::k2_1, "\x0C", "unknown opcode 12"},
        {Dialect::k1_13, "\x09", "unknown opcode 9"},
        {Dialect::k1_13, announced(2, 9000), "opcode 2: key of 9000 bytes is over the limit of 8192"},
        {Dialect::kModern, announced(3, 9000), "opcode 3: key of 9000 bytes is over the limit of 8192"},
        {Dialect::k2_1, announced(4, 200'000), "opcode 4: 200000 keys are over the limit of 131072"},
        {Dialect::kModern, announced(11, 200'000), "opcode 11: 200000 keys are over the limit of 131072"},
    };
    for (const Row& row : table) {
        RequestParser parser;
        parser.change_dialect(row.dialect);
        parser.feed(row.bytes);
        const auto next = parser.next();
        ASSERT_FALSE(next) << row.error;
        EXPECT_EQ(next.error().message, row.error);
    }
}

TEST(RequestStream, VeryManyEmptyValuesCostWhatTheyCost) {
    // 131072 pairs of a short key and an empty value: a few MiB on the wire, and that much more as texts.
    RequestParser parser;
    std::string bytes = announced(11, 131072);
    for (int i = 0; i < 131072; ++i) {
        append_blob(bytes, "/k");
        append_blob(bytes, "");
    }
    parser.feed(std::string_view(bytes).substr(0, bytes.size() - 1));
    ASSERT_FALSE(parser.next().value());
    EXPECT_GT(parser.buffered(), std::size_t{131072} * sizeof(std::string));
    parser.feed(std::string_view(bytes).substr(bytes.size() - 1));
    const auto next = parser.next();
    ASSERT_TRUE(next && *next);
    EXPECT_EQ(std::get<op::MultiSet>(**next).pairs.size(), 131072U);
    EXPECT_EQ(parser.buffered(), 0U);
}

// ---- replies ------------------------------------------------------------------------------------------------------

TEST(ReplyStream, AnExpectationForgetsTheOneBefore) {
    ReplyParser parser;
    parser.expect(Shape::kKeys);
    parser.feed(bytes_of_reply(reply::Keys{{"/a", "/b"}}));
    EXPECT_EQ(parser.next(), Result<std::optional<Reply>>(reply::Keys{{"/a", "/b"}}));
    parser.expect(Shape::kPopped);
    parser.feed(bytes_of_reply(reply::Popped{0, ""}));
    EXPECT_EQ(parser.next(), Result<std::optional<Reply>>(reply::Popped{0, ""}));
    parser.expect(Shape::kBlobs, 3);
    parser.feed(bytes_of_reply(reply::Blobs{{"", "x", ""}}));
    EXPECT_EQ(parser.next(), Result<std::optional<Reply>>(reply::Blobs{{"", "x", ""}}));
    EXPECT_EQ(parser.unread(), 0U);
}

TEST(ReplyStream, AsksForMoreAtEveryByteButTheLast) {
    const std::vector<std::pair<Shape, Reply>> replies = {{Shape::kInteger, reply::Integer{-1}},
                                                          {Shape::kNonce, reply::Nonce{1}},
                                                          {Shape::kBlob, reply::Blob{"value"}},
                                                          {Shape::kPopped, reply::Popped{3, "item"}},
                                                          {Shape::kKeys, reply::Keys{{"/a", "", "/b"}}}};
    for (const auto& [shape, reply] : replies) {
        const std::string bytes = bytes_of_reply(reply);
        for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
            ReplyParser parser;
            parser.expect(shape);
            parser.feed(bytes.substr(0, cut));
            const auto early = parser.next();
            ASSERT_TRUE(early) << early.error().message;
            ASSERT_FALSE(*early) << "after " << cut << " of " << bytes.size() << " bytes";
            parser.feed(bytes.substr(cut));
            EXPECT_EQ(parser.next(), Result<std::optional<Reply>>(reply));
        }
    }
}

TEST(ReplyStream, TooMuchIsKnownFromItsLength) {
    for (const Shape shape : {Shape::kBlob, Shape::kBlobs}) {
        ReplyParser parser;
        parser.expect(shape, 2);
        std::string bytes;
        append_u64(bytes, kMaxReplyBytes + 1);
        parser.feed(bytes);
        const auto next = parser.next();
        ASSERT_FALSE(next);
        EXPECT_NE(next.error().message.find("over the limit of 268435456"), std::string::npos) << next.error().message;
    }
}

TEST(ReplyStream, CountsThatMakeNoSenseAskWhoThatIs) {
    for (const std::int64_t count :
         {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
        ReplyParser parser;
        parser.expect(Shape::kKeys);
        std::string bytes;
        append_i64(bytes, count);
        parser.feed(bytes);
        const auto next = parser.next();
        ASSERT_FALSE(next);
        EXPECT_EQ(next.error().message,
                  "the reply's count " + std::to_string(count) + " makes no sense: is this a TCPStore server?");
    }
}

// Whatever a server sends, a client needs more, has an answer or closes; what it holds is bounded by what came.
TEST(ReplyStream, RandomBytesAreAnsweredOneWayOrAnother) {
    std::mt19937 random(99);
    constexpr Shape kShapes[] = {Shape::kByte,  Shape::kInteger, Shape::kNonce, Shape::kBlob,
                                 Shape::kBlobs, Shape::kPopped,  Shape::kKeys};
    for (int round = 0; round < 2000; ++round) {
        ReplyParser parser;
        std::size_t fed = 0;
        for (int reply = 0; reply < 5; ++reply) {
            parser.expect(kShapes[random() % 7], random() % 4);
            std::string bytes(random() % 40, '\0');
            for (char& byte : bytes) {  // small numbers, so that lengths and counts come near to being right
                byte = random() % 3 == 0 ? static_cast<char>(random() % 20) : '\0';
            }
            parser.feed(bytes);
            fed += bytes.size();
            const auto next = parser.next();
            if (!next) {
                EXPECT_FALSE(next.error().message.empty());
                break;
            }
            ASSERT_LE(parser.unread(), fed);
        }
    }
}

// ---- first bytes --------------------------------------------------------------------------------------------------

// One verdict for all that begins alike: bytes that come later change nothing.
TEST(FirstBytesOfAll, AVerdictNeverChanges) {
    std::mt19937 random(11);
    for (int first = 0; first < 256; ++first) {
        for (int round = 0; round < 40; ++round) {
            std::string bytes(1, static_cast<char>(first));
            for (int i = 0; i < 8; ++i) {
                const std::string likely = "\xDDLA\x01\xCE\xF7\x85\x3C"s + std::string(2, '\0');
                bytes += random() % 2 == 0 ? likely[random() % likely.size()] : static_cast<char>(random());
            }
            FirstBytes verdict = FirstBytes::kNeedMore;
            for (std::size_t size = 1; size <= bytes.size(); ++size) {
                const FirstBytes now = classify_first_bytes(std::string_view(bytes).substr(0, size));
                ASSERT_TRUE(verdict == FirstBytes::kNeedMore || now == verdict) << first << " after " << size;
                verdict = now;
            }
            ASSERT_NE(verdict, FirstBytes::kNeedMore) << first;
        }
    }
}

TEST(FirstBytesOfAll, EveryOldRequestIsTakenForOne) {
    const std::vector<Request> requests = {op::Set{"/k", "v"},   op::CompareSet{"/k", "", ""},
                                           op::Get{"/k"},        op::Add{"/k", 1},
                                           op::Check{{"/k"}},    op::Wait{{"/k"}},
                                           op::NumKeys{},        op::WatchKey{"/k"},
                                           op::DeleteKey{"/k"},  op::Append{"/k", ""},
                                           op::MultiGet{{"/k"}}, op::MultiSet{{{"/k", ""}}},
                                           op::CancelWait{}};
    for (const Request& request : requests) {
        for (const Dialect dialect : {Dialect::k1_13, Dialect::k2_1}) {
            std::string bytes;
            if (append_request(bytes, request, dialect)) {
                EXPECT_EQ(classify_first_bytes(bytes), FirstBytes::kOldStore) << request.index();
            }
        }
    }
    std::string modern;
    append_handshake(modern);
    EXPECT_EQ(classify_first_bytes(modern), FirstBytes::kStore);
}

}  // namespace
}  // namespace ddl::wire
