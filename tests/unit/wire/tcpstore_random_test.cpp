// Random requests and replies there and back again, and what happens when a few of their bytes are changed on the way.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

class Generator {
public:
    explicit Generator(std::uint32_t seed) : random_(seed) {
    }

    std::size_t below(std::size_t limit) {
        return random_() % limit;
    }

    std::string text() {
        std::string bytes(below(10) == 0 ? below(5000) : below(12), '\0');
        for (char& byte : bytes) {
            byte = static_cast<char>(random_());
        }
        return bytes;
    }

    std::vector<std::string> texts() {
        std::vector<std::string> list(below(5));
        for (std::string& entry : list) {
            entry = text();
        }
        return list;
    }

    std::int64_t number() {
        return static_cast<std::int64_t>((std::uint64_t{random_()} << 32U) | random_());
    }

    Request request() {
        switch (below(19)) {
            case 0:
                return op::Set{text(), text()};
            case 1:
                return op::CompareSet{text(), text(), text()};
            case 2:
                return op::Get{text()};
            case 3:
                return op::Add{text(), number()};
            case 4:
                return op::Check{texts()};
            case 5:
                return op::Wait{texts()};
            case 6:
                return op::NumKeys{};
            case 7:
                return op::DeleteKey{text()};
            case 8:
                return op::Append{text(), text()};
            case 9:
                return op::MultiGet{texts()};
            case 10:
                return op::MultiSet{{{text(), text()}, {text(), text()}}};
            case 11:
                return op::CancelWait{};
            case 12:
                return op::Ping{static_cast<std::uint32_t>(number())};
            case 13:
                return op::QueuePush{text(), text()};
            case 14:
                return op::QueuePop{text()};
            case 15:
                return op::QueueLen{text()};
            case 16:
                return op::ListKeys{};
            case 17:
                return op::Barrier{text(), number()};
            default:
                return op::WatchKey{text()};
        }
    }

private:
    std::mt19937 random_;
};

struct Expected {
    Reply reply;
    ReplyParser::Shape shape;
    std::size_t count;
};

Expected random_reply(Generator& generator) {
    using Shape = ReplyParser::Shape;
    const auto values = generator.texts();
    switch (generator.below(7)) {
        case 0:
            return {reply::Byte{static_cast<std::uint8_t>(generator.number())}, Shape::kByte, 0};
        case 1:
            return {reply::Integer{generator.number()}, Shape::kInteger, 0};
        case 2:
            return {reply::Nonce{static_cast<std::uint32_t>(generator.number())}, Shape::kNonce, 0};
        case 3:
            return {reply::Blob{generator.text()}, Shape::kBlob, 0};
        case 4:
            return {reply::Blobs{values}, Shape::kBlobs, values.size()};
        case 5:
            return {reply::Popped{static_cast<std::int64_t>(values.size()), values.empty() ? "" : values[0]},
                    Shape::kPopped, 0};
        default:
            return {reply::Keys{values}, Shape::kKeys, 0};
    }
}

class Random : public testing::TestWithParam<std::tuple<std::uint32_t, Dialect>> {
protected:
    Generator generator_{std::get<0>(GetParam())};
    Dialect dialect_ = std::get<1>(GetParam());
};

TEST_P(Random, RequestsComeBack) {
    std::string stream;
    std::vector<Request> sent;
    for (int i = 0; i < 200; ++i) {
        Request request = generator_.request();
        if (append_request(stream, request, dialect_)) {
            sent.push_back(std::move(request));
        }
    }
    RequestParser parser;
    parser.change_dialect(dialect_);
    std::vector<Request> received;
    for (std::size_t at = 0; at < stream.size();) {
        const std::size_t length = 1 + generator_.below(300);
        parser.feed(std::string_view(stream).substr(at, length));
        at += length;
        for (auto next = parser.next(); next && *next; next = parser.next()) {
            received.push_back(std::move(**next));
        }
    }
    EXPECT_TRUE(received == sent);
    EXPECT_GT(received.size(), 50U);
}

// Whatever is read from a damaged stream encodes to the bytes that were read: nothing is made up.
TEST_P(Random, DamagedRequestsAreReadOrRefusedButNotMadeUp) {
    for (int round = 0; round < 100; ++round) {
        std::string stream;
        for (int i = 0; i < 5; ++i) {
            append_request(stream, generator_.request(), dialect_);
        }
        for (int i = 0; i < 3 && !stream.empty(); ++i) {
            stream[generator_.below(stream.size())] = static_cast<char>(generator_.below(256));
        }
        RequestParser parser;
        parser.change_dialect(dialect_);
        parser.feed(stream);
        std::string again;
        for (auto next = parser.next(); next && *next; next = parser.next()) {
            ASSERT_TRUE(append_request(again, **next, dialect_));
        }
        ASSERT_EQ(stream.compare(0, again.size(), again), 0);
    }
}

TEST_P(Random, RepliesComeBack) {
    std::string stream;
    std::vector<Expected> sent;
    for (int i = 0; i < 200; ++i) {
        sent.push_back(random_reply(generator_));
        append_reply(stream, sent.back().reply);
    }
    ReplyParser parser;
    std::size_t at = 0;
    for (const Expected& expected : sent) {
        parser.expect(expected.shape, expected.count);
        auto next = parser.next();
        while (next && !*next && at < stream.size()) {
            const std::size_t length = 1 + generator_.below(100);
            parser.feed(std::string_view(stream).substr(at, length));
            at += length;
            next = parser.next();
        }
        ASSERT_TRUE(next && *next);
        ASSERT_TRUE(**next == expected.reply);
    }
    EXPECT_EQ(parser.unread(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Random,
                         testing::Combine(testing::Range(1U, 6U),
                                          testing::Values(Dialect::k1_13, Dialect::k2_1, Dialect::kModern)));

}  // namespace
}  // namespace ddl::wire
