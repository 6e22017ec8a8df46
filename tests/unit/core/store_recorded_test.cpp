// Recorded conversations of PyTorch's clients with PyTorch's servers, replayed against ours: the answers must be the
// same bytes, however the input is cut. Where ours differs on purpose, kDifferences says how and why.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/store_session.hpp"
#include "support/store_vectors.hpp"

namespace ddl::core {
namespace {

constexpr ConnectionId kClient{1};
constexpr ConnectionId kOther{2};
constexpr ConnectionId kSilent{3};

struct Difference {
    const char* server_hex;
    bool closed;
    const char* why;
};

const std::map<std::string, Difference>& differences() {
    static constexpr Difference kImplicitCancel = {
        "0000000000000000", false, "a further request ends the wait, so no stray byte can follow its answer"};
    static constexpr Difference kEmptyBlob = {"0000000000000000", false,
                                              "a missing key is answered like the newer servers do, not by closing"};
    static const std::map<std::string, Difference> all = {
        {"2.13.0/libuv/hello_split_1_4", {"", false, "a handshake in two segments is as good as in one"}},
        {"2.13.0/libuv/hello_missing", {"", false, "without a handshake the client counts as one before 2.2"}},
        {"2.13.0/legacy/hello_missing", {"", false, "without a handshake the client counts as one before 2.2"}},
        {"2.13.0/libuv/wait_then_other_request", kImplicitCancel},
        {"2.13.0/legacy/wait_then_other_request", kImplicitCancel},
        {"2.1.2/legacy/wait_then_other_request", kImplicitCancel},
        {"1.13.1/default/wait_then_other_request", kImplicitCancel},
        {"2.13.0/legacy/get_missing_without_wait", kEmptyBlob},
        {"2.1.2/legacy/get_missing_without_wait", kEmptyBlob},
        {"1.13.1/default/get_missing_without_wait", kEmptyBlob},
    };
    return all;
}

OldRelease compat_of(wire::Dialect dialect) {
    switch (dialect) {
        case wire::Dialect::k1_13:
            return OldRelease::k1_13;
        case wire::Dialect::k2_1:
            return OldRelease::k2_1;
        case wire::Dialect::kModern:
            break;
    }
    return OldRelease::kAuto;
}

class Replay {
public:
    Replay(const test::StoreVector& vector, OldRelease compat, std::size_t step)
        : vector_(vector), sessions_(compat), step_(step) {
        sessions_.opened(kClient, "10.0.0.1", Instant{});
        sessions_.opened(kOther, "10.0.0.2", Instant{});
        if (vector.dialect == wire::Dialect::k1_13) {
            sessions_.opened(kSilent, "10.0.0.1", Instant{});
        }
        if (vector.dialect == wire::Dialect::kModern) {
            std::string hello;
            wire::append_handshake(hello);
            feed(kOther, hello);
        }
    }

    void run() {
        for (const std::string& request : vector_.before) {
            feed(kOther, request);
        }
        feed(kClient, vector_.handshake);
        EXPECT_EQ(test::to_hex(std::exchange(received_, {})), test::to_hex(vector_.handshake_reply));
        std::size_t expected = 0;
        for (const test::StoreStep& step : vector_.steps) {
            if (step.kind == test::StoreStep::Kind::kClient) {
                feed(kClient, step.bytes);
                continue;
            }
            expected += step.bytes.size();
            while (received_.size() < expected && next_concurrent_ < vector_.concurrent.size()) {
                feed(kOther, vector_.concurrent[next_concurrent_++]);
            }
        }
    }

    [[nodiscard]] const std::string& received() const {
        return received_;
    }
    [[nodiscard]] bool closed() const {
        return closed_;
    }

private:
    void feed(ConnectionId connection, std::string_view bytes) {
        while (!bytes.empty()) {
            const std::size_t length = std::min(step_, bytes.size());
            for (const StoreOutput& output : sessions_.received(connection, bytes.substr(0, length)).outputs) {
                if (output.connection == kClient) {
                    received_ += output.bytes;
                    closed_ = closed_ || output.close;
                }
            }
            bytes.remove_prefix(length);
        }
    }

    const test::StoreVector& vector_;
    StoreSessions sessions_;
    std::size_t step_;
    std::size_t next_concurrent_ = 0;
    std::string received_;
    bool closed_ = false;
};

class Recorded : public testing::TestWithParam<test::StoreVector> {
protected:
    static void replay(OldRelease compat, std::size_t step) {
        const test::StoreVector& vector = GetParam();
        const auto difference = differences().find(vector.id);
        const bool differs = difference != differences().end();
        Replay replay(vector, compat, step);
        replay.run();
        EXPECT_EQ(test::to_hex(replay.received()),
                  differs ? difference->second.server_hex : test::to_hex(vector.server_bytes));
        EXPECT_EQ(replay.closed(), differs ? difference->second.closed : vector.server_closed);
    }
};

TEST_P(Recorded, WholeSegments) {
    replay(compat_of(GetParam().dialect), std::string::npos);
}

TEST_P(Recorded, ByteByByte) {
    replay(compat_of(GetParam().dialect), 1);
}

TEST_P(Recorded, ReleaseFoundOut) {
    replay(OldRelease::kAuto, std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Vectors, Recorded, testing::ValuesIn(test::load_store_vectors()),
                         [](const auto& tested) { return test::vector_name(tested.param.id); });

TEST(RecordedDifferences, AreAboutVectorsThatExist) {
    std::map<std::string, int> known;
    for (const test::StoreVector& vector : test::load_store_vectors()) {
        known[vector.id] = 1;
    }
    EXPECT_EQ(known.size(), 146U);
    for (const auto& [id, difference] : differences()) {
        EXPECT_TRUE(known.contains(id)) << id << ": " << difference.why;
    }
}

}  // namespace
}  // namespace ddl::core
