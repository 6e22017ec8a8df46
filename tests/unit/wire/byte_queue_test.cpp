#include "wire/byte_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace ddl::wire {
namespace {

using namespace std::string_literals;

TEST(ByteQueue, NumbersAreLittleEndian) {
    ByteQueue queue;
    queue.feed("\x01\x02\x03\x04\x05\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
    EXPECT_EQ(queue.take_u8(), 1);
    EXPECT_EQ(queue.take_u32(), 0x05040302U);
    EXPECT_EQ(queue.take_u64(), 0xFFFFFFFFFFFFFFFEU);
    EXPECT_EQ(queue.size(), 0U);
}

TEST(ByteQueue, TakesNothingUnlessAllIsThere) {
    ByteQueue queue;
    EXPECT_EQ(queue.take_u8(), std::nullopt);
    queue.feed("\x01\x02\x03"s);
    EXPECT_EQ(queue.take_u32(), std::nullopt);
    EXPECT_EQ(queue.size(), 3U);
    EXPECT_EQ(queue.peek_u8(), 1);
    queue.feed("\x04"s);
    EXPECT_EQ(queue.take_u32(), 0x04030201U);
    EXPECT_EQ(queue.peek_u8(), std::nullopt);
}

TEST(ByteQueue, MovesAtMostWhatIsThere) {
    ByteQueue queue;
    queue.feed("abcdef");
    std::string out = ">";
    EXPECT_EQ(queue.move_to(out, 2), 2U);
    EXPECT_EQ(queue.move_to(out, 10), 4U);
    EXPECT_EQ(out, ">abcdef");
    EXPECT_EQ(queue.move_to(out, 1), 0U);
}

// The order of bytes survives the moves that give memory back.
TEST(ByteQueue, LongStreamsKeepTheirOrder) {
    ByteQueue queue;
    std::uint64_t written = 0;
    std::uint64_t read = 0;
    for (int round = 0; round < 2000; ++round) {
        for (int i = 0; i < 7; ++i) {
            std::string bytes;
            append_u64(bytes, written++);
            queue.feed(bytes);
        }
        for (int i = 0; i < 6; ++i) {
            ASSERT_EQ(queue.take_u64(), read++);
        }
    }
    while (const auto value = queue.take_u64()) {
        ASSERT_EQ(*value, read++);
    }
    EXPECT_EQ(read, written);
}

TEST(BlobReader, ReadsByteByByte) {
    std::string bytes;
    append_blob(bytes, "key");
    append_blob(bytes, "");
    append_blob(bytes, "x");
    ByteQueue queue;
    BlobReader reader;
    std::vector<std::string> blobs;
    for (const char byte : bytes) {
        queue.feed(std::string_view(&byte, 1));
        std::string blob;
        while (reader.read(queue, 3, blob) == BlobReader::State::kDone) {
            blobs.push_back(blob);
        }
    }
    EXPECT_EQ(blobs, (std::vector<std::string>{"key", "", "x"}));
}

TEST(BlobReader, RefusesByTheLengthAlone) {
    std::string bytes;
    append_u64(bytes, 0xFFFFFFFFFFFFFFFF);
    ByteQueue queue;
    queue.feed(bytes);
    BlobReader reader;
    std::string blob;
    EXPECT_EQ(reader.read(queue, 8192, blob), BlobReader::State::kTooLong);
    EXPECT_EQ(reader.announced(), 0xFFFFFFFFFFFFFFFFU);
    EXPECT_LT(blob.capacity(), 64U);
}

// Quadratic work would take minutes here, linear work takes well under a second.
TEST(BlobReader, CostIsLinearHoweverTheStreamIsCut) {
    constexpr std::size_t kBytes = std::size_t{4} << 20U;
    std::string bytes;
    append_blob(bytes, std::string(kBytes, 'v'));
    ByteQueue queue;
    BlobReader reader;
    std::string blob;
    BlobReader::State state = BlobReader::State::kNeedMore;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        queue.feed(std::string_view(bytes).substr(at, 3));
        state = reader.read(queue, kBytes, blob);
    }
    EXPECT_EQ(state, BlobReader::State::kDone);
    EXPECT_EQ(blob.size(), kBytes);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(Append, Encodings) {
    std::string out;
    append_u32(out, 0x3C85F7CE);
    append_i64(out, -7);
    append_blob(out, "ab");
    EXPECT_EQ(out, "\xCE\xF7\x85\x3C\xF9\xFF\xFF\xFF\xFF\xFF\xFF\xFF\2\0\0\0\0\0\0\0ab"s);
}

}  // namespace
}  // namespace ddl::wire
