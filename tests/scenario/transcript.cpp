#include "scenario/transcript.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <map>
#include <sstream>

#include "base/text.hpp"

namespace ddl::scenario {
namespace {

using std::chrono::seconds;

int number(const std::string& text) {
    return static_cast<int>(parse_integer(text).value_or(-1));
}

// "31s", "1.5s", "50ms".
Duration duration(const std::string& text) {
    const bool milli = text.ends_with("ms");
    const double count = parse_seconds(text.substr(0, text.size() - (milli ? 2 : 1))).value_or(0);
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(milli ? count / 1000 : count));
}

int signal_number(const std::string& text) {
    static const std::map<std::string, int> kSignals = {{"TERM", SIGTERM}, {"INT", SIGINT}, {"USR1", SIGUSR1}};
    const auto found = kSignals.find(text);
    return found == kSignals.end() ? number(text) : found->second;
}

std::pair<std::string, std::string> key_value(const std::string& word) {
    const std::size_t at = word.find('=');
    return {word.substr(0, at), at == std::string::npos ? "" : word.substr(at + 1)};
}

void set_nodes(wire::JobTerms& terms, const std::string& text) {
    const std::size_t colon = text.find(':');
    terms.min_nodes = number(text.substr(0, colon));
    terms.max_nodes = colon == std::string::npos ? terms.min_nodes : number(text.substr(colon + 1));
}

std::string without_comment(const std::string& line) {
    const std::size_t at = line.find('#');
    return std::string(trim(at == std::string::npos ? line : line.substr(0, at)));
}

}  // namespace

Transcript::Transcript() {
    core::AgentSettings& agent = settings_.agent;
    agent.terms.job_id = "job";
    agent.terms.backend = "c10d";
    agent.terms.command_digest = "digest";
    agent.endpoint_text = "h0:29400";
    agent.join_timeout = seconds(600);
    agent.rejoin_timeout = seconds(60);
    agent.restart_grace = seconds(2);
    agent.shutdown_timeout = seconds(30);
    agent.node.workers = 2;
    core::CoordinatorSettings& coordinator = settings_.coordinator;
    coordinator.endpoint_host = "h0";
    coordinator.endpoint_text = "h0:29400";
    coordinator.join_timeout = agent.join_timeout;
    coordinator.last_call_timeout = seconds(30);
    coordinator.rejoin_timeout = agent.rejoin_timeout;
    coordinator.farewell_timeout = seconds(45);
}

std::optional<std::string> Transcript::run(std::string_view text) {
    std::istringstream lines{std::string(text)};
    std::string raw;
    for (int at = 1; std::getline(lines, raw); ++at) {
        std::string wrong = line(without_comment(raw));
        if (wrong.empty() && cluster_ && !cluster_->violation().empty()) {
            wrong = cluster_->violation();
        }
        if (!wrong.empty()) {
            return std::to_string(at) + ": " + raw + "\n    " + wrong;
        }
    }
    const std::string left = nothing_left();
    return left.empty() ? std::nullopt : std::optional("end of file: " + left);
}

std::string Transcript::nothing_left() {
    std::string text;
    if (cluster_) {
        for (const Entry& entry : cluster_->entries()) {
            text += "\n    not expected: " + entry.node + ": " + entry.text;
        }
    }
    return text;
}

std::string Transcript::line(const std::string& text) {
    if (text.empty()) {
        return "";
    }
    if (text.starts_with("expect ")) {
        return cluster_ ? expect(text.substr(7)) : "nothing has been started";
    }
    if (const std::string left = nothing_left(); !left.empty()) {
        return left;
    }
    Words words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
        words.push_back(word);
    }
    return act(words);
}

std::string Transcript::act(const Words& words) {
    if (words[0] == "nodes" || words[0] == "set") {
        return cluster_ ? "settings come before the first start" : set(words);
    }
    if (words[0] == "start") {
        return start(words);
    }
    if (!cluster_ || words.size() < 2) {
        return "not understood";
    }
    cluster_->said().clear();
    if (words[0] == "advance") {
        cluster_->advance(duration(words[1]));
        return "";
    }
    return cluster_->has(words[1]) ? act_on_node(words) : words[1] + " was never started";
}

std::string Transcript::act_on_node(const Words& words) {
    const std::string& node = words[1];
    const std::map<std::string, std::function<void()>> simple = {
        {"kill",
         [&] {
             cluster_->kill(node);
         }},
        {"cut",
         [&] {
             words.size() > 2 ? cluster_->cut_unnoticed(node) : cluster_->cut(node);
         }},
        {"link",
         [&] {
             cluster_->link(node);
         }},
        {"notice",
         [&] {
             cluster_->notice_broken_links();
         }},
        {"hold",
         [&] {
             cluster_->hold(node);
         }},
        {"release",
         [&] {
             cluster_->release(node);
         }},
        {"signal",
         [&] {
             cluster_->signal(node, signal_number(words.at(2)));
         }},
        {"ignore",
         [&] {
             cluster_->ignore_term(node);
         }},
        {"stuck",
         [&] {
             cluster_->make_unkillable(node);
         }},
        {"fail",
         [&] {
             cluster_->fail_system(node, "out of descriptors");
         }},
    };
    if (const auto found = simple.find(words[0]); found != simple.end()) {
        found->second();
        return "";
    }
    if (words[0] == "families") {
        std::deque<int> remaining;
        std::transform(words.begin() + 2, words.end(), std::back_inserter(remaining), number);
        cluster_->leave_families(node, std::move(remaining));
        return "";
    }
    return end_worker(words);
}

