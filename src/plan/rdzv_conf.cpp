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

constexpr std::array<RdzvConfKey, 25> kKeys = {{
    {"join_timeout", true, "limit for a round to form, in seconds (600)"},
    {"last_call_timeout", true, "extra wait for more nodes once MIN is there, in seconds (30)"},
    {"rejoin_timeout", true, "how long lost nodes may take to come back when fewer than MIN are left (60)"},
    {"lease_timeout", true, "silence after which a node is lost, 1 to 600 s, with etcd at least 2 (5)"},
    {"is_host", true, "whether this node hosts the rendezvous (the owner of the endpoint's address)"},
    {"takeover", true, "majority: a majority of the nodes replaces a lost coordinator; off (c10d: majority)"},
    {"protocol", true, "of etcd: http or https"},
    {"user", true, "of etcd"},
    {"password", true, "of etcd; better in DDL_ETCD_PASSWORD, where other users cannot see it"},
    {"cacert", true, "of etcd: file with the authorities to trust; also ca_cert"},
    {"ca_cert", true, "of etcd: see cacert"},
    {"cert", true, "of etcd: file with this node's certificate; also ssl_cert"},
    {"ssl_cert", true, "of etcd: see cert"},
    {"key", true, "of etcd: file with its key; also ssl_cert_key"},
    {"ssl_cert_key", true, "of etcd: see key"},
    {"close_timeout", false, "nothing has to be marked as closed"},
    {"heartbeat_timeout", false, "use lease_timeout"},
    {"heartbeat", false, "use lease_timeout"},
    {"keep_alive_interval", false, "use lease_timeout"},
    {"keep_alive_max_attempt", false, "use lease_timeout"},
    {"cas_backoff_max_seconds", false, "there is one writer, so no lost update to wait after"},
    {"store_type", false, "tcp; file is refused"},
    {"read_timeout", false, "nothing is polled"},
    {"timeout", false, "use join_timeout"},
    {"etcd_prefix", false, "keys of different jobs are told apart by --rdzv-id"},
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

Result<std::optional<bool>> choose(const std::string& key, std::string_view text, std::string_view yes,
                                   std::string_view no) {
    if (text != yes && text != no) {
        return fail(key + "=" + quoted(text) + " is neither " + std::string(yes) + " nor " + std::string(no));
    }
    return std::optional<bool>(text == yes);
}

Result<void> set_choice(std::optional<bool>& target, Result<std::optional<bool>> chosen) {
    if (!chosen) {
        return tl::unexpected(chosen.error());
    }
    target = *chosen;
    return {};
}

std::string* text_of_etcd(EtcdConf& etcd, const std::string& key) {
    if (key == "user") {
        return &etcd.user;
    }
    if (key == "password") {
        return &etcd.password;
    }
    if (key == "cacert" || key == "ca_cert") {
        return &etcd.ca_file;
    }
    if (key == "cert" || key == "ssl_cert") {
        return &etcd.certificate_file;
    }
    return key == "key" || key == "ssl_cert_key" ? &etcd.key_file : nullptr;
}

Result<void> apply(RdzvConf& conf, const std::string& key, std::string_view text) {
    if (key == "join_timeout") {
        return set_duration(conf.join_timeout, key, text, kShortestLimit, kYear);
    }
    if (key == "last_call_timeout") {
        return set_duration(conf.last_call_timeout, key, text, 0, kYear);
    }
    if (key == "rejoin_timeout") {
        return set_duration(conf.rejoin_timeout, key, text, 0, kYear);
    }
    if (key == "lease_timeout") {
        return set_duration(conf.lease_timeout, key, text, 1, 600);
    }
    if (key == "takeover") {
        return set_choice(conf.takeover, choose(key, text, "majority", "off"));
    }
    if (key == "is_host") {
        const Result<bool> value = parse_boolean(text);
        if (!value) {
            return fail(key + "=" + value.error().message);
        }
        conf.is_host = *value;
        return {};
    }
    std::string* const etcd = text_of_etcd(conf.etcd, key);
    if (etcd != nullptr || key == "protocol") {
        conf.of_etcd.push_back(key);
        if (etcd == nullptr) {
            return set_choice(conf.etcd.tls, choose(key, text, "https", "http"));
        }
        *etcd = text;
        return {};
    }
    if (key == "store_type" && text != "tcp") {
        return fail("store_type=" + quoted(text) + " is not offered; try store_type=tcp");
    }
    conf.no_effect.push_back(key);
    return {};
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
