// Received bytes on their way into fields, and the little-endian numbers of the store protocol.
//
// Owned by a parser. Bytes are taken from the front once and never looked at again; the memory of taken bytes is given
// back in bulk, so that the cost stays linear however the stream is cut. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddl::wire {

class ByteQueue {
public:
    void feed(std::string_view bytes);

    [[nodiscard]] std::size_t size() const {
        return buffer_.size() - taken_;
    }

    [[nodiscard]] std::optional<std::uint8_t> peek_u8() const;

    // Nothing is taken unless all of it is there.
    [[nodiscard]] std::optional<std::uint8_t> take_u8();
    [[nodiscard]] std::optional<std::uint32_t> take_u32();
    [[nodiscard]] std::optional<std::uint64_t> take_u64();

    // Moves at most `count` bytes to the end of `into`; returns how many.
    std::size_t move_to(std::string& into, std::size_t count);

private:
    [[nodiscard]] std::optional<std::uint64_t> take_number(std::size_t bytes);
    void taken(std::size_t bytes);

    std::string buffer_;
    std::size_t taken_ = 0;
};

// One blob: a u64 length, then the bytes. Reads as far as the queue allows and goes on where it stopped.
class BlobReader {
public:
    enum class State : std::uint8_t { kNeedMore, kDone, kTooLong };

    // kDone moves the blob to `blob` and makes the reader ready for the next. `limit` is checked before any allocation.
    [[nodiscard]] State read(ByteQueue& queue, std::uint64_t limit, std::string& blob);

    // The length announced last, for messages.
    [[nodiscard]] std::uint64_t announced() const {
        return announced_;
    }

private:
    bool length_known_ = false;
    std::uint64_t announced_ = 0;
    std::string part_;
};

void append_u32(std::string& out, std::uint32_t value);
void append_u64(std::string& out, std::uint64_t value);
void append_i64(std::string& out, std::int64_t value);
void append_blob(std::string& out, std::string_view blob);

}  // namespace ddl::wire
