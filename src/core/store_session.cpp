#include "core/store_session.hpp"

#include <utility>

namespace ddl::core {
namespace {

constexpr std::uint8_t kFirstAmbiguousOpcode = 7;  // DELETE_KEY in 2.1, WATCH_KEY before

}  // namespace

StoreSessions::StoreSessions(OldRelease compat, KvLimits limits) : compat_(compat), table_(limits) {
}

void StoreSessions::opened(ConnectionId connection, std::string_view address, Instant now) {
    sessions_.try_emplace(connection);
    detector_.opened(connection, address, now);
}

StoreReaction StoreSessions::received(ConnectionId connection, std::string_view bytes) {
    StoreReaction reaction;
    const auto it = sessions_.find(connection);
    if (it == sessions_.end() || bytes.empty()) {
        return reaction;
    }
    Session& session = it->second;
    detector_.spoke(connection, static_cast<std::uint8_t>(bytes.front()));
    if (session.phase == Phase::kRequests) {
        session.parser.feed(bytes);
    } else {
        session.first_bytes.append(bytes);
        if (!start(connection, session, reaction)) {
            return reaction;
        }
    }
    if (!session.stalled) {
        run(connection, reaction);
    }
    return reaction;
}

bool StoreSessions::stalled(ConnectionId connection) const {
    const auto it = sessions_.find(connection);
    return it != sessions_.end() && it->second.stalled;
}

StoreReaction StoreSessions::drained(ConnectionId connection) {
    StoreReaction reaction;
    const auto it = sessions_.find(connection);
    if (it != sessions_.end() && it->second.stalled) {
        it->second.stalled = false;
        run(connection, reaction);
    }
    return reaction;
}

void StoreSessions::closed(ConnectionId connection) {
    table_.connection_closed(connection);
    detector_.closed(connection);
    sessions_.erase(connection);
}

void StoreSessions::reset() {
    table_.clear();
    detector_.clear();
    sessions_.clear();
}

// Decides the dialect from the first bytes; false while they don't suffice or after closing.
bool StoreSessions::start(ConnectionId connection, Session& session, StoreReaction& reaction) {
    std::string bytes = std::exchange(session.first_bytes, std::string());
    switch (wire::classify_first_bytes(bytes)) {
        case wire::FirstBytes::kNeedMore:
            session.first_bytes = std::move(bytes);
            return false;
        case wire::FirstBytes::kStore:
            session.parser.change_dialect(wire::Dialect::kModern);
            bytes.erase(0, wire::kFirstBytesMax);
            break;
        case wire::FirstBytes::kOldStore:
            // Up to the first ambiguous opcode the two tables are the same.
            session.parser.change_dialect(compat_ == OldRelease::k2_1 ? wire::Dialect::k2_1 : wire::Dialect::k1_13);
            session.undecided = compat_ == OldRelease::kAuto;
            break;
        default:
            close(connection, "the first bytes are not those of a TCPStore client", reaction);
            return false;
    }
    session.phase = Phase::kRequests;
    session.parser.feed(bytes);
    return true;
}

void StoreSessions::run(ConnectionId connection, StoreReaction& reaction) {
    Session& session = sessions_.at(connection);
    std::size_t own_output = 0;
    while (own_output < kReplyBudgetBytes) {
        if (session.undecided && session.parser.peek_opcode().value_or(0) >= kFirstAmbiguousOpcode) {
            decide(connection, session, reaction);
        }
        auto request = session.parser.next();
        if (!request) {
            close(connection, std::move(request.error().message), reaction);
            return;
        }
        if (!*request) {
            return;
        }
        KvResult result = table_.apply(connection, std::move(**request));
        own_output += append_replies(connection, result, reaction);
        if (result.close) {
            close(connection, std::move(*result.close), reaction);
            return;
        }
    }
    session.stalled = true;
}

// Returns the bytes that went to `asking`.
std::size_t StoreSessions::append_replies(ConnectionId asking, const KvResult& result, StoreReaction& reaction) {
    std::size_t own = 0;
    for (const KvReply& reply : result.replies) {
        if (reaction.outputs.empty() || reaction.outputs.back().connection != reply.connection) {
            reaction.outputs.push_back({reply.connection, {}, false, {}});
        }
        std::string& bytes = reaction.outputs.back().bytes;
        const std::size_t before = bytes.size();
        wire::append_reply(bytes, reply.reply);
        own += reply.connection == asking ? bytes.size() - before : 0;
    }
    return own;
}

void StoreSessions::decide(ConnectionId connection, Session& session, StoreReaction& reaction) {
    session.undecided = false;
    const wire::Dialect dialect = detector_.decide(connection);
    session.parser.change_dialect(dialect);
    reaction.notes.push_back(dialect == wire::Dialect::k1_13
                                 ? "a store client is older than PyTorch 2.1 (by its silent second connection); "
                                   "if that is wrong, say --store-compat 2.1"
                                 : "a store client is taken for PyTorch 2.1 (no silent second connection seen); "
                                   "if it is older, say --store-compat 1.13");
}

void StoreSessions::close(ConnectionId connection, std::string why, StoreReaction& reaction) {
    closed(connection);
    reaction.outputs.push_back({connection, {}, true, std::move(why)});
}

Result<OldRelease> parse_old_release(std::string_view text) {
    if (text == "auto") {
        return OldRelease::kAuto;
    }
    if (text == "1.13") {
        return OldRelease::k1_13;
    }
    if (text == "2.1") {
        return OldRelease::k2_1;
    }
    return fail("--store-compat: '" + std::string(text) + "' is none of auto, 1.13, 2.1");
}

}  // namespace ddl::core
