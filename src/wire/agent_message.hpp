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
inline constexpr std::size_t kMaxVoters = 7;
inline constexpr std::size_t kMaxRestartAges = 100;

// What must be the same on all nodes of a job (DESIGN: hello). `*_typed` tells a typed value from a default.
struct JobTerms {
    std::string job_id;
    bool job_id_typed = false;
    int min_nodes = 1;
    int max_nodes = 1;
    int max_restarts = 0;
    std::string backend;         // "c10d" | "static" | "etcd"
    std::string command_digest;  // of program and arguments
    Duration lease{};            // silence after which a node is lost; zero: a job of one node, nothing is leased
    bool takeover = false;       // a majority of a round's voters may replace a lost coordinator

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
    std::uint16_t hub_port = 0;          // where other agents reach this one; 0: nowhere
    bool candidate = false;              // it owns one of several endpoints: only such nodes may take over

    friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// Where to reach an agent.
struct Contact {
    std::string name;
    std::string incarnation;
    std::string address;  // numeric, or a name as typed
    std::uint16_t port = 0;

    friend bool operator==(const Contact&, const Contact&) = default;
};

// What all must agree on before a round may begin: who may decide about the next one.
struct RoundConfig {
    Generation generation;        // {0,0}: none
    std::vector<Contact> voters;  // the coordinator first, at most kMaxVoters
    int nodes = 0;                // that take part in the round

    friend bool operator==(const RoundConfig&, const RoundConfig&) = default;
};

enum class DeathKind : std::uint8_t { kExited, kSignalled, kStartFailed, kNodeLost, kOutOfMemory, kHung };

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
    Generation last;                     // the last round this agent took part in; {0,0} for a newcomer
    int last_group_rank = -1;            // its place in that round
    int restart_count = 0;               // the job's, as this agent knows it
    std::vector<Duration> restart_ages;  // of the failures that a budget per time window still counts
    RoundConfig config;                  // the last one it knows to be agreed on
    std::optional<RoundConfig> pending;  // one it has accepted since, agreed on or not
    std::uint32_t promised = 0;          // it follows no coordinator of an earlier term

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

// Says that this agent lives, and asks for a lease. Numbered from 1 in each session; number n+1 also says that lease n
// has arrived.
struct Beat {
    std::uint64_t number = 0;

    friend bool operator==(const Beat&, const Beat&) = default;
};

// Answers Propose. Who accepts votes for nobody else until the lease timeout has passed.
struct Accepted {
    Generation generation;
    bool agreed = false;
    std::uint32_t promised = 0;  // why not, if larger than the term proposed

    friend bool operator==(const Accepted&, const Accepted&) = default;
};

// A worker of this node says that a checkpoint has just been written: a good moment for a change of membership.
struct CheckpointDone {
    Generation generation;

    friend bool operator==(const CheckpointDone&, const CheckpointDone&) = default;
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
    Contact coordinator;

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
    RoundConfig config;
    std::uint64_t lease_beat = 0;  // the lease that comes with it, as in Lease; unused when nothing is leased
    Duration lease_limit{};
    std::vector<Duration> restart_ages;  // as in Hello

    friend bool operator==(const Assignment&, const Assignment&) = default;
};

// Answers Beat: the workers may run until `limit` after the beat was sent. Zero: the coordinator is here, but has no
// quorum.
struct Lease {
    std::uint64_t number = 0;
    Duration limit{};

    friend bool operator==(const Lease&, const Lease&) = default;
};

// The next round's configuration: to the voters of the last one, who answer; once agreed on, also to those who take no
// part in it, for their information.
struct Propose {
    RoundConfig config;
    Generation previous;  // the latest that the coordinator knows of: who knows of a later one refuses
    bool agreed = false;

    friend bool operator==(const Propose&, const Propose&) = default;
};

// The coordinator leaves in order: its vote in that term is the successor's. An empty successor: an election decides.
struct Retire {
    std::uint32_t term = 0;
    Contact successor;
    std::string why;

    friend bool operator==(const Retire&, const Retire&) = default;
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

// ---- between any two agents, when the coordinator is lost -----------------------------------------------------

// Who coordinates? Answered by Redirect, as soon as that is known.
struct Seek {
    std::string job_id;
    std::string incarnation;

    friend bool operator==(const Seek&, const Seek&) = default;
};

// A trial (nothing is promised by its answer) comes first, so that an agent that lost only its own link disturbs
// nobody.
struct VoteRequest {
    std::string job_id;
    std::uint32_t term = 0;
    bool trial = true;
    Generation last;  // the candidate's last accepted configuration
    Contact candidate;

    friend bool operator==(const VoteRequest&, const VoteRequest&) = default;
};

struct Vote {
    std::uint32_t term = 0;
    bool trial = true;
    bool granted = false;
    std::uint32_t promised = 0;

    friend bool operator==(const Vote&, const Vote&) = default;
};

// Where the coordinator is. Also sent unasked: to voters after an election, and again and again to the endpoint's
// owner.
struct Redirect {
    JobTerms terms;
    std::uint32_t term = 0;
    bool opened = false;  // a round in that term, so the voters have agreed to it
    Contact leader;

    friend bool operator==(const Redirect&, const Redirect&) = default;
};

using Message =
    std::variant<Hello, Ready, Failed, FirstExit, Finished, Leaving, Beat, Accepted, CheckpointDone, Welcome, Refused,
                 Notice, Assignment, Stop, JobOver, Lease, Propose, Retire, Seek, VoteRequest, Vote, Redirect>;

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
