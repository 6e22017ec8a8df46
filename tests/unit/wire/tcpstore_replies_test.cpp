// Replies: their bytes, and the client's side of reading them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/store_vectors.hpp"
#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

using Shape = ReplyParser::Shape;

struct Case {
    const char* name;
    Reply reply;
    Shape shape;
    std::size_t count;
    const char* hex;
};

void PrintTo(const Case& test, std::ostream* out) {
    *out << test.name;
}

class EveryReply : public testing::TestWithParam<Case> {};

TEST_P(EveryReply, Encodes) {
    std::string out;
    append_reply(out, GetParam().reply);
    EXPECT_EQ(test::to_hex(out), GetParam().hex);
}

TEST_P(EveryReply, ParsesWholeAndByteByByte) {
    const std::string bytes = test::from_hex(GetParam().hex);
    for (const std::size_t step : {bytes.size() + 1, std::size_t{1}}) {
        ReplyParser parser;
        parser.expect(GetParam().shape, GetParam().count);
        std::optional<Reply> found;
        for (std::size_t at = 0; at < bytes.size() && !found; at += step) {
            parser.feed(std::string_view(bytes).substr(at, step));
            const auto next = parser.next();
            ASSERT_TRUE(next) << next.error().message;
            found = *next;
        }
        if (bytes.empty()) {
            found = *parser.next();
        }
        ASSERT_TRUE(found);
        EXPECT_EQ(*found, GetParam().reply);
        EXPECT_EQ(parser.unread(), 0U);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Table, EveryReply,
    testing::Values(
        Case{"stop_waiting", reply::Byte{0}, Shape::kByte, 0, "00"},
        Case{"cancelled", reply::Byte{1}, Shape::kByte, 0, "01"},
        Case{"integer", reply::Integer{5}, Shape::kInteger, 0, "0500000000000000"},
        Case{"negative", reply::Integer{-2}, Shape::kInteger, 0, "feffffffffffffff"},
        Case{"nonce", reply::Nonce{0x04030201}, Shape::kNonce, 0, "01020304"},
        Case{"blob", reply::Blob{"hello"}, Shape::kBlob, 0, "050000000000000068656c6c6f"},
        Case{"empty_blob", reply::Blob{}, Shape::kBlob, 0, "0000000000000000"},
        Case{"no_blobs", reply::Blobs{}, Shape::kBlobs, 0, ""},
        Case{"blobs", reply::Blobs{{"x", "yy"}}, Shape::kBlobs, 2, "01000000000000007802000000000000007979"},
        Case{"popped", reply::Popped{2, "a"}, Shape::kPopped, 0, "0200000000000000010000000000000061"},
        Case{"popped_empty_item", reply::Popped{1, ""}, Shape::kPopped, 0, "01000000000000000000000000000000"},
        Case{"nothing_popped", reply::Popped{}, Shape::kPopped, 0, "0000000000000000"},
        Case{"no_keys", reply::Keys{}, Shape::kKeys, 0, "0000000000000000"},
        Case{"keys", reply::Keys{{"/only"}}, Shape::kKeys, 0, "010000000000000005000000000000002f6f6e6c79"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Replies, ChangeOfAWatchedKey) {
    std::string out;
    append_reply(out, reply::Change{reply::ChangeKind::kDeleted, "/k", "v", ""});
    EXPECT_EQ(test::to_hex(out), "0202000000000000002f6b0100000000000000760000000000000000");
}

TEST(ReplyParser, OneAfterTheOther) {
    ReplyParser parser;
    std::string bytes;
    append_reply(bytes, reply::Byte{0});
    append_reply(bytes, reply::Blob{"v"});
    append_reply(bytes, reply::Integer{3});
    parser.feed(bytes);
    parser.expect(Shape::kByte);
    EXPECT_EQ(parser.next(), Result<std::optional<Reply>>(reply::Byte{0}));
    parser.expect(Shape::kBlob);
    EXPECT_EQ(parser.next(), Result<std::optional<Reply>>(reply::Blob{"v"}));
    EXPECT_EQ(parser.unread(), 8U);
    parser.expect(Shape::kInteger);
    EXPECT_EQ(parser.next(), Result<std::optional<Reply>>(reply::Integer{3}));
}

TEST(ReplyParser, ValuesGrownByAppendMayBeLargerThanRequests) {
    const reply::Blob grown{std::string(std::size_t{12} << 20U, 'v')};
    std::string bytes;
    append_reply(bytes, grown);
    ReplyParser parser;
    parser.expect(Shape::kBlob);
    parser.feed(bytes);
    EXPECT_EQ(parser.next(), Result<std::optional<Reply>>(grown));
}

TEST(ReplyParser, NonsenseIsAnErrorBeforeAnyAllocation) {
    struct Bad {
        Shape shape;
        const char* hex;
    };
    for (const Bad& bad :
         {Bad{Shape::kBlob, "ffffffffffffffff"}, Bad{Shape::kBlob, "0000001000000000"},
          Bad{Shape::kPopped, "ffffffffffffffff"}, Bad{Shape::kKeys, "ffffffffffffffff"},
          Bad{Shape::kKeys, "ffffffffffffff7f"}, Bad{Shape::kKeys, "0100000000000000ffffffffffffffff"}}) {
        ReplyParser parser;
        parser.expect(bad.shape, 1);
        parser.feed(test::from_hex(bad.hex));
        EXPECT_FALSE(parser.next()) << bad.hex;
    }
}

}  // namespace
}  // namespace ddl::wire
