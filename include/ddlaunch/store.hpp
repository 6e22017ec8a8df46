// ddlaunch::Store: a client of the job's key-value store, the one that PyTorch calls TCPStore.
//
// Works with the store that ddlaunch serves and with PyTorch's own servers from 2.2 on. Every call has a deadline and
// blocks at most that long (a call that has to clean up after a missed deadline up to kResyncLimit more). Starts no
// thread, installs no signal handler, never writes to a terminal.
//
// Threads: a Store and all copies and prefixed() views of it share one connection and may be used from any thread; the
// calls take turns, and waiting for the turn counts against the deadline. A thread that must not be held up by
// another one's wait takes a clone().
//
// Errors: every call throws StoreError and nothing else but std::bad_alloc. After kConnection, kProtocol, or a kTimeout
// of a call that is not marked [waits], the connection is closed and all later calls throw kConnection; open a new
// Store. A set(), append(), multi_set() or queue_push() has no answer on the wire: a server that refuses it shows up at
// the next call.
//
// Keys and values are any bytes. Limits, checked before anything is sent: key 8191 bytes with its prefixes, value
// 8 MiB, 131072 keys in one call.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ddlaunch/export.hpp>

namespace ddlaunch {

enum class StoreErrc {
    kTimeout,      // the deadline passed; the text names the keys waited for
    kConnection,   // no connection could be made, or it was lost
    kProtocol,     // the server answered something that no TCPStore says
    kInvalid,      // an argument is over a limit; nothing was sent
    kUnsupported,  // the server closed the connection on a request that only newer servers know
};

class DDLAUNCH_API StoreError : public std::runtime_error {
public:
    StoreError(StoreErrc code, const std::string& message) : std::runtime_error(message), code_(code) {
    }

    [[nodiscard]] StoreErrc code() const noexcept {
        return code_;
    }

private:
    StoreErrc code_;
};

struct StoreOptions {
    // How long connecting may take in all, name look-up and retries included (the look-up itself can't be interrupted).
    std::chrono::milliseconds connect_timeout = std::chrono::seconds(300);
    // Deadline of calls that are given none. The same default as PyTorch's.
    std::chrono::milliseconds timeout = std::chrono::seconds(300);
    // Asks the server for a sign of life right after connecting. Off: servers of PyTorch 2.2 to 2.4 close on it.
    bool ping = false;
};

class DDLAUNCH_API Store {
public:
    using Timeout = std::chrono::milliseconds;

    // Stands for StoreOptions::timeout. Other negative values are the same.
    static constexpr Timeout kDefault{-1};

    // What a missed deadline may cost on top, to keep the connection usable.
    static constexpr Timeout kResyncLimit = std::chrono::seconds(5);

    // Connects, trying all addresses of `host` (a name or a numeric address, IPv6 without brackets) again and again
    // until one answers or connect_timeout has passed. Throws kTimeout with the last failure of each address.
    Store(const std::string& host, std::uint16_t port, const StoreOptions& options = {});

    // A view on the same connection whose keys are `prefix` + "/" + key; nested views put the outer prefix last, like
    // PyTorch's PrefixStore.
    [[nodiscard]] Store prefixed(std::string_view prefix) const;

    // A new connection to the same server, with the same prefix.
    [[nodiscard]] Store clone() const;

    void set(std::string_view key, std::string_view value, Timeout timeout = kDefault);

    // [waits] Until the key exists, then its value. If somebody deletes the key in between, the value is empty, or with
    // PyTorch's old server kConnection.
    [[nodiscard]] std::string get(std::string_view key, Timeout timeout = kDefault);

    // The value, or nullopt if the key doesn't exist now.
    [[nodiscard]] std::optional<std::string> try_get(std::string_view key, Timeout timeout = kDefault);

    // Adds to a counter (absent: 0) kept as decimal text, and returns the sum. A value that isn't a number makes the
    // server close the connection.
    std::int64_t add(std::string_view key, std::int64_t delta, Timeout timeout = kDefault);

    // Stores `desired` if the value equals `expected`, or if the key is absent and `expected` is empty. Returns the
    // value after that; for an absent key and a non-empty `expected`, returns `expected` (the protocol can't tell).
    std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                            Timeout timeout = kDefault);

    // Do all keys exist now?
    [[nodiscard]] bool check(const std::vector<std::string>& keys, Timeout timeout = kDefault);

    // [waits] Until every key has been set. A zero timeout asks once.
    void wait(const std::vector<std::string>& keys, Timeout timeout = kDefault);

    // Whether there was such a key.
    bool delete_key(std::string_view key, Timeout timeout = kDefault);

    // Appends to a value; an absent key is created.
    void append(std::string_view key, std::string_view suffix, Timeout timeout = kDefault);

    // [waits] Until all keys exist, then their values in the order of the keys.
    [[nodiscard]] std::vector<std::string> multi_get(const std::vector<std::string>& keys, Timeout timeout = kDefault);

    void multi_set(const std::vector<std::pair<std::string, std::string>>& pairs, Timeout timeout = kDefault);

    // Number of keys in the whole store, also outside of the prefix.
    [[nodiscard]] std::int64_t num_keys(Timeout timeout = kDefault);

    // The keys below the prefix, without it, in no order. Servers since PyTorch 2.10.
    [[nodiscard]] std::vector<std::string> list_keys(Timeout timeout = kDefault);

    // First-in, first-out queues beside the keys. Servers since PyTorch 2.8.
    void queue_push(std::string_view key, std::string_view item, Timeout timeout = kDefault);
    // [waits] Until there is an item for this caller.
    [[nodiscard]] std::string queue_pop(std::string_view key, Timeout timeout = kDefault);
    [[nodiscard]] std::optional<std::string> try_queue_pop(std::string_view key, Timeout timeout = kDefault);
    [[nodiscard]] std::int64_t queue_len(std::string_view key, Timeout timeout = kDefault);

    // [waits] Until `world_size` callers have come to the barrier of this name; a name is good for one barrier. Made of
    // add, set and wait, so that it works with every server and together with PyTorch's store barrier.
    void barrier(std::string_view key, std::int64_t world_size, Timeout timeout = kDefault);

    // Counts this process in where a PyTorch rank 0 hosts the store and waits for its workers. Returns the count.
    std::int64_t join(Timeout timeout = kDefault);

private:
    struct Connection;
    class Call;

    Store(std::shared_ptr<Connection> connection, std::string prefix);

    [[nodiscard]] std::string wire_key(std::string_view key) const;
    [[nodiscard]] std::vector<std::string> wire_keys(const std::vector<std::string>& keys) const;

    std::shared_ptr<Connection> connection_;
    std::string prefix_;
};

}  // namespace ddlaunch
