// Every request of every dialect: its opcode, its bytes, and its way back through the parser however it is cut.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/store_vectors.hpp"
#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

using namespace std::string_literals;

constexpr int kNone = -1;

// Requests are made by functions: a braced list of twenty of them takes a sanitizing compiler minutes and gigabytes.
struct Case {
    const char* name;
    Request (*request)();
    int opcode_1_13;
    int opcode_2_1;
    int opcode_modern;
    const char* fields;  // hex of what follows the opcode
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {"set",
         []() -> Request {
             return op::Set{"/k", "v"};
         },
         0, 0, 1, "02000000000000002f6b010000000000000076"},
        {"compare_set",
         []() -> Request {
             return op::CompareSet{"/k", "", "v"};
         },
         1, 1, 2, "02000000000000002f6b0000000000000000010000000000000076"},
        {"get", []() -> Request { return op::Get{"/k"}; }, 2, 2, 3, "02000000000000002f6b"},
        {"add",
         []() -> Request {
             return op::Add{"/k", -2};
         },
         3, 3, 4, "02000000000000002f6bfeffffffffffffff"},
        {"check",
         []() -> Request {
             return op::Check{{"/a", "/b"}};
         },
         4, 4, 5, "020000000000000002000000000000002f6102000000000000002f62"},
        {"check_nothing", []() -> Request { return op::Check{}; }, 4, 4, 5, "0000000000000000"},
        {"wait", []() -> Request { return op::Wait{{"/a"}}; }, 5, 5, 6, "010000000000000002000000000000002f61"},
        {"num_keys", []() -> Request { return op::NumKeys{}; }, 6, 6, 7, ""},
        {"watch_key", []() -> Request { return op::WatchKey{"/k"}; }, 7, kNone, kNone, "02000000000000002f6b"},
        {"delete_key", []() -> Request { return op::DeleteKey{"/k"}; }, 8, 7, 8, "02000000000000002f6b"},
        {"append",
         []() -> Request {
             return op::Append{"/k", ""};
         },
         kNone, 8, 9, "02000000000000002f6b0000000000000000"},
        {"multi_get", []() -> Request { return op::MultiGet{{"/a"}}; }, kNone, 9, 10,
         "010000000000000002000000000000002f61"},
        {"multi_set",
         []() -> Request {
             return op::MultiSet{{{"/a", "x"}}};
         },
         kNone, 10, 11, "010000000000000002000000000000002f61010000000000000078"},
        {"cancel_wait", []() -> Request { return op::CancelWait{}; }, kNone, 11, 12, ""},
        {"ping", []() -> Request { return op::Ping{0x2C35}; }, kNone, kNone, 13, "352c0000"},
        {"queue_push",
         []() -> Request {
             return op::QueuePush{"/q", "i"};
         },
         kNone, kNone, 14, "02000000000000002f71010000000000000069"},
        {"queue_pop", []() -> Request { return op::QueuePop{"/q"}; }, kNone, kNone, 15, "02000000000000002f71"},
        {"queue_len", []() -> Request { return op::QueueLen{"/q"}; }, kNone, kNone, 16, "02000000000000002f71"},
        {"list_keys", []() -> Request { return op::ListKeys{}; }, kNone, kNone, 17, ""},
        {"barrier",
         []() -> Request {
             return op::Barrier{"/b", 3};
         },
         kNone, kNone, 18, "02000000000000002f620300000000000000"},
        {"binary",
         []() -> Request {
             return op::Set{std::string("/\0\n\xFF", 4), std::string("\0", 1)};
         },
         0, 0, 1, "04000000000000002f000aff010000000000000000"},
    };
    return all;
}

int opcode_in(const Case& test, Dialect dialect) {
    switch (dialect) {
        case Dialect::k1_13:
            return test.opcode_1_13;
        case Dialect::k2_1:
            return test.opcode_2_1;
        case Dialect::kModern:
            break;
    }
    return test.opcode_modern;
}

class EveryRequest : public testing::TestWithParam<std::tuple<std::size_t, Dialect>> {
protected:
    [[nodiscard]] const Case& test() const {
        return cases()[std::get<0>(GetParam())];
    }
    [[nodiscard]] Dialect dialect() const {
        return std::get<1>(GetParam());
    }
    [[nodiscard]] std::string expected() const {
        return std::string(1, static_cast<char>(opcode_in(test(), dialect()))) + test::from_hex(test().fields);
    }
};

TEST_P(EveryRequest, Encodes) {
    std::string out = "before";
    const bool known = append_request(out, test().request(), dialect());
    EXPECT_EQ(known, opcode_in(test(), dialect()) != kNone);
    EXPECT_EQ(out, known ? "before" + expected() : "before"s);
}

