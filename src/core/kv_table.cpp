#include "core/kv_table.hpp"

#include <charconv>
#include <utility>

namespace ddl::core {

using wire::Reply;
namespace op = wire::op;
namespace reply = wire::reply;

namespace {

constexpr std::size_t kBlobHeader = 8;

std::size_t entry_cost(std::size_t key, std::size_t value) {
    return key + value + kEntryCost;
}

// Wraps like the two's complement arithmetic of the original.
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

std::optional<std::int64_t> counter_value(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\n\v\f\r";
    const std::size_t start = text.find_first_not_of(kBlanks);
    text.remove_prefix(start == std::string_view::npos ? text.size() : start);
    if (!text.empty() && text.front() == '+') {
        text.remove_prefix(1);
        if (!text.empty() && text.front() == '-') {
            return std::nullopt;  // from_chars would take the second sign
        }
    }
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() ? std::optional(number) : std::nullopt;
}

struct KvTable::Apply {
    KvTable& table;
    ConnectionId connection;
    KvResult& result;

    void answer(Reply reply) const {
        result.replies.push_back({connection, std::move(reply)});
    }

    void refuse(std::string why) const {
        result.close = std::move(why);
    }

    [[nodiscard]] bool has_room(std::size_t more) const {
        if (table.fits(more)) {
            return true;
        }
        refuse("the store's memory limit of " + std::to_string(table.limits_.total_bytes) + " bytes is reached");
        return false;
    }

    // The counter at `key`, 0 if absent; nullopt after refusing.
    [[nodiscard]] std::optional<std::int64_t> counter(const std::string& key) const {
        const auto it = table.values_.find(key);
        if (it == table.values_.end()) {
            return 0;
        }
        const auto number = counter_value(it->second);
        if (!number) {
            refuse("the value of " + key + " is not a 64-bit number");
        }
        return number;
    }

    void operator()(op::Set& request) const {
        if (has_room(entry_cost(request.key.size(), request.value.size()))) {
            table.store(request.key, std::move(request.value), result);
            table.wake(request.key, result);
        }
    }

    // An absent key with a non-empty expected value stores nothing and echoes what was expected, as the originals do.
    void operator()(op::CompareSet& request) const {
        const auto it = table.values_.find(request.key);
        const bool absent = it == table.values_.end();
        if (absent ? !request.expected.empty() : it->second != request.expected) {
            answer(reply::Blob{absent ? std::move(request.expected) : it->second});
            return;
        }
        if (!has_room(entry_cost(request.key.size(), request.desired.size()))) {
            return;
        }
        table.store(request.key, request.desired, result);
        answer(reply::Blob{std::move(request.desired)});
        if (absent) {
            table.wake(request.key, result);
        }
    }

    // An absent key is answered with an empty value: it may have been deleted between a client's WAIT and its GET.
    void operator()(op::Get& request) const {
        const auto it = table.values_.find(request.key);
        answer(reply::Blob{it == table.values_.end() ? std::string() : it->second});
    }

    void operator()(op::Add& request) const {
        const auto before = counter(request.key);
        if (!before || !has_room(entry_cost(request.key.size(), 20))) {
            return;
        }
        const std::int64_t after = wrapping_sum(*before, request.delta);
        table.store(request.key, std::to_string(after), result);
        answer(reply::Integer{after});
        table.wake(request.key, result);
    }

    void operator()(op::Check& request) const {
        bool all = true;
        for (const std::string& key : request.keys) {
            all = all && table.present(key);
        }
        answer(reply::Byte{all ? reply::kReady : reply::kNotReady});
    }

    void operator()(op::Wait& request) const {
        std::unordered_set<std::string> missing;
        std::size_t cost = 0;
        for (std::string& key : request.keys) {
            if (!table.present(key)) {
                const std::size_t size = key.size();
                cost += missing.insert(std::move(key)).second ? entry_cost(size, size) : 0;
            }
        }
        if (missing.empty()) {
            answer(reply::Byte{reply::kStopWaiting});
        } else if (has_room(cost)) {
            table.begin_wait(connection, std::move(missing), false);
        }
    }

    void operator()(op::NumKeys&) const {
        answer(reply::Integer{static_cast<std::int64_t>(table.values_.size())});
    }

    void operator()(op::DeleteKey& request) const {
        const auto node = table.values_.extract(request.key);
        if (!node.empty()) {
            table.bytes_ -= entry_cost(node.key().size(), node.mapped().size());
            table.notify(request.key, reply::ChangeKind::kDeleted, node.mapped(), {}, result);
        }
        answer(reply::Integer{node.empty() ? 0 : 1});
    }

    void operator()(op::Append& request) const {
        const auto it = table.values_.find(request.key);
        std::string value = it == table.values_.end() ? std::string() : it->second;
        if (value.size() + request.suffix.size() > kMaxGrownValueBytes) {
            refuse("APPEND would grow " + request.key + " beyond " + std::to_string(kMaxGrownValueBytes) + " bytes");
            return;
        }
        if (!has_room(entry_cost(request.key.size(), request.suffix.size()))) {
            return;
        }
        value += request.suffix;
        table.store(request.key, std::move(value), result);
        table.wake(request.key, result);
    }

