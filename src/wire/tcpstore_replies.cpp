// ReplyParser: the client's side.
#include <algorithm>

#include "wire/tcpstore.hpp"

namespace ddl::wire {

void ReplyParser::expect(Shape shape, std::size_t count) {
    shape_ = shape;
    blobs_wanted_ = shape == Shape::kBlob ? 1 : count;
    number_.reset();
    blobs_.clear();
    reply_bytes_ = 0;
}

void ReplyParser::feed(std::string_view bytes) {
    input_.feed(bytes);
}

Result<std::optional<Reply>> ReplyParser::next() {
    switch (shape_) {
        case Shape::kByte:
            if (const auto byte = input_.take_u8()) {
                return reply::Byte{*byte};
            }
            return std::nullopt;
        case Shape::kInteger:
            if (const auto number = input_.take_u64()) {
                return reply::Integer{static_cast<std::int64_t>(*number)};
            }
            return std::nullopt;
        case Shape::kNonce:
            if (const auto nonce = input_.take_u32()) {
                return reply::Nonce{*nonce};
            }
            return std::nullopt;
        case Shape::kBlob:
        case Shape::kBlobs:
            break;
        case Shape::kPopped:
        case Shape::kKeys:
            if (const auto counted = read_count(); !counted || !*counted) {
                return counted ? Result<std::optional<Reply>>(std::nullopt) : tl::unexpected(counted.error());
            }
    }
    const auto complete = read_blobs();
    if (!complete) {
        return tl::unexpected(complete.error());
    }
    return *complete ? std::optional(build()) : std::nullopt;
}

Result<bool> ReplyParser::read_count() {
    if (number_) {
        return true;
    }
    const auto number = input_.take_u64();
    if (!number) {
        return false;
    }
    number_ = static_cast<std::int64_t>(*number);
    if (*number_ < 0 || (shape_ == Shape::kKeys && *number > kMaxReplyBytes / sizeof(std::string))) {
        return fail("the reply's count " + std::to_string(*number_) + " makes no sense: is this a TCPStore server?");
    }
    if (shape_ == Shape::kKeys) {
        blobs_wanted_ = static_cast<std::size_t>(*number_);
    } else {
        blobs_wanted_ = *number_ > 0 ? 1 : 0;
    }
    return true;
}

Result<bool> ReplyParser::read_blobs() {
    while (blobs_.size() < blobs_wanted_) {
        const std::size_t left = kMaxReplyBytes - std::min(kMaxReplyBytes, reply_bytes_ + sizeof(std::string));
        std::string blob;
        switch (blob_.read(input_, left, blob)) {
            case BlobReader::State::kNeedMore:
                return false;
            case BlobReader::State::kTooLong:
                return fail("a reply of " + std::to_string(reply_bytes_ + blob_.announced()) +
                            " bytes or more is over the limit of " + std::to_string(kMaxReplyBytes));
            case BlobReader::State::kDone:
                reply_bytes_ += blob.size() + sizeof(std::string);
                blobs_.push_back(std::move(blob));
        }
    }
    return true;
}

Reply ReplyParser::build() {
    switch (shape_) {
        case Shape::kBlobs:
            return reply::Blobs{std::move(blobs_)};
        case Shape::kPopped:
            return reply::Popped{*number_, blobs_.empty() ? std::string() : std::move(blobs_.front())};
        case Shape::kKeys:
            return reply::Keys{std::move(blobs_)};
        default:
            return reply::Blob{std::move(blobs_.front())};
    }
}

}  // namespace ddl::wire