TEST_P(EveryRequest, ParsesWholeAndByteByByte) {
    if (opcode_in(test(), dialect()) == kNone) {
        EXPECT_EQ(opcode_of(dialect(), test().request()), std::nullopt);
        return;
    }
    const std::string bytes = expected();
    for (const std::size_t step : {bytes.size(), std::size_t{1}, std::size_t{5}}) {
        RequestParser parser;
        parser.change_dialect(dialect());
        std::optional<Request> found;
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            ASSERT_FALSE(found) << "before its last byte";
            parser.feed(std::string_view(bytes).substr(at, step));
            auto next = parser.next();
            ASSERT_TRUE(next) << next.error().message;
            found = std::move(*next);
        }
        ASSERT_TRUE(found);
        EXPECT_EQ(*found, test().request());
        EXPECT_EQ(parser.buffered(), 0U);
    }
}

std::string case_name(const testing::TestParamInfo<std::tuple<std::size_t, Dialect>>& tested) {
    constexpr std::array<const char*, 3> kDialects = {"_1_13", "_2_1", "_modern"};
    const auto [index, dialect] = tested.param;
    return cases()[index].name + std::string(kDialects[static_cast<std::size_t>(dialect)]);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryRequest,
                         testing::Combine(testing::Range(std::size_t{0}, cases().size()),
                                          testing::Values(Dialect::k1_13, Dialect::k2_1, Dialect::kModern)),
                         case_name);

TEST(OpcodeTables, EveryByteIsKnownOrRefused) {
    for (const Dialect dialect : {Dialect::k1_13, Dialect::k2_1, Dialect::kModern}) {
        for (int byte = 0; byte < 256; ++byte) {
            bool listed = false;
            for (const Case& test : cases()) {
                listed = listed || opcode_in(test, dialect) == byte;
            }
            EXPECT_EQ(request_kind(dialect, static_cast<std::uint8_t>(byte)).has_value(), listed) << byte;
            RequestParser parser;
            parser.change_dialect(dialect);
            parser.feed(std::string(1, static_cast<char>(byte)));
            EXPECT_EQ(parser.next().has_value(), listed) << byte;
        }
    }
}

TEST(RequestParser, PipelinedRequestsComeInOrder) {
    std::string bytes;
    for (const Case& test : cases()) {
        append_request(bytes, test.request());
    }
    RequestParser parser;
    parser.feed(bytes);
    for (const Case& test : cases()) {
        if (test.opcode_modern == kNone) {
            continue;
        }
        const auto next = parser.next();
        ASSERT_TRUE(next) << next.error().message;
        ASSERT_TRUE(*next) << test.name;
        EXPECT_EQ(**next, test.request()) << test.name;
    }
    const auto end = parser.next();
    ASSERT_TRUE(end);
    EXPECT_FALSE(*end);
}

TEST(RequestParser, AnyCutOfAStreamGivesTheSameRequests) {
    std::mt19937 random(20240501);
    std::string bytes;
    std::vector<Request> sent;
    for (int i = 0; i < 300; ++i) {
        const Case& test = cases()[random() % cases().size()];
        if (test.opcode_modern != kNone) {
            append_request(bytes, test.request());
            sent.push_back(test.request());
        }
    }
    RequestParser parser;
    std::vector<Request> received;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = 1 + random() % 40;
        parser.feed(std::string_view(bytes).substr(at, length));
        at += length;
        for (auto next = parser.next(); next && *next; next = parser.next()) {
            received.push_back(std::move(**next));
        }
    }
    EXPECT_EQ(received, sent);
}

TEST(RequestParser, PeeksOnlyBetweenRequests) {
    RequestParser parser;
    EXPECT_EQ(parser.peek_opcode(), std::nullopt);
    parser.feed("\x08\x02"s);
    EXPECT_EQ(parser.peek_opcode(), 8);
    ASSERT_TRUE(parser.next());
    EXPECT_EQ(parser.peek_opcode(), std::nullopt);
}

TEST(RequestParser, DialectCanChangeBetweenRequests) {
    RequestParser parser;
    parser.change_dialect(Dialect::k1_13);
    std::string bytes;
    append_request(bytes, op::NumKeys{}, Dialect::k1_13);
    append_request(bytes, op::DeleteKey{"/k"}, Dialect::k2_1);
    parser.feed(bytes);
    EXPECT_EQ(parser.next(), Result<std::optional<Request>>(op::NumKeys{}));
    parser.change_dialect(Dialect::k2_1);
    EXPECT_EQ(parser.next(), Result<std::optional<Request>>(op::DeleteKey{"/k"}));
}

TEST(RequestParser, ExtremeNumbers) {
    for (const std::int64_t number : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
                                      std::numeric_limits<std::int64_t>::max()}) {
        std::string bytes;
        append_request(bytes, op::Add{"/c", number});
        RequestParser parser;
        parser.feed(bytes);
        EXPECT_EQ(parser.next(), Result<std::optional<Request>>(op::Add{"/c", number}));
    }
}

TEST(Handshake, IsFiveBytes) {
    std::string out;
    append_handshake(out);
    EXPECT_EQ(test::to_hex(out), "00cef7853c");
}

}  // namespace
}  // namespace ddl::wire
