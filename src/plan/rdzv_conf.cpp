#include "plan/rdzv_conf.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "plan/grammar.hpp"
#include "plan/quoted.hpp"

namespace ddl::plan {

namespace {

constexpr double kYear = 365.0 * 86'400;
constexpr double kShortestLimit = 0.001;  // a limit of nothing could never be met

constexpr std::array<RdzvConfKey, 22> kKeys = {{
    {"join_timeout", true, "limit for a round to form, in seconds (600)"},
    {"last_call_timeout", true, "extra wait for more nodes once MIN is there, in seconds (30)"},
    {"rejoin_timeout", true, "how long lost nodes may take to come back when fewer than MIN are left (60)"},
    {"is_host", true, "whether this node hosts the rendezvous (the owner of the endpoint's address)"},
    {"lease_timeout", false, "silence after which a node is lost, 2 to 600 s; checked, without effect so far"},
    {"close_timeout", false, "nothing has to be marked as closed"},
    {"heartbeat_timeout", false, "nodes hold a connection instead of writing heartbeats"},
    {"heartbeat", false, "nodes hold a connection instead of writing heartbeats"},
    {"keep_alive_interval", false, "nodes hold a connection instead of writing heartbeats"},
    {"keep_alive_max_attempt", false, "nodes hold a connection instead of writing heartbeats"},
    {"cas_backoff_max_seconds", false, "there is one writer, so no lost update to wait after"},
    {"store_type", false, "tcp; file is refused"},
    {"read_timeout", false, "nothing is polled"},
    {"timeout", false, "use join_timeout"},
    {"protocol", false, "of etcd"},
    {"etcd_prefix", false, "of etcd"},
    {"ssl_cert", false, "of etcd"},
    {"ssl_cert_key", false, "of etcd"},
    {"ca_cert", false, "of etcd"},
    {"cacert", false, "of etcd"},
    {"cert", false, "of etcd"},
    {"key", false, "of etcd"},
}};

Result<void> set_duration(std::optional<Duration>& target, const std::string& key, std::string_view text, double least,
                          double most) {
    const Result<Duration> value = parse_duration(text, least, most);
    if (!value) {
        return fail(key + "=" + value.error().message);
    }
    target = *value;
    return {};
}

Result<void> apply(RdzvConf& conf, const std::string& key, std::string_view text) {
    std::optional<Duration> only_checked;
    if (key == "join_timeout") {
        return set_duration(conf.join_timeout, key, text, kShortestLimit, kYear);
    }
    if (key == "last_call_timeout") {
        return set_duration(conf.last_call_timeout, key, text, 0, kYear);
    }
    if (key == "rejoin_timeout") {
        return set_duration(conf.rejoin_timeout, key, text, 0, kYear);
    }
    if (key == "is_host") {
        const Result<bool> value = parse_boolean(text);
        if (!value) {
            return fail(key + "=" + value.error().message);
        }
        conf.is_host = *value;
        return {};
    }
    if (key == "store_type" && text != "tcp") {
        return fail("store_type=" + quoted(text) + " is not offered; try store_type=tcp");
    }
    conf.no_effect.push_back(key);
    return key == "lease_timeout" ? set_duration(only_checked, key, text, 2, 600) : Result<void>();
}

}  // namespace

std::span<const RdzvConfKey> rdzv_conf_keys() {
    return kKeys;
}

Result<RdzvConf> parse_rdzv_conf(std::string_view text) {
    const Result<KeyValues> pairs = parse_key_values(text);
    if (!pairs) {
        return tl::unexpected(pairs.error());
    }
    std::vector<std::string> names;
    for (const RdzvConfKey& key : kKeys) {
        names.emplace_back(key.name);
    }
    RdzvConf conf;
    for (const auto& [key, value] : *pairs) {
        if (std::find(names.begin(), names.end(), key) == names.end()) {
            const std::optional<std::string> nearest = nearest_name(key, names);
            return fail(
                quoted(key) + " is not a known key; " +
                (nearest ? "did you mean " + *nearest + "?" : "try join_timeout, last_call_timeout or is_host"));
        }
        if (Result<void> applied = apply(conf, key, value); !applied) {
            return tl::unexpected(applied.error());
        }
    }
    return conf;
}

}  // namespace ddl::plan
