// Any beginning of a connection: the verdict comes within kFirstBytesMax bytes and never changes.
#include <string_view>

#include "fuzz_target.hpp"
#include "wire/first_bytes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using ddl::wire::FirstBytes;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    FirstBytes verdict = FirstBytes::kNeedMore;
    for (std::size_t length = 0; length <= size && length < 16; ++length) {
        const FirstBytes now = ddl::wire::classify_first_bytes(input.substr(0, length));
        ddl::fuzz::promise(verdict == FirstBytes::kNeedMore || now == verdict, "a verdict is final");
        ddl::fuzz::promise(length < ddl::wire::kFirstBytesMax || now != FirstBytes::kNeedMore, "five bytes suffice");
        verdict = now;
    }
    return 0;
}
