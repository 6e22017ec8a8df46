#include "ddlaunch/store.hpp"

#include <utility>

#include "wire/tcpstore.hpp"
#include "worker/store_connection.hpp"

namespace ddlaunch {

namespace wire = ddl::wire;
namespace op = ddl::wire::op;

namespace {

constexpr std::string_view kJoinKey = "init/";  // the one wire key without a leading slash
// The first PyTorch releases whose servers know the request.
constexpr std::string_view kPing = "2.5";
constexpr std::string_view kQueues = "2.8";
constexpr std::string_view kListKeys = "2.10";
constexpr std::size_t kBlobHeader = 8;

[[noreturn]] void refuse(const std::string& why) {
    throw StoreError(StoreErrc::kInvalid, "store: " + why);
}

void check_value(std::string_view key, std::string_view value) {
    if (value.size() > wire::kMaxValueBytes) {
        refuse("the value of " + std::string(key) + " has " + std::to_string(value.size()) + " bytes, at most " +
               std::to_string(wire::kMaxValueBytes) + " are possible");
    }
}

void check_total(std::size_t count, std::size_t bytes) {
    if (count > wire::kMaxKeysPerRequest) {
        refuse(std::to_string(count) + " keys in one call, at most " + std::to_string(wire::kMaxKeysPerRequest) +
               " are possible");
    }
    if (bytes > wire::kMaxRequestBytes / 2) {
        refuse(std::to_string(bytes) + " bytes in one call, at most " + std::to_string(wire::kMaxRequestBytes / 2) +
               " are possible: split it");
    }
}

std::string call_text(std::string_view call, std::string_view key) {
    return std::string(call) + "(" + std::string(key) + ")";
}

std::string call_text(std::string_view call, const std::vector<std::string>& keys) {
    const std::string more = keys.size() > 1 ? ", …" : "";
    return std::string(call) + "(" + (keys.empty() ? std::string() : keys.front() + more) + ")";
}

}  // namespace

Store::Store(const std::string& host, std::uint16_t port, const StoreOptions& options)
    : connection_(std::make_shared<Connection>(host, port, options)) {
    if (options.ping) {
        Call(*connection_, options.connect_timeout, "ping", kPing).ping();
    }
}

Store::Store(std::shared_ptr<Connection> connection, std::string prefix)
    : connection_(std::move(connection)), prefix_(std::move(prefix)) {
}

Store Store::prefixed(std::string_view prefix) const {
    return Store(connection_, prefix_ + std::string(prefix) + "/");
}

Store Store::clone() const {
    Store other(connection_->host, connection_->port, connection_->options);
    other.prefix_ = prefix_;
    return other;
}

std::string Store::wire_key(std::string_view key) const {
    std::string full = "/" + prefix_ + std::string(key);
    if (full.size() > wire::kMaxKeyBytes) {
        refuse("a key of " + std::to_string(full.size()) + " bytes with its prefixes, at most " +
               std::to_string(wire::kMaxKeyBytes) + " are possible: " + full.substr(0, 64) + "…");
    }
    return full;
}

std::vector<std::string> Store::wire_keys(const std::vector<std::string>& keys) const {
    std::vector<std::string> full;
    std::size_t bytes = 0;
    full.reserve(keys.size());
    for (const std::string& key : keys) {
        full.push_back(wire_key(key));
        bytes += kBlobHeader + full.back().size();
    }
    check_total(full.size(), bytes);
    return full;
}

void Store::set(std::string_view key, std::string_view value, Timeout timeout) {
    check_value(key, value);
    op::Set request{wire_key(key), std::string(value)};
    Call(*connection_, timeout, call_text("set", key)).send(std::move(request));
}

std::string Store::get(std::string_view key, Timeout timeout) {
    std::string full = wire_key(key);
    Call call(*connection_, timeout, call_text("get", key));
    call.wait({full});
    call.send(op::Get{std::move(full)});
    return call.blob();
}

std::optional<std::string> Store::try_get(std::string_view key, Timeout timeout) {
    std::string full = wire_key(key);
    Call call(*connection_, timeout, call_text("try_get", key));
    call.send(op::Check{{full}});
    if (call.byte() != wire::reply::kReady) {
        return std::nullopt;
    }
    call.send(op::Get{std::move(full)});
    return call.blob();
}

std::int64_t Store::add(std::string_view key, std::int64_t delta, Timeout timeout) {
    op::Add request{wire_key(key), delta};
    Call call(*connection_, timeout, call_text("add", key));
    call.send(std::move(request));
    return call.integer();
}

std::string Store::compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                               Timeout timeout) {
    check_value(key, expected);
    check_value(key, desired);
    op::CompareSet request{wire_key(key), std::string(expected), std::string(desired)};
    Call call(*connection_, timeout, call_text("compare_set", key));
    call.send(std::move(request));
    return call.blob();
}

