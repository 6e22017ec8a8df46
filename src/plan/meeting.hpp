// All that was said about the meeting point of the nodes, parsed, nothing decided.
//
// Read once by the rendezvous' derivation, which decides from it; here are only the grammar of the values and limits
// that contradict themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/asked.hpp"
#include "plan/launch_plan.hpp"
#include "plan/rdzv_conf.hpp"

namespace ddl::plan {

enum class Backend : std::uint8_t { kUnsaid, kC10d, kStatic, kEtcd };

struct Meeting {
    Backend backend = Backend::kUnsaid;
    std::optional<Endpoint> endpoint;  // the first of them
    std::vector<Endpoint> endpoints;
    std::string master_addr;
    std::uint16_t master_port = 0;  // 0: not given, or left to us by a 0
    std::optional<int> node_rank;
    RdzvConf conf;
};

[[nodiscard]] Meeting read_meeting(Asked& asked);

// The limits of waiting, and is_host.
void read_limits(Asked& asked, const Meeting& meeting, RendezvousPlan& rendezvous);

[[nodiscard]] Result<std::string> parse_job_id(std::string_view text);

}  // namespace ddl::plan
