// The store client's side: arbitrary bytes from a server, read as the replies that the first bytes ask for.
//
// Input: count, that many shapes, then the server's bytes. Promises: the cut of the stream changes nothing, and what
// was read encodes to the bytes it was read from.
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_target.hpp"
#include "wire/tcpstore.hpp"

namespace {

using namespace ddl;
using Shape = wire::ReplyParser::Shape;

std::vector<wire::Reply> read(std::string_view shapes, std::string_view stream, std::size_t step) {
    wire::ReplyParser parser;
    std::vector<wire::Reply> replies;
    for (const char shape : shapes) {
        parser.expect(static_cast<Shape>(static_cast<std::uint8_t>(shape) % 7), static_cast<std::uint8_t>(shape) / 7);
        while (true) {
            auto next = parser.next();
            if (!next) {
                return replies;
            }
            if (*next) {
                replies.push_back(std::move(**next));
                break;
            }
            if (stream.empty()) {
                return replies;
            }
            const std::string_view part = stream.substr(0, step);
            parser.feed(part);
            stream.remove_prefix(part.size());
        }
    }
    return replies;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::string_view shapes = input.substr(1, static_cast<std::uint8_t>(input.front()) % 16);
    input.remove_prefix(1 + shapes.size());
    const std::vector<wire::Reply> replies = read(shapes, input, std::string_view::npos);
    fuzz::promise(replies == read(shapes, input, 1), "the cut of the stream changes nothing");
    std::string again;
    for (const wire::Reply& reply : replies) {
        wire::append_reply(again, reply);
    }
    fuzz::promise(input.substr(0, again.size()) == again, "replies encode to what they were read from");
    return 0;
}
