// What is said to etcd v3 through its HTTP/JSON gateway: bodies of requests and of replies.
//
// Called by core/etcd_election. Pure. The gateway's ways are hidden here: 64-bit integers are strings, fields with
// their default value are missing, keys and values are base64, a dead lease is kept alive with status 200 and without a
// TTL, errors come in two shapes. Replies come from another program: everything is checked, nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace ddl::wire {

inline constexpr std::size_t kMaxEtcdReply = 4 << 20;  // of a whole body, or of one line of a stream
inline constexpr std::size_t kMaxEtcdItems = 4096;     // of any list in a reply

inline constexpr char kEtcdGrant[] = "/v3/lease/grant";
inline constexpr char kEtcdKeepAlive[] = "/v3/lease/keepalive";
inline constexpr char kEtcdRevoke[] = "/v3/lease/revoke";
inline constexpr char kEtcdTxn[] = "/v3/kv/txn";
inline constexpr char kEtcdRange[] = "/v3/kv/range";
inline constexpr char kEtcdWatch[] = "/v3/watch";
inline constexpr char kEtcdAuthenticate[] = "/v3/auth/authenticate";

// ---- requests ---------------------------------------------------------------------------------------------------

struct EtcdPut {
    std::string key;
    std::string value;
    std::int64_t lease = 0;  // 0: none
};
struct EtcdRange {  // one key, or all that begin with it; read after everything that was written before
    std::string key;
    bool prefix = false;
    bool count_only = false;
};
struct EtcdDelete {
    std::string key;
};
using EtcdOperation = std::variant<EtcdPut, EtcdRange, EtcdDelete>;

// If `key` was created at `create_revision` (0: if it is not there), all of `then` at once, else all of `otherwise`.
struct EtcdTxn {
    std::string key;
    std::int64_t create_revision = 0;
    std::vector<EtcdOperation> then;
    std::vector<EtcdOperation> otherwise;
};
struct EtcdWatch {
    std::string key;
    std::int64_t start_revision = 0;
};
struct EtcdGrant {
    std::int64_t seconds = 0;
};
struct EtcdLeaseId {  // body of keepalive and of revoke
    std::int64_t id = 0;
};
struct EtcdUser {
    std::string name;
    std::string password;
};

[[nodiscard]] std::string encode(const EtcdTxn& request);
[[nodiscard]] std::string encode(const EtcdRange& request);
[[nodiscard]] std::string encode(const EtcdWatch& request);
[[nodiscard]] std::string encode(const EtcdGrant& request);
[[nodiscard]] std::string encode(const EtcdLeaseId& request);
[[nodiscard]] std::string encode(const EtcdUser& request);

// ---- replies ----------------------------------------------------------------------------------------------------

struct EtcdKeyValue {
    std::string key;
    std::string value;
    std::int64_t create_revision = 0;  // 0 when it was deleted
    std::int64_t mod_revision = 0;
    std::int64_t lease = 0;

    friend bool operator==(const EtcdKeyValue&, const EtcdKeyValue&) = default;
};
struct EtcdFound {  // by a range; empty for a put or a deletion
    std::vector<EtcdKeyValue> pairs;
    std::int64_t count = 0;

    friend bool operator==(const EtcdFound&, const EtcdFound&) = default;
};
struct EtcdRangeReply {
    std::int64_t revision = 0;  // of the whole store
    EtcdFound found;
};
struct EtcdTxnReply {
    std::int64_t revision = 0;
    bool succeeded = false;
    std::vector<EtcdFound> results;  // one for each operation of the branch
};
struct EtcdLease {
    std::int64_t id = 0;
    std::int64_t seconds = 0;  // 0: the lease has ended
};
struct EtcdChange {
    bool deleted = false;
    EtcdKeyValue pair;
};
struct EtcdWatchLine {
    std::int64_t revision = 0;
    bool cancelled = false;
    std::string why;  // it was cancelled
    std::vector<EtcdChange> changes;
};

[[nodiscard]] Result<EtcdTxnReply> decode_etcd_txn(std::string_view body);
[[nodiscard]] Result<EtcdRangeReply> decode_etcd_range(std::string_view body);
[[nodiscard]] Result<EtcdLease> decode_etcd_lease(std::string_view body);  // of grant and of keepalive
[[nodiscard]] Result<EtcdWatchLine> decode_etcd_watch(std::string_view line);
[[nodiscard]] Result<std::string> decode_etcd_token(std::string_view body);
// What a reply with another status than 200 says: "etcdserver: no leader", or the status itself.
[[nodiscard]] std::string etcd_error(int status, std::string_view body);

// ---- base64 -----------------------------------------------------------------------------------------------------

[[nodiscard]] std::string base64(std::string_view bytes);
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);  // padded; nullopt on anything else

}  // namespace ddl::wire
