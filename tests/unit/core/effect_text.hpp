// Effects of agent and coordinator as short texts, so that tables of expectations can be read.
#pragma once

#include <string>
#include <vector>

#include "base/text.hpp"
#include "core/agent.hpp"
#include "core/coordinator.hpp"

namespace ddl::core {

// "ready", "failed 3", "assignment 2", "job_over 7": the message and the one value that matters most.
inline std::string text_of(const wire::Message& message) {
    struct Text {
        std::string operator()(const wire::Hello&) const {
            return "hello";
        }
        std::string operator()(const wire::Ready& m) const {
            return "ready " + std::to_string(m.ended.counter);
        }
        std::string operator()(const wire::Failed& m) const {
            return "failed " + std::to_string(m.death.rank);
        }
        std::string operator()(const wire::FirstExit&) const {
            return "first_exit";
        }
        std::string operator()(const wire::Finished&) const {
            return "finished";
        }
        std::string operator()(const wire::Leaving& m) const {
            return "leaving " + std::to_string(m.signal);
        }
        std::string operator()(const wire::Welcome&) const {
            return "welcome";
        }
        std::string operator()(const wire::Refused&) const {
            return "refused";
        }
        std::string operator()(const wire::Notice&) const {
            return "notice";
        }
        std::string operator()(const wire::Assignment& m) const {
            return "assignment " + std::to_string(m.generation.counter);
        }
        std::string operator()(const wire::Stop& m) const {
            return m.reason == wire::StopReason::kFailure ? "stop failure" : "stop membership";
        }
        std::string operator()(const wire::JobOver& m) const {
            return "job_over " + std::to_string(m.exit_code);
        }
        std::string operator()(const wire::Beat& m) const {
            return "beat " + std::to_string(m.number);
        }
        std::string operator()(const wire::Lease& m) const {
            return "lease " + std::to_string(m.number) + " for " + decimal(seconds(m.limit)) + "s";
        }
        std::string operator()(const wire::Propose& m) const {
            return "propose " + std::to_string(m.config.generation.number());
        }
        std::string operator()(const wire::Accepted& m) const {
            return m.agreed ? "accepted" : "not accepted";
        }
        std::string operator()(const wire::CheckpointDone&) const {
            return "checkpoint";
        }
        std::string operator()(const wire::Retire& m) const {
            return "retire for " + m.successor.name;
        }
        std::string operator()(const wire::Seek&) const {
            return "seek";
        }
        std::string operator()(const wire::VoteRequest& m) const {
            return std::string(m.trial ? "trial " : "request ") + std::to_string(m.term);
        }
        std::string operator()(const wire::Vote& m) const {
            return std::string(m.granted ? "vote " : "no vote ") + std::to_string(m.term);
        }
        std::string operator()(const wire::Redirect& m) const {
            return "redirect to " + m.leader.name;
        }
    };
    return std::visit(Text{}, message);
}

inline std::string text_of(const AgentEffect& effect) {
    struct Text {
        std::string operator()(const ToCoordinator& e) const {
            return text_of(e.message);
        }
        std::string operator()(const DropSession&) const {
            return "drop session";
        }
        std::string operator()(const PrepareStore&) const {
            return "prepare";
        }
        std::string operator()(const CloseStore&) const {
            return "close";
        }
        std::string operator()(const StartWorkers& e) const {
            return "start " + std::to_string(e.assignment.generation.counter);
        }
        std::string operator()(const SignalWorkers& e) const {
            std::vector<std::string> ranks;
            for (const int rank : e.local_ranks) {
                ranks.push_back(std::to_string(rank));
            }
            return signal_name(e.signal).substr(3) + " to " + join(ranks, "+");
        }
        std::string operator()(const SweepFamilies& e) const {
            return e.signal == 0 ? "look" : "sweep " + signal_name(e.signal).substr(3);
        }
        std::string operator()(const Say&) const {
            return "say";
        }
        std::string operator()(const Report&) const {
            return "report";
        }
        std::string operator()(const Finish& e) const {
            return "finish " + std::to_string(e.exit_code);
        }
    };
    return std::visit(Text{}, effect);
}

inline std::string text_of(const CoordinatorEffect& effect) {
    struct Text {
        std::string operator()(const SendTo& e) const {
            return std::to_string(static_cast<int>(e.peer)) + ":" + text_of(e.message);
        }
        std::string operator()(const DropPeer& e) const {
            return "drop " + std::to_string(static_cast<int>(e.peer));
        }
        std::string operator()(const Say&) const {
            return "say";
        }
        std::string operator()(const CoordinationEnded&) const {
            return "ended";
        }
        std::string operator()(const AgreeOnRound& e) const {
            return "agree on " + std::to_string(e.record.generation.number());
        }
        std::string operator()(const TermLost&) const {
            return "term lost";
        }
        std::string operator()(const HandedOver&) const {
            return "handed over";
        }
    };
    return std::visit(Text{}, effect);
}

// "hello, say"; "-" for nothing.
template <class Effect>
std::string text_of(const std::vector<Effect>& effects) {
    std::vector<std::string> texts;
    for (const Effect& effect : effects) {
        texts.push_back(text_of(effect));
    }
    return texts.empty() ? "-" : join(texts, ", ");
}

}  // namespace ddl::core
