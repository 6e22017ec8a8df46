// The keys of --rdzv-conf: which are used here, which are only torchrun's, and their ranges.
//
// Pure; called by the rendezvous' derivation. The table is also printed into docs/COMPATIBILITY.md.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace ddl::plan {

// How etcd is spoken to, as far as it was said.
struct EtcdConf {
    std::optional<bool> tls;
    std::string user;
    std::string password;
    std::string ca_file;
    std::string certificate_file;
    std::string key_file;
};

struct RdzvConf {
    std::optional<Duration> join_timeout;
    std::optional<Duration> last_call_timeout;
    std::optional<Duration> rejoin_timeout;
    std::optional<Duration> lease_timeout;
    std::optional<bool> is_host;
    std::optional<bool> takeover;
    EtcdConf etcd;
    std::vector<std::string> of_etcd;    // keys among them that mean nothing without etcd
    std::vector<std::string> no_effect;  // keys that torchrun knows and that mean nothing here
};

struct RdzvConfKey {
    std::string_view name;
    bool used = false;
    std::string_view meaning;
};

[[nodiscard]] std::span<const RdzvConfKey> rdzv_conf_keys();

// Error: a reason without the flag's name.
[[nodiscard]] Result<RdzvConf> parse_rdzv_conf(std::string_view text);

}  // namespace ddl::plan
