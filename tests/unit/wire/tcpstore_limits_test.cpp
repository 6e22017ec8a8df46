// The limits of requests: exactly at the limit is served, one more is an error, known from the length alone.
#include <gtest/gtest.h>

#include <string>

#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

std::string bytes_of(const Request& request) {
    std::string bytes;
    append_request(bytes, request);
    return bytes;
}

Result<std::optional<Request>> parse(std::string_view bytes) {
    RequestParser parser;
    parser.feed(bytes);
    return parser.next();
}

std::string error_of(std::string_view bytes) {
    const auto result = parse(bytes);
    return result ? "no error" : result.error().message;
}

TEST(Limits, KeyOf8192Bytes) {
    const op::Get longest{std::string(8192, 'k')};
    EXPECT_EQ(parse(bytes_of(longest)), Result<std::optional<Request>>(longest));
    EXPECT_EQ(error_of(bytes_of(op::Get{std::string(8193, 'k')})),
              "opcode 3: key of 8193 bytes is over the limit of 8192");
}

TEST(Limits, ValueOf8MiB) {
    const op::Set largest{"/k", std::string(8U << 20U, 'v')};
    EXPECT_EQ(parse(bytes_of(largest)), Result<std::optional<Request>>(largest));
    EXPECT_EQ(error_of(bytes_of(op::Set{"/k", std::string((8U << 20U) + 1, 'v')})),
              "opcode 1: value of 8388609 bytes is over the limit of 8388608");
}

TEST(Limits, EveryFieldOfEveryRequest) {
    const std::string key(8193, 'k');
    const std::string value((8U << 20U) + 1, 'v');
    const std::vector<Request> bad = {op::Set{key, ""},
                                      op::CompareSet{key, "", ""},
                                      op::CompareSet{"/k", value, ""},
                                      op::CompareSet{"/k", "", value},
                                      op::Add{key, 1},
                                      op::Check{{"/a", key}},
                                      op::Wait{{"/a", key}},
                                      op::DeleteKey{key},
                                      op::Append{key, ""},
                                      op::Append{"/k", value},
                                      op::MultiGet{{key}},
                                      op::MultiSet{{{"/a", "x"}, {key, "y"}}},
                                      op::MultiSet{{{"/a", "x"}, {"/b", value}}},
                                      op::QueuePush{key, ""},
                                      op::QueuePush{"/q", value},
                                      op::QueuePop{key},
                                      op::QueueLen{key},
                                      op::Barrier{key, 2}};
    for (const Request& request : bad) {
        EXPECT_FALSE(parse(bytes_of(request))) << "request kind " << request.index();
    }
}

TEST(Limits, KeysPerRequest) {
    for (const int opcode : {5, 6, 10, 11}) {
        std::string at_limit(1, static_cast<char>(opcode));
        append_u64(at_limit, 131072);
        const auto waiting = parse(at_limit);
        ASSERT_TRUE(waiting);
        EXPECT_FALSE(*waiting);
        std::string over(1, static_cast<char>(opcode));
        append_u64(over, 131073);
        EXPECT_EQ(error_of(over), "opcode " + std::to_string(opcode) + ": 131073 keys are over the limit of 131072");
        std::string negative(1, static_cast<char>(opcode));
        append_i64(negative, -1);
        EXPECT_FALSE(parse(negative));
    }
    op::Check most;
    most.keys.assign(131072, "/k");
    EXPECT_EQ(parse(bytes_of(most)), Result<std::optional<Request>>(most));
}

TEST(Limits, LengthsAreJudgedBeforeTheirBytesArrive) {
    for (const std::uint64_t length : {std::uint64_t{8193}, std::uint64_t{1} << 40U, ~std::uint64_t{0}}) {
        std::string bytes(1, '\3');
        append_u64(bytes, length);
        EXPECT_FALSE(parse(bytes)) << length;
    }
}

// Every field within its own limit, all together far beyond what one connection may hold.
TEST(Limits, WholeRequest) {
    RequestParser parser;
    std::string start(1, '\x0B');
    append_u64(start, 1000);
    parser.feed(start);
    std::string pair;
    append_blob(pair, "/k");
    append_blob(pair, std::string(std::size_t{8} << 20U, 'v'));
    std::size_t pairs = 0;
    std::string error;
    for (; pairs < 1000 && error.empty(); ++pairs) {
        parser.feed(pair);
        const auto next = parser.next();
        error = next ? "" : next.error().message;
    }
    EXPECT_EQ(pairs, 32U);
    EXPECT_NE(error.find("over the limit of 268435456"), std::string::npos) << error;
    EXPECT_LE(parser.buffered(), kMaxRequestBytes + pair.size());
}

TEST(Limits, SizeOfHeldBytesIsKnown) {
    RequestParser parser;
    parser.feed("\x03");
    ASSERT_TRUE(parser.next());
    EXPECT_EQ(parser.buffered(), 0U);
    std::string bytes(1, '\x0B');
    append_u64(bytes, 2);
    append_blob(bytes, "/key");
    RequestParser other;
    other.feed(bytes);
    ASSERT_TRUE(other.next());
    EXPECT_GE(other.buffered(), 4U);
}

}  // namespace
}  // namespace ddl::wire
