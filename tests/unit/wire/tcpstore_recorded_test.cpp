// The parser and the encoder against what real clients sent: every recorded byte is part of a request that encodes to
// the same bytes again.
#include <gtest/gtest.h>

#include <string>

#include "support/store_vectors.hpp"
#include "wire/first_bytes.hpp"
#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

class Recorded : public testing::TestWithParam<test::StoreVector> {};

TEST_P(Recorded, RequestsSurviveDecodingAndEncoding) {
    const test::StoreVector& vector = GetParam();
    std::string stream = vector.handshake;
    for (const test::StoreStep& step : vector.steps) {
        stream += step.kind == test::StoreStep::Kind::kClient ? step.bytes : std::string();
    }
    if (stream.empty()) {
        return;  // an old client connects without a word
    }
    std::string again;
    if (vector.dialect == Dialect::kModern) {
        ASSERT_EQ(classify_first_bytes(stream), FirstBytes::kStore);
        append_handshake(again);
    }
    RequestParser parser;
    parser.change_dialect(vector.dialect);
    parser.feed(std::string_view(stream).substr(again.size()));
    for (auto next = parser.next();; next = parser.next()) {
        ASSERT_TRUE(next) << next.error().message;
        if (!*next) {
            break;
        }
        append_request(again, **next, vector.dialect);
    }
    EXPECT_EQ(test::to_hex(again), test::to_hex(stream));
}

std::vector<test::StoreVector> of_real_clients() {
    std::vector<test::StoreVector> chosen;
    for (test::StoreVector& vector : test::load_store_vectors()) {
        if (vector.kind != "raw_probe") {
            chosen.push_back(std::move(vector));
        }
    }
    return chosen;
}

INSTANTIATE_TEST_SUITE_P(Clients, Recorded, testing::ValuesIn(of_real_clients()),
                         [](const auto& tested) { return test::vector_name(tested.param.id); });

}  // namespace
}  // namespace ddl::wire