std::string Transcript::set(const Words& words) {
    if (words[0] == "nodes") {
        set_nodes(settings_.agent.terms, words.at(1));
        return "";
    }
    const std::string& name = words.at(1);
    const std::string& value = words.at(2);
    core::AgentSettings& agent = settings_.agent;
    core::CoordinatorSettings& coordinator = settings_.coordinator;
    if (name == "max_restarts") {
        agent.terms.max_restarts = number(value);
    } else if (name == "backend") {
        agent.terms.backend = value;
    } else if (name == "join_timeout") {
        agent.join_timeout = coordinator.join_timeout = duration(value);
    } else if (name == "rejoin_timeout") {
        agent.rejoin_timeout = coordinator.rejoin_timeout = duration(value);
    } else if (name == "last_call") {
        coordinator.last_call_timeout = duration(value);
    } else if (name == "restart_grace") {
        agent.restart_grace = duration(value);
    } else {
        return "no such setting";
    }
    return "";
}

std::string Transcript::start(const Words& words) {
    if (!cluster_) {
        cluster_.emplace(settings_);
    }
    cluster_->said().clear();
    NodeOptions options;
    options.name = words.at(1);
    options.agent = settings_.agent;
    core::AgentSettings& agent = options.agent;
    const std::map<std::string, std::function<void(const std::string&)>> options_by_name = {
        {"host",
         [&](const auto&) {
             options.host = true;
         }},
        {"nat",
         [&](const auto&) {
             options.behind_nat = true;
         }},
        {"keep_children",
         [&](const auto&) {
             agent.keep_children = true;
         }},
        {"workers",
         [&](const auto& value) {
             agent.node.workers = number(value);
         }},
        {"rank",
         [&](const auto& value) {
             agent.node.requested_rank = number(value);
         }},
        {"order",
         [&](const auto& value) {
             agent.node.scheduler_order = number(value);
         }},
        {"role",
         [&](const auto& value) {
             agent.node.role = value;
         }},
        {"address",
         [&](const auto& value) {
             agent.node.announced_address = value;
         }},
        {"nnodes",
         [&](const auto& value) {
             set_nodes(agent.terms, value);
         }},
        {"max_restarts",
         [&](const auto& value) {
             agent.terms.max_restarts = number(value);
         }},
        {"digest",
         [&](const auto& value) {
             agent.terms.command_digest = value;
         }},
        {"id",
         [&](const auto& value) {
             agent.terms.job_id = value, agent.terms.job_id_typed = true;
         }},
    };
    for (std::size_t i = 2; i < words.size(); ++i) {
        const auto [name, value] = key_value(words[i]);
        const auto found = options_by_name.find(name);
        if (found == options_by_name.end()) {
            return "no such option of a node: " + name;
        }
        found->second(value);
    }
    cluster_->start(options);
    return "";
}

// die n1 rank=3 sig=9, die n1 rank=3 code=1, exit n1 rank=3, exit n1 all, cannot_start n1 local=0 errno=2
std::string Transcript::end_worker(const Words& words) {
    std::map<std::string, int> values;
    for (const std::string& word : words) {
        values[key_value(word).first] = number(key_value(word).second);
    }
    const std::string& node = words[1];
    if (words[0] == "exit" && values.count("all") != 0) {
        cluster_->exit_all(node);
    } else if (words[0] == "exit") {
        cluster_->end_worker(node, values["rank"], false, 0);
    } else if (words[0] == "die" && values.count("sig") != 0) {
        cluster_->end_worker(node, values["rank"], true, values["sig"]);
    } else if (words[0] == "die") {
        cluster_->end_worker(node, values["rank"], false, values["code"]);
    } else if (words[0] == "cannot_start") {
        cluster_->fail_start(node, values["local"], values["errno"]);
    } else {
        return "not understood";
    }
    return "";
}

std::string Transcript::expect(const std::string& rest) {
    if (rest == "nothing") {
        return nothing_left();
    }
    if (rest == "ended" || rest == "not ended") {
        const bool wanted = rest == "ended";
        return cluster_->coordination_ended() == wanted
                   ? ""
                   : "coordination has " + std::string(wanted ? "not " : "") + "ended";
    }
    if (rest.starts_with("says ")) {
        return expect_said(rest.substr(5), true);
    }
    if (rest.starts_with("silence ")) {
        return expect_said(rest.substr(8), false);
    }
    const std::size_t colon = rest.find(": ");
    return colon == std::string::npos ? "not understood" : expect_entry(rest.substr(0, colon), rest.substr(colon + 2));
}

// n0 "part of a text"
std::string Transcript::expect_said(const std::string& rest, bool wanted) {
    const std::size_t first = rest.find('"');
    const std::size_t last = rest.rfind('"');
    if (first == std::string::npos || last == first) {
        return "not understood";
    }
    const std::string node(trim(rest.substr(0, first)));
    const std::string part = rest.substr(first + 1, last - first - 1);
    std::string all;
    bool found = false;
    for (const Entry& entry : cluster_->said()) {
        found = found || (entry.node == node && entry.text.find(part) != std::string::npos);
        all += "\n    said: " + entry.node + ": " + entry.text;
    }
    return found == wanted ? "" : (wanted ? "not said" : "but it was said") + all;
}

std::string Transcript::expect_entry(const std::string& node, const std::string& text) {
    std::vector<Entry>& entries = cluster_->entries();
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.node == node; });
    if (found == entries.end()) {
        return "nothing came from " + node + nothing_left();
    }
    if (found->text != text) {
        return "instead: " + node + ": " + found->text;
    }
    entries.erase(found);
    return "";
}

}  // namespace ddl::scenario
