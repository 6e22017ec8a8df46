// LaunchPlan: everything this node was asked to do, validated, with nothing optional left open.
//
// Built once by plan::make_plan() from what was typed, PET_*/DDL_* and host facts; immutable afterwards and handed
// by const reference to core, run and net. --dry-run prints it. It holds no decision that can change while the job
// runs (ranks, addresses of other nodes, generations): those arrive in an assignment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace ddl::plan {

// How agents find each other.
enum class Rendezvous : std::uint8_t {
    kLocal,    // one node, no endpoint given: no listener but the worker store on loopback
    kDynamic,  // torchrun's c10d: the owner of the endpoint's address hosts; worker store on a fresh port per round
    kEtcd,     // whoever wins the election in etcd hosts; the endpoints are etcd's
    kStatic,   // node rank 0 hosts at master_addr:master_port, which is also the workers' MASTER_ADDR:MASTER_PORT
};

// Who listens on MASTER_PORT.
enum class WorkerStore : std::uint8_t { kAgent, kWorker };

enum class StdinMode : std::uint8_t { kNone, kRank, kAll, kTerminalForSingleRank };

struct Endpoint {
    std::string host;  // as typed, without brackets; empty with Rendezvous::kLocal
    std::uint16_t port = 0;

    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// When a running round makes room for nodes that came later.
enum class ScaleUp : std::uint8_t { kNow, kAtCheckpoint, kNever };

// How etcd is spoken to, with Rendezvous::kEtcd.
struct EtcdPlan {
    bool tls = false;
    std::string user;
    std::string password;
    std::string ca_file;
    std::string certificate_file;
    std::string key_file;
};

struct PortRange {
    std::uint16_t first = 0;  // 0: choose from the grid
    std::uint16_t last = 0;   // == first: the port is fixed and one listener address serves every generation

    [[nodiscard]] bool fixed() const {
        return first != 0 && first == last;
    }
};

// Which of a worker's two output streams a setting is about.
struct Streams {
    bool out = false;
    bool err = false;

    friend bool operator==(const Streams&, const Streams&) = default;
};

struct RendezvousPlan {
    Rendezvous kind = Rendezvous::kLocal;
    Endpoint endpoint;                // the first of `endpoints`
    std::vector<Endpoint> endpoints;  // several: the only nodes that take over, in this order; with kEtcd: its members
    std::optional<bool> is_host;      // --rdzv-conf is_host=…; unset: owner of the endpoint's address
    std::string job_id;
    bool job_id_typed = false;  // else the coordinator's id wins
    int min_nodes = 1;
    int max_nodes = 1;
    std::optional<int> node_rank;  // asked-for place; always set with kStatic
    std::string local_addr;        // --local-addr; empty: the source address of the connection to the coordinator
    std::string command_digest;    // of the program and its arguments; equal on all nodes of a job
    Duration join_timeout{};       // limit for a round to form, from the agent's start or the last round's end
    Duration last_call_timeout{};  // extra wait for more nodes once MIN is there
    Duration rejoin_timeout{};     // how long lost nodes may take to come back when fewer than MIN are left
    Duration lease_timeout{};      // silence after which a node is lost; zero with kLocal
    bool takeover = false;         // a majority of the last round's voters may replace a lost coordinator
    ScaleUp scale_up = ScaleUp::kNow;
    Duration scale_up_deadline{};  // with kAtCheckpoint: longest wait for the workers' word
    EtcdPlan etcd;
};

struct Program {
    std::vector<std::string> argv;  // complete: interpreter, options, script, arguments; ${local_rank} still in it
    std::string python_source;      // where the interpreter came from, for --dry-run; empty when none is used
};

struct LogPlan {
    std::string directory;           // empty: no files
    std::vector<Streams> redirects;  // by local rank: to files (tee included)
    std::vector<Streams> tees;       // by local rank: files and console
    std::vector<bool> on_console;    // by local rank: --local-ranks-filter
    std::string prefix_template;     // of tee'd lines, ${role_name} ${local_rank} ${rank} ${hostname} open
    std::vector<std::string> stdout_filters;
    std::vector<std::string> stderr_filters;
};

struct Supervision {
    int max_restarts = 0;
    std::optional<Duration> restart_window;  // max_restarts count within this time; unset: in the whole job
    std::vector<int> no_restart_codes;       // exit codes (128+n for signals) after which the job ends at once
    Duration restart_backoff{};              // pause before the second restart in a row, doubled from there
    Duration crash_loop_window{};            // the same failure twice this soon after the start ends the job; 0: never
    bool free_node_loss = false;             // a lost node or coordinator uses up no restart
    std::vector<int> forward_signals;        // passed on to the workers; they stop nothing
    Duration restart_grace{};                // between TERM and KILL when a broken round is ended
    Duration shutdown_timeout{};             // between TERM and KILL when the job is stopped or its membership changes
    std::vector<int> signals;                // --signals-to-handle, as numbers
    bool signal_ranks_only = false;
    bool keep_children = false;
};

// One variable of a worker's environment and where its value comes from ("--master-addr", "rendezvous", "inherited").
struct Variable {
    std::string name;
    std::string value;
    std::string source;

    friend bool operator==(const Variable&, const Variable&) = default;
};

struct LaunchPlan {
    RendezvousPlan rendezvous;
    int workers = 1;  // on this node
    std::string role = "default";
    std::string node_name;  // host name for people; never used to find anybody
    Program program;
    Supervision supervision;
    LogPlan logs;
    WorkerStore worker_store = WorkerStore::kAgent;
    PortRange store_ports;
    std::string master_addr;  // as typed for a single node with --master-addr; else empty
    bool loopback_only = false;
    StdinMode stdin_mode = StdinMode::kNone;
    int stdin_rank = 0;
    bool virtual_local_rank = false;
    std::vector<Variable> fixed_environment;  // what the plan itself adds (OMP_NUM_THREADS, …)
    std::vector<std::string> notes;           // lines to print once, unless quiet
    bool quiet = false;
    std::string events_file;  // --events FILE: JSON lines; empty: none
    std::string result_file;  // --result-file; empty: none
    bool exit_code_class = false;
    std::string store_compat = "auto";     // auto | 1.13 | 2.1: opcode table of pre-2.2 clients
    std::vector<std::string> store_allow;  // --store-allow: CIDRs, or "any"
};

// The place of one worker in a round: all that a worker's environment needs beyond the plan.
struct RankPlace {
    std::uint64_t generation = 0;
    int restart_count = 0;
    int local_rank = 0;
    int rank = 0;
    int world_size = 1;
    int group_rank = 0;
    int group_world_size = 1;
    int role_rank = 0;
    int role_world_size = 1;
    std::string master_addr;
    std::uint16_t master_port = 0;
    std::string error_file;
    std::string job_id;
};

}  // namespace ddl::plan