bool Store::check(const std::vector<std::string>& keys, Timeout timeout) {
    op::Check request{wire_keys(keys)};
    Call call(*connection_, timeout, call_text("check", keys));
    call.send(std::move(request));
    return call.byte() == wire::reply::kReady;
}

void Store::wait(const std::vector<std::string>& keys, Timeout timeout) {
    std::vector<std::string> full = wire_keys(keys);
    Call(*connection_, timeout, call_text("wait", keys)).wait(std::move(full));
}

bool Store::delete_key(std::string_view key, Timeout timeout) {
    op::DeleteKey request{wire_key(key)};
    Call call(*connection_, timeout, call_text("delete_key", key));
    call.send(std::move(request));
    return call.integer() == 1;
}

void Store::append(std::string_view key, std::string_view suffix, Timeout timeout) {
    check_value(key, suffix);
    op::Append request{wire_key(key), std::string(suffix)};
    Call(*connection_, timeout, call_text("append", key)).send(std::move(request));
}

std::vector<std::string> Store::multi_get(const std::vector<std::string>& keys, Timeout timeout) {
    std::vector<std::string> full = wire_keys(keys);
    Call call(*connection_, timeout, call_text("multi_get", keys));
    call.wait(full);
    call.send(op::MultiGet{std::move(full)});
    return call.blobs(keys.size());
}

void Store::multi_set(const std::vector<std::pair<std::string, std::string>>& pairs, Timeout timeout) {
    op::MultiSet request;
    std::size_t bytes = 0;
    request.pairs.reserve(pairs.size());
    for (const auto& [key, value] : pairs) {
        check_value(key, value);
        request.pairs.emplace_back(wire_key(key), value);
        bytes += 2 * kBlobHeader + request.pairs.back().first.size() + value.size();
    }
    check_total(pairs.size(), bytes);
    const std::string text = call_text("multi_set", pairs.empty() ? std::string_view() : pairs.front().first);
    Call(*connection_, timeout, text).send(std::move(request));
}

std::int64_t Store::num_keys(Timeout timeout) {
    Call call(*connection_, timeout, "num_keys()");
    call.send(op::NumKeys{});
    return call.integer();
}

std::vector<std::string> Store::list_keys(Timeout timeout) {
    const std::string start = "/" + prefix_;
    Call call(*connection_, timeout, "list_keys()", kListKeys);
    call.send(op::ListKeys{});
    std::vector<std::string> mine;
    for (const std::string& key : call.key_list()) {
        if (key.compare(0, start.size(), start) == 0) {
            mine.push_back(key.substr(start.size()));
        }
    }
    return mine;
}

void Store::queue_push(std::string_view key, std::string_view item, Timeout timeout) {
    check_value(key, item);
    op::QueuePush request{wire_key(key), std::string(item)};
    Call(*connection_, timeout, call_text("queue_push", key), kQueues).send(std::move(request));
}

std::string Store::queue_pop(std::string_view key, Timeout timeout) {
    const std::string full = wire_key(key);
    Call call(*connection_, timeout, call_text("queue_pop", key), kQueues);
    while (true) {
        call.wait({full});
        call.send(op::QueuePop{full});
        auto popped = call.popped();
        if (popped.before > 0) {
            return std::move(popped.item);  // else another client was quicker
        }
    }
}

std::optional<std::string> Store::try_queue_pop(std::string_view key, Timeout timeout) {
    op::QueuePop request{wire_key(key)};
    Call call(*connection_, timeout, call_text("try_queue_pop", key), kQueues);
    call.send(std::move(request));
    auto popped = call.popped();
    return popped.before > 0 ? std::optional(std::move(popped.item)) : std::nullopt;
}

std::int64_t Store::queue_len(std::string_view key, Timeout timeout) {
    op::QueueLen request{wire_key(key)};
    Call call(*connection_, timeout, call_text("queue_len", key), kQueues);
    call.send(std::move(request));
    return call.integer();
}

void Store::barrier(std::string_view key, std::int64_t world_size, Timeout timeout) {
    if (world_size < 1) {
        refuse("a barrier of " + std::to_string(world_size) + " callers");
    }
    const std::string base(key);
    std::string members = wire_key(base + "/num_members");
    std::string last = wire_key(base + "/last_member");
    Call call(*connection_, timeout, call_text("barrier", key));
    call.send(op::Add{std::move(members), 1});
    if (call.integer() == world_size) {
        call.send(op::Set{last, "1"});
    }
    call.wait({std::move(last)});
}

std::int64_t Store::join(Timeout timeout) {
    Call call(*connection_, timeout, "join()");
    call.send(op::Add{std::string(kJoinKey), 1});
    return call.integer();
}

}  // namespace ddlaunch
