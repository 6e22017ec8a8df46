// One process of the job as a whole: its agent, its vote, and the coordinator while that lives here.
//
// Owned by run::Driver, which turns sockets, processes, signals and time into NodeEvents and performs the NodeEffects.
// The simulation (tests/sim) owns many. Pure: step(event, now) -> effects. Inside, agent and coordinator talk by the
// same messages as over a socket; this class only passes them on, and decides who hears what:
//
//   at the port     Seek, VoteRequest, Redirect -> takeover; the rest -> the coordinator, or takeover while it is not
//   here on the link     Welcome, Lease, Assignment -> takeover, agent; Propose, Redirect -> takeover; Retire -> both
//   calls           takeover
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/agent.hpp"
#include "core/coordinator.hpp"
#include "core/takeover.hpp"

namespace ddl::core {

struct NodeSettings {
    AgentSettings agent;
    CoordinatorSettings coordinator;
    TakeoverSettings takeover;
};

// ---- events -----------------------------------------------------------------------------------------------------

struct OwnsEndpoint {};  // so this process coordinates, unless it is told otherwise
struct PortOpened {      // where other agents reach this process; before OwnsEndpoint
    std::uint16_t port = 0;
    bool candidate = false;  // it owns one of several endpoints
};
struct PortArrived {  // a connection at this process's own port
    PeerId peer{};
    std::string address;
};
struct PortSaid {
    PeerId peer{};
    wire::Message message;
};
struct PortGone {
    PeerId peer{};
    std::string why;
};
struct LinkUp {  // the connection to the coordinator
    std::string own_address;
};
struct LinkSaid {
    wire::Message message;
};
struct LinkDown {
    std::string why;
};
struct NodeTime {};
// An election elsewhere (etcd) decides who coordinates.
struct OutsideElected {
    std::uint32_t term = 0;
    std::optional<RoundRecord> last;
    Instant until{};
};
struct OutsideFollow {
    std::uint32_t term = 0;
    wire::Contact leader;
};
struct OutsideUntil {
    Instant until{};
};
struct OutsideLost {
    std::string why;
};
using NodeEvent = std::variant<AgentEvent, OwnsEndpoint, PortOpened, PortArrived, PortSaid, PortGone, LinkUp, LinkSaid,
                               LinkDown, CallUp, CallSaid, CallDown, OutsideElected, OutsideFollow, OutsideUntil,
                               OutsideLost, RoundAgreed, NodeTime>;

// ---- effects: those of its parts that go out of the process, and these ---------------------------------------------

struct ToPort {
    PeerId peer{};
    wire::Message message;
};
struct DropAtPort {  // after what is queued has been sent
    PeerId peer{};
};
struct ToLink {
    wire::Message message;
};
struct Dial {                             // end the link, if there is one, and dial until it is up
    std::optional<wire::Contact> leader;  // none: the endpoints
};
struct StopDialling {};
struct Resign {};          // with an election elsewhere
struct CoordinatorEnded {  // its connection ended; with an election elsewhere
    int members = 0;       // of the last round
};
struct MayLeave {};  // no other agent needs this process any more
using NodeEffect = std::variant<PrepareStore, CloseStore, StartWorkers, SignalWorkers, SweepFamilies, Say, Report,
                                Finish, ToPort, DropAtPort, ToLink, Dial, StopDialling, Call, HangUp, SayTo,
                                AgreeOnRound, Resign, CoordinatorEnded, MayLeave>;

class Node {
public:
    Node(NodeSettings settings, Instant now);

    [[nodiscard]] std::vector<NodeEffect> step(const NodeEvent& event, Instant now);
    [[nodiscard]] std::optional<Instant> next_deadline() const;

    [[nodiscard]] bool coordinates() const {
        return coordinator_.has_value();
    }

private:
    using Inner = std::variant<AgentEvent, CoordinatorEvent, TakeoverEvent>;

    void on(const AgentEvent& event);
    void on(const OwnsEndpoint& event);
    void on(const PortOpened& event);
    void on(const PortArrived& event);
    void on(const PortSaid& event);
    void on(const PortGone& event);
    void on(const LinkUp& event);
    void on(const LinkSaid& event);
    void on(const LinkDown& event);
    void on(const CallUp& event);
    void on(const CallSaid& event);
    void on(const CallDown& event);
    void on(const OutsideElected& event);
    void on(const OutsideFollow& event);
    void on(const OutsideUntil& event);
    void on(const OutsideLost& event);
    void on(const RoundAgreed& event);
    void on(const NodeTime& event);

    void put(Inner event);
    void work();
    void from_coordinator(const wire::Message& message);
    void dial(std::optional<wire::Contact> leader);
    void coordinate(CoordinatorSettings settings);
    void stop_coordinating(const std::string& why);
    void lose_link(const std::string& why, bool ended);

    // What goes to another part of this process; what goes out is passed on.
    void perform(const ToCoordinator& effect);
    void perform(const DropSession& effect);
    void perform(const Finish& effect);
    void perform(const SendTo& effect);
    void perform(const DropPeer& effect);
    void perform(const CoordinationEnded& effect);
    void perform(const TermLost& effect);
    void perform(const HandedOver& effect);
    void perform(const Reply& effect);
    void perform(const ToLeader& effect);
    void perform(const Lead& effect);
    void perform(const Follow& effect);
    void perform(const LookElsewhere& effect);
    void perform(const StepDown& effect);
    void perform(const Abandon& effect);
    template <class Outward>
    void perform(const Outward& effect);

    NodeSettings settings_;
    Instant now_{};
    Agent agent_;
    Takeover takeover_;
    std::optional<Coordinator> coordinator_;
    std::deque<Inner> queue_;
    std::map<PeerId, std::string> callers_;  // at the port, with their addresses
    std::set<PeerId> peers_;                 // those that the coordinator knows of
    bool linked_ = false;
    bool greeted_ = false;              // the coordinator here, by the agent here
    LeadsIn leads_;                     // what takeover was told of the coordinator here
    bool followed_ = false;             // another coordinator, so the job runs
    bool owner_ = false;                // of the endpoint
    std::optional<Instant> resume_at_;  // an owner that follows nobody any more coordinates again
    PortOpened port_;
    int members_ = 0;  // of the last round
    std::vector<NodeEffect> effects_;
};

}  // namespace ddl::core