    void operator()(op::MultiGet& request) const {
        reply::Blobs blobs;
        std::size_t bytes = 0;
        for (const std::string& key : request.keys) {
            const auto it = table.values_.find(key);
            bytes += kBlobHeader + (it == table.values_.end() ? 0 : it->second.size());
            if (bytes > wire::kMaxReplyBytes) {
                refuse("MULTI_GET's reply would be over " + std::to_string(wire::kMaxReplyBytes) + " bytes");
                return;
            }
            blobs.values.push_back(it == table.values_.end() ? std::string() : it->second);
        }
        answer(std::move(blobs));
    }

    void operator()(op::MultiSet& request) const {
        std::size_t cost = 0;
        for (const auto& [key, value] : request.pairs) {
            cost += entry_cost(key.size(), value.size());
        }
        if (!has_room(cost)) {
            return;
        }
        for (auto& [key, value] : request.pairs) {
            table.store(key, std::move(value), result);
        }
        for (const auto& pair : request.pairs) {
            table.wake(pair.first, result);
        }
    }

    // The wait, if there was one, has been ended by apply().
    void operator()(op::CancelWait&) const {
        answer(reply::Byte{reply::kWaitCancelled});
    }

    void operator()(op::Ping& request) const {
        answer(reply::Nonce{request.nonce});
    }

    void operator()(op::QueuePush& request) const {
        const std::size_t cost = entry_cost(request.key.size(), request.item.size());
        if (has_room(cost)) {
            table.bytes_ += cost;
            table.queues_[request.key].push_back(std::move(request.item));
            table.wake_one_for_item(request.key, result);
        }
    }

    void operator()(op::QueuePop& request) const {
        const auto it = table.queues_.find(request.key);
        if (it == table.queues_.end()) {
            answer(reply::Popped{});
            return;
        }
        auto& items = it->second;
        reply::Popped popped{static_cast<std::int64_t>(items.size()), std::move(items.front())};
        table.bytes_ -= entry_cost(request.key.size(), popped.item.size());
        items.pop_front();
        if (items.empty()) {
            table.queues_.erase(it);
        }
        answer(std::move(popped));
    }

    void operator()(op::QueueLen& request) const {
        const auto it = table.queues_.find(request.key);
        answer(reply::Integer{it == table.queues_.end() ? 0 : static_cast<std::int64_t>(it->second.size())});
    }

    void operator()(op::ListKeys&) const {
        reply::Keys list;
        std::size_t bytes = kBlobHeader;
        list.keys.reserve(table.values_.size());
        for (const auto& entry : table.values_) {
            bytes += kBlobHeader + entry.first.size();
            if (bytes > wire::kMaxReplyBytes) {
                refuse("LIST_KEYS' reply would be over " + std::to_string(wire::kMaxReplyBytes) + " bytes");
                return;
            }
            list.keys.push_back(entry.first);
        }
        answer(std::move(list));
    }

    // The counter stays, so a key is good for one barrier. An arrival that doesn't complete it wakes nobody.
    void operator()(op::Barrier& request) const {
        const auto before = counter(request.key);
        if (!before || !has_room(2 * entry_cost(request.key.size(), request.key.size() + 20))) {
            return;
        }
        const std::int64_t arrived = wrapping_sum(*before, 1);
        table.store(request.key, std::to_string(arrived), result);
        if (arrived < request.world_size) {
            table.begin_wait(connection, {std::move(request.key)}, true);
            return;
        }
        answer(reply::Byte{reply::kStopWaiting});
        table.wake(request.key, result);
    }

    void operator()(op::WatchKey& request) const {
        const auto it = table.watches_.find(connection);
        if (it != table.watches_.end() && it->second.size() >= table.limits_.watches_per_connection) {
            refuse("more than " + std::to_string(table.limits_.watches_per_connection) + " watched keys");
        } else if (has_room(entry_cost(request.key.size(), request.key.size()))) {
            table.watch(connection, request.key);
            answer(reply::Byte{reply::kWatchRegistered});
        }
    }
};

KvTable::KvTable(KvLimits limits) : limits_(limits) {
}

KvResult KvTable::apply(ConnectionId connection, wire::Request request) {
    KvResult result;
    end_wait(connection);
    std::visit(Apply{*this, connection, result}, request);
    return result;
}

void KvTable::store(const std::string& key, std::string value, KvResult& result) {
    const std::size_t cost = entry_cost(key.size(), value.size());
    const auto [it, created] = values_.try_emplace(key);
    if (!created) {
        bytes_ -= entry_cost(key.size(), it->second.size());
    }
    bytes_ += cost;
    const std::string before = std::exchange(it->second, std::move(value));
    notify(key, created ? reply::ChangeKind::kCreated : reply::ChangeKind::kUpdated, before, it->second, result);
}

bool KvTable::present(const std::string& key) const {
    return values_.contains(key) || queues_.contains(key);
}

bool KvTable::fits(std::size_t more) const {
    return more <= limits_.total_bytes && bytes_ <= limits_.total_bytes - more;
}

void KvTable::clear() {
    *this = KvTable(limits_);
}

}  // namespace ddl::core
