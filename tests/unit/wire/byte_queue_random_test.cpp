// ByteQueue and BlobReader against the simplest model there is: a string and a position.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "wire/byte_queue.hpp"

namespace ddl::wire {
namespace {

class QueueModel : public ::testing::TestWithParam<std::uint32_t> {
protected:
    std::size_t below(std::size_t limit) {
        return random_() % limit;
    }
    std::string bytes(std::size_t size) {
        std::string made(size, '\0');
        for (char& byte : made) {
            byte = static_cast<char>(random_());
        }
        return made;
    }
    // The next `size` bytes of the model as a little-endian number; nullopt when there are fewer.
    std::optional<std::uint64_t> number(std::size_t size) {
        if (model_.size() - at_ < size) {
            return std::nullopt;
        }
        std::uint64_t value = 0;
        for (std::size_t i = size; i > 0; --i) {
            value = value << 8U | static_cast<std::uint8_t>(model_[at_ + i - 1]);
        }
        at_ += size;
        return value;
    }

    std::mt19937 random_{GetParam()};
    ByteQueue queue_;
    std::string model_;
    std::size_t at_ = 0;
};

TEST_P(QueueModel, EveryCallDoesWhatTheModelDoes) {
    for (int step = 0; step < 20'000; ++step) {
        switch (below(6)) {
            case 0: {
                const std::string more = bytes(below(40));
                queue_.feed(more);
                model_ += more;
                break;
            }
            case 1:
                ASSERT_EQ(queue_.take_u8(), number(1));
                break;
            case 2:
                ASSERT_EQ(queue_.take_u32(), number(4));
                break;
            case 3:
                ASSERT_EQ(queue_.take_u64(), number(8));
                break;
            case 4: {
                std::string into = "kept";
                const std::size_t wanted = below(30);
                const std::size_t moved = queue_.move_to(into, wanted);
                ASSERT_EQ(moved, std::min(wanted, model_.size() - at_));
                ASSERT_EQ(into, "kept" + model_.substr(at_, moved));
                at_ += moved;
                break;
            }
            default: {
                const std::size_t before = queue_.size();
                const auto seen = queue_.peek_u8();
                ASSERT_EQ(seen.has_value(), at_ < model_.size());
                ASSERT_TRUE(!seen || *seen == static_cast<std::uint8_t>(model_[at_]));
                ASSERT_EQ(queue_.size(), before) << "looking takes nothing";
            }
        }
        ASSERT_EQ(queue_.size(), model_.size() - at_);
    }
}

TEST_P(QueueModel, BlobsComeBackHoweverTheyAreCut) {
    std::vector<std::string> sent;
    std::string stream;
    for (int i = 0; i < 200; ++i) {
        sent.push_back(bytes(below(20) == 0 ? below(3000) : below(20)));
        append_blob(stream, sent.back());
    }
    BlobReader reader;
    std::vector<std::string> received;
    for (std::size_t at = 0; at < stream.size();) {
        const std::size_t size = 1 + below(50);
        queue_.feed(std::string_view(stream).substr(at, size));
        at += size;
        std::string blob;
        while (reader.read(queue_, 3000, blob) == BlobReader::State::kDone) {
            received.push_back(std::exchange(blob, {}));
        }
    }
    EXPECT_EQ(received, sent);
    EXPECT_EQ(queue_.size(), 0U);
}

TEST_P(QueueModel, ABlobOverTheLimitIsNeverHandedOut) {
    for (int i = 0; i < 200; ++i) {
        ByteQueue queue;
        BlobReader reader;
        const std::uint64_t limit = below(100);
        const std::size_t size = below(200);
        std::string stream;
        append_blob(stream, bytes(size));
        std::string blob = "untouched";
        BlobReader::State state = BlobReader::State::kNeedMore;
        for (std::size_t at = 0; at < stream.size() && state == BlobReader::State::kNeedMore; ++at) {
            queue.feed(stream.substr(at, 1));
            state = reader.read(queue, limit, blob);
        }
        EXPECT_EQ(state, size > limit ? BlobReader::State::kTooLong : BlobReader::State::kDone);
        EXPECT_EQ(reader.announced(), size);
        EXPECT_EQ(blob, size > limit ? "untouched" : stream.substr(8));
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, QueueModel, ::testing::Values(1U, 2U, 3U, 20240501U));

}  // namespace
}  // namespace ddl::wire
