// The messages between agents and the coordinator, and their bytes.
//
// A session opens with kSessionMagic; then each message is a u32 little-endian length and that many bytes of JSON
// {"type": …, …}. Unknown fields are ignored, unknown types are an error. Pure: bytes in, values out. Produced and
// consumed by core; net moves the bytes. Limits below hold for both directions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace ddl::wire {

inline constexpr std::array<std::uint8_t, 4> kSessionMagic = {0xDD, 0x4C, 0x41, 0x01};  // DD 'L' 'A', version 1
inline constexpr int kProtocolVersion = 1;
inline constexpr std::size_t kMaxMessageBytes = 256 * 1024;
inline constexpr std::size_t kMaxStderrTailLines = 20;
inline constexpr std::size_t kMaxLineBytes = 2048;
inline constexpr std::size_t kMaxAddresses = 64;

// What must be the same on all nodes of a job (DESIGN: hello). `*_typed` tells a typed value from a default.
struct JobTerms {
    std::string job_id;
    bool job_id_typed = false;
    int min_nodes = 1;
    int max_nodes = 1;
    int max_restarts = 0;
    std::string backend;         // "c10d" | "static"
    std::string command_digest;  // of program and arguments

    friend bool operator==(const JobTerms&, const JobTerms&) = default;
};

// One agent as it describes itself.
struct NodeFacts {
    std::string name;
    std::string incarnation;  // fresh for every agent process
    int workers = 1;
    std::string role = "default";
    std::optional<int> requested_rank;
    std::optional<int> scheduler_order;  // e.g. SLURM_NODEID
    std::string announced_address;       // --local-addr, or empty
    std::string connection_address;      // own end of the connection to the coordinator, numeric
    std::vector<std::string> addresses;  // all interface addresses, numeric

    friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

enum class DeathKind : std::uint8_t { kExited, kSignalled, kStartFailed, kNodeLost };

// Why one rank ended when nobody asked it to.
struct Death {
    DeathKind kind = DeathKind::kExited;
    int rank = -1;  // global; -1 for a lost node
    int local_rank = -1;
    std::string node;
    int pid = 0;
    int status = 0;       // exit code, signal number, or errno, by kind
    Duration age{};       // how long ago, at the moment the message was made
    std::string message;  // from the worker's error file, or the failed step of a start
    std::vector<std::string> stderr_tail;
    std::string error_file;

    friend bool operator==(const Death&, const Death&) = default;
};

// ---- agent -> coordinator -------------------------------------------------------------------------------------

struct Hello {
    int protocol = kProtocolVersion;
    JobTerms terms;
    NodeFacts node;
    Generation last;           // the last round this agent took part in; {0,0} for a newcomer
    int last_group_rank = -1;  // its place in that round
    int restart_count = 0;     // the job's, as this agent knows it

    friend bool operator==(const Hello&, const Hello&) = default;
};

// No worker of any round runs on this node and it can take part in a new one. Follows Hello's Welcome, and every Stop.
struct Ready {
    Generation ended;              // the round that was stopped; {0,0} the first time
    std::uint16_t store_port = 0;  // where this node would serve the next round's worker store
    std::vector<Death> deaths;     // all own deaths of that round; `age` dates also those that Failed has told

    friend bool operator==(const Ready&, const Ready&) = default;
};

struct Failed {
    Generation generation;
    Death death;

    friend bool operator==(const Failed&, const Failed&) = default;
};

// The first local worker exited 0: membership is frozen from here on.
struct FirstExit {
    Generation generation;

    friend bool operator==(const FirstExit&, const FirstExit&) = default;
};

// Every local worker exited 0.
struct Finished {
    Generation generation;

    friend bool operator==(const Finished&, const Finished&) = default;
};

// This node was told to stop by a signal.
struct Leaving {
    int signal = 0;

    friend bool operator==(const Leaving&, const Leaving&) = default;
};

// ---- coordinator -> agent -------------------------------------------------------------------------------------

struct Welcome {
    std::string job_id;
    std::uint32_t term = 0;

    friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The agent does not belong to this job; it ends with exit code 2 and this reason.
struct Refused {
    std::string reason;

    friend bool operator==(const Refused&, const Refused&) = default;
};

// One line for people on every node: who is missing from a forming round (about every 10 s), why a round was restarted.
struct Notice {
    std::string text;  // "2 of 4 nodes: n0, n1; missing 2; 590 s left"

    friend bool operator==(const Notice&, const Notice&) = default;
};

struct Assignment {
    Generation generation;
    int restart_count = 0;
    int group_rank = 0;
    int group_world_size = 1;
    int base_rank = 0;  // rank of local rank 0
    int world_size = 1;
    int base_role_rank = 0;
    int role_world_size = 1;
    std::string master_addr;
    std::uint16_t master_port = 0;
    bool serves_store = false;
    std::vector<std::string> store_clients;  // numeric addresses that may use the store; only for the server

    friend bool operator==(const Assignment&, const Assignment&) = default;
};

enum class StopReason : std::uint8_t { kFailure, kMembership };

// End all workers of this round, then say Ready. kFailure uses the restart grace, kMembership the shutdown timeout.
struct Stop {
    Generation generation;
    StopReason reason = StopReason::kFailure;
    std::string why;

    friend bool operator==(const Stop&, const Stop&) = default;
};

// Who decided the job's exit code (DESIGN, exit codes).
enum class ExitOrigin : std::uint8_t { kSuccess, kWorker, kLauncher };

// The job has ended, for this reason, with this exit code on every node. Workers still running are ended first, with
// the shutdown timeout.
struct JobOver {
    int exit_code = 0;
    ExitOrigin origin = ExitOrigin::kSuccess;
    std::string why;            // one line
    std::vector<Death> deaths;  // first cause first; empty on success
    int restart_count = 0;

    friend bool operator==(const JobOver&, const JobOver&) = default;
};

using Message = std::variant<Hello, Ready, Failed, FirstExit, Finished, Leaving, Welcome, Refused, Notice, Assignment,
                             Stop, JobOver>;

// The framed bytes of one message. Over-long texts are cut to the limits above, so this cannot fail.
[[nodiscard]] std::string encode(const Message& message);

// Splits a stream into messages. After an error the session must be closed.
class MessageReader {
public:
    // Appends received bytes. Never blocks, never re-scans.
    void feed(std::string_view bytes);

    // The next whole message; nullopt when more bytes are needed; an error names the bad field.
    [[nodiscard]] Result<std::optional<Message>> next();

private:
    std::string buffer_;
    std::size_t consumed_ = 0;
};

}  // namespace ddl::wire
