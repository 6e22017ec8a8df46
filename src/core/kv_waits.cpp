// Waits and watches of KvTable: who is told what when a key changes.
#include <utility>

#include "core/kv_table.hpp"

namespace ddl::core {

namespace reply = wire::reply;

namespace {

// An awaited or watched key is held twice: by connection and by key.
std::size_t registration_cost(const std::string& key) {
    return 2 * key.size() + kEntryCost;
}

}  // namespace

void KvTable::begin_wait(ConnectionId connection, std::unordered_set<std::string> keys, bool barrier) {
    const std::uint64_t order = next_order_++;
    for (const std::string& key : keys) {
        waiters_[key].emplace(order, connection);
        bytes_ += registration_cost(key);
    }
    waits_.insert_or_assign(connection, Wait{order, barrier, std::move(keys)});
}

void KvTable::end_wait(ConnectionId connection) {
    const auto wait = waits_.find(connection);
    if (wait == waits_.end()) {
        return;
    }
    for (const std::string& key : wait->second.keys) {
        const auto waiters = waiters_.find(key);
        waiters->second.erase(wait->second.order);
        if (waiters->second.empty()) {
            waiters_.erase(waiters);
        }
        bytes_ -= registration_cost(key);
    }
    waits_.erase(wait);
}

// Takes the key off the connection's wait; true if that ended it. The caller takes the connection off waiters_[key].
bool KvTable::arrived(ConnectionId connection, const std::string& key, KvResult& result) {
    const auto wait = waits_.find(connection);
    wait->second.keys.erase(key);
    bytes_ -= registration_cost(key);
    if (!wait->second.keys.empty()) {
        return false;
    }
    waits_.erase(wait);
    result.replies.push_back({connection, reply::Byte{reply::kStopWaiting}});
    return true;
}

void KvTable::wake(const std::string& key, KvResult& result) {
    const auto waiters = waiters_.extract(key);
    if (waiters.empty()) {
        return;
    }
    for (const auto& [order, connection] : waiters.mapped()) {
        static_cast<void>(arrived(connection, key, result));
    }
}

// One item releases one wait, the oldest that lacks nothing else. Waits that still lack other keys have seen the item
// as well, so that it never counts as somebody's wake-up without being one. Barriers aren't about items.
void KvTable::wake_one_for_item(const std::string& key, KvResult& result) {
    const auto found = waiters_.find(key);
    if (found == waiters_.end()) {
        return;
    }
    Waiters& waiters = found->second;
    bool released = false;
    for (auto it = waiters.begin(); it != waiters.end() && !released;) {
        if (waits_.at(it->second).barrier) {
            ++it;
            continue;
        }
        released = arrived(it->second, key, result);
        it = waiters.erase(it);
    }
    if (waiters.empty()) {
        waiters_.erase(found);
    }
}

void KvTable::watch(ConnectionId connection, const std::string& key) {
    if (watches_[connection].insert(key).second) {
        watchers_[key].insert(connection);
        bytes_ += registration_cost(key);
    }
}

void KvTable::notify(const std::string& key, reply::ChangeKind kind, std::string_view before, std::string_view after,
                     KvResult& result) {
    const auto watchers = watchers_.find(key);
    if (watchers == watchers_.end()) {
        return;
    }
    for (const ConnectionId connection : watchers->second) {
        result.replies.push_back({connection, reply::Change{kind, key, std::string(before), std::string(after)}});
    }
}

void KvTable::connection_closed(ConnectionId connection) {
    end_wait(connection);
    const auto watched = watches_.extract(connection);
    if (watched.empty()) {
        return;
    }
    for (const std::string& key : watched.mapped()) {
        const auto watchers = watchers_.find(key);
        watchers->second.erase(connection);
        if (watchers->second.empty()) {
            watchers_.erase(watchers);
        }
        bytes_ -= registration_cost(key);
    }
}

}  // namespace ddl::core
