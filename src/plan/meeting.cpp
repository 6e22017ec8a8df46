#include "plan/meeting.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "plan/quoted.hpp"
#include "plan/rendezvous_derivation.hpp"

namespace ddl::plan {

namespace {

using std::chrono_literals::operator""s;

constexpr int kMaxPort = 65'535;
constexpr std::size_t kLongestJobId = 200;

Result<Backend> parse_backend(std::string_view text) {
    if (text == "c10d") {
        return Backend::kC10d;
    }
    if (text == "static") {
        return Backend::kStatic;
    }
    if (text == "etcd" || text == "etcd-v2") {
        return Backend::kEtcd;
    }
    return fail(quoted(text) + " is not a known backend; try c10d, static or etcd");
}

std::uint16_t default_port_of(Backend backend) {
    switch (backend) {
        case Backend::kStatic:
            return kStaticPort;
        case Backend::kEtcd:
            return kEtcdPort;
        case Backend::kUnsaid:
        case Backend::kC10d:
            break;
    }
    return kRendezvousPort;
}

}  // namespace

Result<std::string> parse_job_id(std::string_view text) {
    const bool printable = std::all_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) != 0x7F;
    });
    if (!printable || text.empty() || text.size() > kLongestJobId) {
        return fail(quoted(text) + " is not a name of 1 to 200 characters without blanks");
    }
    return std::string(text);
}

Meeting read_meeting(Asked& asked) {
    Meeting meeting;
    meeting.backend = asked.value(Flag::kRdzvBackend, Backend::kUnsaid, parse_backend);
    if (!trim(asked.text(Flag::kRdzvEndpoint)).empty()) {
        const std::uint16_t default_port = default_port_of(meeting.backend);
        meeting.endpoints =
            asked.value(Flag::kRdzvEndpoint, std::vector<Endpoint>{Endpoint{}},
                        [default_port](std::string_view text) { return parse_endpoints(text, default_port); });
        meeting.endpoint = meeting.endpoints.front();
    }
    meeting.master_addr = asked.value(Flag::kMasterAddr, std::string(), parse_host);
    meeting.master_port = static_cast<std::uint16_t>(
        asked.value(Flag::kMasterPort, 0, [](std::string_view text) { return parse_count(text, 0, kMaxPort); }));
    if (asked.given(Flag::kNodeRank)) {
        meeting.node_rank =
            asked.value(Flag::kNodeRank, 0, [](std::string_view text) { return parse_count(text, 0, kMaxNodes - 1); });
    }
    meeting.conf = asked.value(Flag::kRdzvConf, RdzvConf{}, parse_rdzv_conf);
    for (const std::string& key : meeting.conf.no_effect) {
        asked.note_no_effect(Flag::kRdzvConf, key);
    }
    return meeting;
}

void read_limits(Asked& asked, const Meeting& meeting, RendezvousPlan& rendezvous) {
    rendezvous.join_timeout = meeting.conf.join_timeout.value_or(600s);
    rendezvous.last_call_timeout = meeting.conf.last_call_timeout.value_or(30s);
    rendezvous.rejoin_timeout = meeting.conf.rejoin_timeout.value_or(60s);
    rendezvous.is_host = meeting.conf.is_host;
    const Duration shortcut = asked.value(Flag::kJoinTimeout, rendezvous.join_timeout, [](std::string_view text) {
        return parse_duration(text, 0.001, 365.0 * 86'400);
    });
    if (meeting.conf.join_timeout && shortcut != rendezvous.join_timeout) {
        asked.refuse(Flag::kJoinTimeout,
                     "contradicts join_timeout in " + asked.origin(Flag::kRdzvConf) + "; leave one of the two out");
    }
    rendezvous.join_timeout = shortcut;
}

}  // namespace ddl::plan
