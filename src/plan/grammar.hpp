// The grammar of the values: one text in, one value or the reason why not out.
//
// Pure and free of context: no flag names, no host facts. make_plan() puts the flag or variable in front of the reason
// ('--nnodes: "3:2" has its bounds the wrong way round; try 2:3').
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::plan {

inline constexpr int kMaxNodes = 65'535;
inline constexpr int kMaxWorkersPerNode = 4'096;
inline constexpr std::size_t kMaxEndpoints = 7;

struct NodeRange {
    int min = 1;
    int max = 1;

    friend bool operator==(const NodeRange&, const NodeRange&) = default;
};
[[nodiscard]] Result<NodeRange> parse_node_range(std::string_view text);  // "4", "1:4"

[[nodiscard]] Result<int> parse_count(std::string_view text, int least, int most);
[[nodiscard]] Result<Duration> parse_duration(std::string_view text, double least, double most);  // seconds
[[nodiscard]] Result<bool> parse_boolean(std::string_view text);  // 1/0 true/false t/f yes/no y/n on/off, any case

// "h0", "h0:29400", "10.0.0.1:0", "[fd00::1]", "[fd00::1]:29400". Without a port: `default_port`. An IPv6 address
// without brackets is taken as an address if it can't have a port at its end, else refused as ambiguous.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);
// "h0,h1,[fd00::1]:29400": each as above; the port of the last is that of all that have none. None twice.
[[nodiscard]] Result<std::vector<Endpoint>> parse_endpoints(std::string_view text, std::uint16_t default_port);
[[nodiscard]] Result<std::string> parse_host(std::string_view text);  // the same without a port; brackets go
[[nodiscard]] bool is_numeric_address(std::string_view host);
[[nodiscard]] bool is_loopback_host(std::string_view host);  // localhost, 127.x.y.z, ::1

[[nodiscard]] Result<PortRange> parse_port_range(std::string_view text);  // "29500", "29500-29599"

// "3", "0:1,2-7:3": by local rank; ranks that are not named get none.
[[nodiscard]] Result<std::vector<Streams>> parse_streams(std::string_view text, int workers);
[[nodiscard]] Result<std::vector<bool>> parse_rank_filter(std::string_view text, int workers);  // "0,2-3"
[[nodiscard]] std::vector<std::string> parse_text_list(std::string_view text);  // "a,b"; ",," is a comma in a text

// "SIGTERM,INT,10": numbers in the order given, each once.
[[nodiscard]] Result<std::vector<int>> parse_signals(std::string_view text);

// What is passed on to workers: as above, but nothing that stops the job.
[[nodiscard]] Result<std::vector<int>> parse_forwarded_signals(std::string_view text,
                                                               const std::vector<int>& that_stop);

[[nodiscard]] Result<Duration> parse_span(std::string_view text, double least, double most);  // "90", "30m", "1h", "1d"

struct RestartBudget {
    int restarts = 0;
    std::optional<Duration> window;

    friend bool operator==(const RestartBudget&, const RestartBudget&) = default;
};
[[nodiscard]] Result<RestartBudget> parse_restart_budget(std::string_view text);  // "3", "3/1h"

[[nodiscard]] Result<std::vector<int>> parse_exit_codes(std::string_view text);  // "3,10-20": ascending, each once

using KeyValues = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Result<KeyValues> parse_key_values(std::string_view text);  // "a=1, b=2"; of a repeated key the last

[[nodiscard]] Result<std::vector<std::string>> parse_networks(std::string_view text);  // "10.0.0.0/8,fd00::/8", "any"

}  // namespace ddl::plan
