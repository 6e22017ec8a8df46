// The whole store server: arbitrary bytes on up to four connections.
//
// Input: a byte for --store-compat, then segments: connection, length, bytes. A connection byte with the top bit set
// closes the connection instead. Promises: the answers don't depend on how a segment is cut; nothing waits for a
// connection that is gone; memory stays within its limit.
#include <array>
#include <string>
#include <string_view>

#include "core/store_session.hpp"
#include "fuzz_target.hpp"

namespace {

using namespace ddl;

constexpr std::size_t kConnections = 4;
constexpr std::size_t kMemory = std::size_t{1} << 20U;

struct Seen {
    std::array<std::string, kConnections> bytes;
    std::array<bool, kConnections> closed{};

    friend bool operator==(const Seen&, const Seen&) = default;
};

class Server {
public:
    Server(core::OldRelease compat, std::size_t step) : sessions_(compat, {kMemory, 16}), step_(step) {
        for (std::size_t i = 0; i < kConnections; ++i) {
            sessions_.opened(core::ConnectionId{i}, i < 2 ? "a" : "b", Instant{});
        }
    }

    void segment(std::size_t who, std::string_view bytes) {
        const core::ConnectionId connection{who};
        while (!bytes.empty()) {
            const std::string_view part = bytes.substr(0, step_);
            bytes.remove_prefix(part.size());
            note(sessions_.received(connection, part));
            while (sessions_.stalled(connection)) {
                note(sessions_.drained(connection));
            }
        }
        fuzz::promise(sessions_.table().bytes() <= kMemory, "the memory limit");
    }

    void close(std::size_t who) {
        sessions_.closed(core::ConnectionId{who});
        seen_.closed[who] = true;
    }

    Seen finish() {
        for (std::size_t i = 0; i < kConnections; ++i) {
            sessions_.closed(core::ConnectionId{i});
        }
        fuzz::promise(sessions_.table().waiting() == 0, "no wait outlives its connection");
        return std::move(seen_);
    }

private:
    void note(const core::StoreReaction& reaction) {
        for (const core::StoreOutput& output : reaction.outputs) {
            const auto who = static_cast<std::size_t>(output.connection);
            fuzz::promise(!seen_.closed[who], "no answer after the end of a connection");
            seen_.bytes[who] += output.bytes;
            seen_.closed[who] = output.close;
        }
    }

    core::StoreSessions sessions_;
    std::size_t step_;
    Seen seen_;
};

Seen run(std::string_view input, std::size_t step) {
    const auto compat = static_cast<core::OldRelease>(static_cast<std::uint8_t>(input.front()) % 3);
    input.remove_prefix(1);
    Server server(compat, step);
    while (input.size() >= 2) {
        const auto first = static_cast<std::uint8_t>(input[0]);
        const auto length = static_cast<std::uint8_t>(input[1]);
        input.remove_prefix(2);
        if ((first & 0x80U) != 0) {
            server.close(first % kConnections);
            continue;
        }
        const std::string_view segment = input.substr(0, length);
        input.remove_prefix(segment.size());
        server.segment(first % kConnections, segment);
    }
    return server.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 0) {
        const std::string_view input(reinterpret_cast<const char*>(data), size);
        fuzz::promise(run(input, std::string_view::npos) == run(input, 1), "the cut of a segment changes nothing");
    }
    return 0;
}
