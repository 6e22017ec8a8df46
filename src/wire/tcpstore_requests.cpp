// RequestParser: every request is an optional count, then blobs, then an optional number.
#include <algorithm>
#include <array>
#include <iterator>

#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

enum class Number : std::uint8_t { kNone, k32, k64 };

struct Layout {
    bool counted = false;   // the blobs are `count` groups
    std::size_t blobs = 0;  // per group, or in all; the first one is a key, the others are values
    Number number = Number::kNone;
};

// By index into Request.
constexpr std::array<Layout, std::variant_size_v<Request>> kLayouts = {{
    {false, 2, Number::kNone},  // Set
    {false, 3, Number::kNone},  // CompareSet
    {false, 1, Number::kNone},  // Get
    {false, 1, Number::k64},    // Add
    {true, 1, Number::kNone},   // Check
    {true, 1, Number::kNone},   // Wait
    {false, 0, Number::kNone},  // NumKeys
    {false, 1, Number::kNone},  // DeleteKey
    {false, 2, Number::kNone},  // Append
    {true, 1, Number::kNone},   // MultiGet
    {true, 2, Number::kNone},   // MultiSet
    {false, 0, Number::kNone},  // CancelWait
    {false, 0, Number::k32},    // Ping
    {false, 2, Number::kNone},  // QueuePush
    {false, 1, Number::kNone},  // QueuePop
    {false, 1, Number::kNone},  // QueueLen
    {false, 0, Number::kNone},  // ListKeys
    {false, 1, Number::k64},    // Barrier
    {false, 1, Number::kNone},  // WatchKey
}};

// What a blob costs beyond its bytes; bounds requests of very many empty keys.
constexpr std::size_t kBlobCost = sizeof(std::string);

std::string field_error(std::string_view field, std::uint64_t length, std::uint64_t limit) {
    return std::string(field) + " of " + std::to_string(length) + " bytes is over the limit of " +
           std::to_string(limit);
}

op::MultiSet multi_set(std::vector<std::string>& blobs) {
    op::MultiSet request;
    request.pairs.reserve(blobs.size() / 2);
    for (std::size_t i = 0; i + 1 < blobs.size(); i += 2) {
        request.pairs.emplace_back(std::move(blobs[i]), std::move(blobs[i + 1]));
    }
    return request;
}

// The blobs and the number are those that kLayouts promises for the type.
Request build_request(std::size_t kind, std::vector<std::string>& b, std::uint64_t number) {
    const auto i64 = static_cast<std::int64_t>(number);
    switch (kind) {
        case 0:
            return op::Set{std::move(b[0]), std::move(b[1])};
        case 1:
            return op::CompareSet{std::move(b[0]), std::move(b[1]), std::move(b[2])};
        case 2:
            return op::Get{std::move(b[0])};
        case 3:
            return op::Add{std::move(b[0]), i64};
        case 4:
            return op::Check{std::move(b)};
        case 5:
            return op::Wait{std::move(b)};
        case 6:
            return op::NumKeys{};
        case 7:
            return op::DeleteKey{std::move(b[0])};
        case 8:
            return op::Append{std::move(b[0]), std::move(b[1])};
        case 9:
            return op::MultiGet{std::move(b)};
        case 10:
            return multi_set(b);
        case 11:
            return op::CancelWait{};
        case 12:
            return op::Ping{static_cast<std::uint32_t>(number)};
        case 13:
            return op::QueuePush{std::move(b[0]), std::move(b[1])};
        case 14:
            return op::QueuePop{std::move(b[0])};
        case 15:
            return op::QueueLen{std::move(b[0])};
        case 16:
            return op::ListKeys{};
        case 17:
            return op::Barrier{std::move(b[0]), i64};
        default:
            return op::WatchKey{std::move(b[0])};
    }
}

}  // namespace

void RequestParser::feed(std::string_view bytes) {
    input_.feed(bytes);
}

Result<std::optional<Request>> RequestParser::next() {
    if (!kind_) {
        const auto begun = begin();
        if (!begun) {
            return tl::unexpected(begun.error());
        }
        if (*begun == Step::kNeedMore) {
            return std::nullopt;
        }
    }
    const auto read = read_fields();
    if (!read) {
        return tl::unexpected(read.error());
    }
    if (*read == Step::kNeedMore) {
        return std::nullopt;
    }
    return build();
}

Result<RequestParser::Step> RequestParser::begin() {
    const auto opcode = input_.take_u8();
    if (!opcode) {
        return Step::kNeedMore;
    }
    kind_ = request_kind(dialect_, *opcode);
    if (!kind_) {
        return fail("unknown opcode " + std::to_string(*opcode));
    }
    opcode_ = *opcode;
    counted_ = !kLayouts[*kind_].counted;
    blobs_wanted_ = kLayouts[*kind_].counted ? 0 : kLayouts[*kind_].blobs;
    return Step::kDone;
}

Result<RequestParser::Step> RequestParser::read_fields() {
    if (!counted_) {
        const auto step = read_count();
        if (!step || *step == Step::kNeedMore) {
            return step;
        }
    }
    const auto step = read_blobs();
    if (!step || *step == Step::kNeedMore) {
        return step;
    }
    return read_number();
}

Result<RequestParser::Step> RequestParser::read_count() {
    const auto count = input_.take_u64();
    if (!count) {
        return Step::kNeedMore;
    }
    if (*count > kMaxKeysPerRequest) {
        return fail("opcode " + std::to_string(opcode_) + ": " + std::to_string(*count) +
                    " keys are over the limit of " + std::to_string(kMaxKeysPerRequest));
    }
    counted_ = true;
    blobs_wanted_ = static_cast<std::size_t>(*count) * kLayouts[*kind_].blobs;
    return Step::kDone;
}

Result<RequestParser::Step> RequestParser::read_blobs() {
    const std::size_t per_group = kLayouts[*kind_].blobs;
    while (blobs_.size() < blobs_wanted_) {
        const bool is_key = blobs_.size() % per_group == 0;
        const std::uint64_t field_limit = is_key ? kMaxKeyBytes : kMaxValueBytes;
        const std::uint64_t left = kMaxRequestBytes - std::min(kMaxRequestBytes, request_bytes_ + kBlobCost);
        std::string blob;
        switch (blob_.read(input_, std::min(field_limit, left), blob)) {
            case BlobReader::State::kNeedMore:
                return Step::kNeedMore;
            case BlobReader::State::kTooLong:
                return fail("opcode " + std::to_string(opcode_) + ": " +
                            (blob_.announced() > field_limit
                                 ? field_error(is_key ? "key" : "value", blob_.announced(), field_limit)
                                 : field_error("request", request_bytes_ + blob_.announced(), kMaxRequestBytes)));
            case BlobReader::State::kDone:
                request_bytes_ += blob.size() + kBlobCost;
                blobs_.push_back(std::move(blob));
        }
    }
    return Step::kDone;
}

Result<RequestParser::Step> RequestParser::read_number() {
    switch (kLayouts[*kind_].number) {
        case Number::kNone:
            number_ = 0;
            break;
        case Number::k32:
            number_ = input_.take_u32();
            break;
        case Number::k64:
            number_ = input_.take_u64();
            break;
    }
    return number_ ? Step::kDone : Step::kNeedMore;
}

Request RequestParser::build() {
    Request request = build_request(*kind_, blobs_, *number_);
    kind_.reset();
    number_.reset();
    blobs_.clear();
    request_bytes_ = 0;
    return request;
}

}  // namespace ddl::wire
