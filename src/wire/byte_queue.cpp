#include "wire/byte_queue.hpp"

#include <algorithm>
#include <utility>

namespace ddl::wire {
namespace {

// Below this much taken memory a move of the rest isn't worth it.
constexpr std::size_t kCompactBytes = 4096;

void append_number(std::string& out, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
        out.push_back(static_cast<char>(value >> (8U * i) & 0xFFU));
    }
}

}  // namespace

void ByteQueue::feed(std::string_view bytes) {
    buffer_.append(bytes);
}

std::optional<std::uint64_t> ByteQueue::take_number(std::size_t bytes) {
    if (size() < bytes) {
        return std::nullopt;
    }
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i > 0; --i) {
        value = value << 8U | static_cast<std::uint8_t>(buffer_[taken_ + i - 1]);
    }
    taken(bytes);
    return value;
}

std::optional<std::uint8_t> ByteQueue::peek_u8() const {
    return size() == 0 ? std::nullopt : std::optional(static_cast<std::uint8_t>(buffer_[taken_]));
}

std::optional<std::uint8_t> ByteQueue::take_u8() {
    const auto number = take_number(1);
    return number ? std::optional(static_cast<std::uint8_t>(*number)) : std::nullopt;
}

std::optional<std::uint32_t> ByteQueue::take_u32() {
    const auto number = take_number(4);
    return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

std::optional<std::uint64_t> ByteQueue::take_u64() {
    return take_number(8);
}

std::size_t ByteQueue::move_to(std::string& into, std::size_t count) {
    const std::size_t moved = std::min(count, size());
    into.append(buffer_, taken_, moved);
    taken(moved);
    return moved;
}

void ByteQueue::taken(std::size_t bytes) {
    taken_ += bytes;
    if (taken_ == buffer_.size()) {
        if (buffer_.capacity() > 16 * kCompactBytes) {
            buffer_ = std::string();  // an idle connection must not keep the memory of its largest message
        }
        buffer_.clear();
        taken_ = 0;
    } else if (taken_ >= kCompactBytes && taken_ >= buffer_.size() / 2) {
        buffer_.erase(0, taken_);
        taken_ = 0;
    }
}

BlobReader::State BlobReader::read(ByteQueue& queue, std::uint64_t limit, std::string& blob) {
    if (!length_known_) {
        const auto length = queue.take_u64();
        if (!length) {
            return State::kNeedMore;
        }
        announced_ = *length;
        length_known_ = true;
    }
    if (announced_ > limit) {
        return State::kTooLong;
    }
    queue.move_to(part_, static_cast<std::size_t>(announced_) - part_.size());
    if (part_.size() < announced_) {
        return State::kNeedMore;
    }
    blob = std::exchange(part_, std::string());
    length_known_ = false;
    return State::kDone;
}

void append_u32(std::string& out, std::uint32_t value) {
    append_number(out, value, 4);
}

void append_u64(std::string& out, std::uint64_t value) {
    append_number(out, value, 8);
}

void append_i64(std::string& out, std::int64_t value) {
    append_number(out, static_cast<std::uint64_t>(value), 8);
}

void append_blob(std::string& out, std::string_view blob) {
    append_u64(out, blob.size());
    out.append(blob);
}

}  // namespace ddl::wire
