// Arbitrary bytes as the messages of an agent session: the cut of the stream changes nothing, and a message that was
// understood is understood again after encoding.
#include <string_view>
#include <vector>

#include "fuzz_target.hpp"
#include "wire/agent_message.hpp"

namespace {

using namespace ddl;

std::vector<wire::Message> read(std::string_view stream, std::size_t step) {
    wire::MessageReader reader;
    std::vector<wire::Message> messages;
    while (!stream.empty()) {
        const std::string_view part = stream.substr(0, step);
        reader.feed(part);
        stream.remove_prefix(part.size());
        while (true) {
            auto next = reader.next();
            if (!next) {
                return messages;
            }
            if (!*next) {
                break;
            }
            messages.push_back(std::move(**next));
        }
    }
    return messages;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::vector<wire::Message> messages = read(input, std::string_view::npos);
    fuzz::promise(messages == read(input, 1), "the cut of the stream changes nothing");
    for (const wire::Message& message : messages) {
        const std::string bytes = wire::encode(message);
        const std::vector<wire::Message> again = read(bytes, std::string_view::npos);
        fuzz::promise(again.size() == 1, "an encoded message is understood");
        fuzz::promise(wire::encode(again.front()) == bytes, "encoding is stable");
    }
    return 0;
}
