// One agent's part in an election, without a job: etcd_probe JOB NODE LEASE_SECONDS SERVERS [name=value…], where
// SERVERS is HOST:PORT,HOST:PORT and the names are user, password, cacert, cert, key (TLS as soon as there is a
// cacert).
//
// Prints a line for each effect, with the time of CLOCK_BOOTTIME in seconds. Commands come by standard input, one a
// line: `commit COUNTER`, `gone MEMBERS`, `reached`, `stand-down`, `leave`, `quit`.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "core/etcd_election.hpp"
#include "net/http_client.hpp"
#include "net/loop.hpp"
#include "os/clock.hpp"

namespace {

using namespace ddl;

class Probe {
public:
    Probe(core::ElectionSettings settings, net::HttpSettings http)
        : election_(std::move(settings)), http_(std::move(http)) {
    }

    int run() {
        auto client = net::HttpClient::open(loop_, http_, [this](const core::HttpEvent& event) {
            std::visit([this](const auto& e) { step(e); }, event);
        });
        if (!client) {
            std::fprintf(stderr, "%s\n", client.error().message.c_str());
            return 1;
        }
        client_ = std::move(*client);
        const auto commands = loop_.watch_readable(STDIN_FILENO, [this] { read(); });
        step(core::ElectionStart{"", "192.0.2.1", 4711});
        loop_.run();
        client_.reset();
        return 0;
    }

private:
    void step(const core::ElectionEvent& event) {
        for (const core::ElectionEffect& effect : election_.step(event, os::now())) {
            std::visit([this](const auto& e) { perform(e); }, effect);
        }
        loop_.set_alarm(election_.next_deadline(), [this] { step(core::ElectionTime{}); });
        if (leaving_ && election_.idle()) {
            loop_.stop();
        }
    }

    static void print(const std::string& text) {
        std::printf("%.6f %s\n", seconds(os::now().time_since_epoch()), text.c_str());
        std::fflush(stdout);
    }

    void perform(const core::HttpCall& effect) {
        client_->start(effect);
    }
    void perform(const core::CancelCall& effect) {
        client_->cancel(effect.id);
    }
    void perform(const core::WonElection& effect) {
        term_ = effect.term;
        std::string last = "none";
        if (effect.last) {
            last = std::to_string(effect.last->generation.counter) + "/" + std::to_string(effect.last->places.size());
        }
        print("elected term=" + std::to_string(effect.term) + " last=" + last + " address=" + effect.address);
    }
    static void perform(const core::MayLeadUntil& /*effect*/) {
    }
    static void perform(const core::FollowLeader& effect) {
        print("follow term=" + std::to_string(effect.term) + " node=" + effect.leader.name +
              " at=" + host_and_port(effect.leader.address, effect.leader.port));
    }
    static void perform(const core::LeadLost& effect) {
        print("lost " + effect.why);
    }
    static void perform(const core::RoundWritten& effect) {
        print("round " + std::to_string(effect.generation.counter) + (effect.written ? " written" : " refused"));
    }
    static void perform(const core::Say& effect) {
        print("say " + effect.text);
    }

    void read() {
        char bytes[512];
        const ssize_t size = ::read(STDIN_FILENO, bytes, sizeof bytes);
        if (size <= 0) {
            loop_.stop();
            return;
        }
        std::istringstream lines(std::string(bytes, static_cast<std::size_t>(size)));
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            std::string word;
            unsigned number = 0;
            words >> word >> number;
            obey(word, number);
        }
    }

    void obey(const std::string& word, unsigned number) {
        if (word == "commit") {
            step(core::CommitRound{{{term_, number}, 1, {{"n0", 2}, {"n1", 2}, {"n2", 2}}}});
        } else if (word == "gone") {
            step(core::LeaderGone{static_cast<int>(number)});
        } else if (word == "reached") {
            step(core::LeaderReached{});
        } else if (word == "stand-down") {
            step(core::StandDown{});
        } else if (word == "leave") {
            leaving_ = true;
            step(core::StandDown{true, true});
        } else {
            loop_.stop();
        }
    }

    net::Loop loop_;
    core::EtcdElection election_;
    net::HttpSettings http_;
    std::unique_ptr<net::HttpClient> client_;
    std::uint32_t term_ = 0;
    bool leaving_ = false;
};

}  // namespace

int main(int count, char** arguments) {
    if (count < 5) {
        std::cerr << "usage: etcd_probe JOB NODE LEASE_SECONDS SERVERS [name=value…]\n";
        return 2;
    }
    std::map<std::string, std::string> named;
    for (int i = 5; i < count; ++i) {
        const std::string word = arguments[i];
        named[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    core::ElectionSettings settings;
    settings.job_id = arguments[1];
    settings.node = arguments[2];
    settings.incarnation = settings.node + "-" + std::to_string(::getpid());
    settings.lease_timeout = std::chrono::seconds(std::atoi(arguments[3]));
    settings.user = named["user"];
    settings.password = named["password"];
    settings.etcd_text = arguments[4];
    net::HttpSettings http;
    for (const std::string_view server : split(arguments[4], ',')) {
        const std::size_t colon = server.rfind(':');
        http.servers.push_back({std::string(server.substr(0, colon)),
                                static_cast<std::uint16_t>(*parse_integer(server.substr(colon + 1)))});
    }
    http.tls = named.count("cacert") != 0;
    http.ca_file = named["cacert"];
    http.certificate_file = named["cert"];
    http.key_file = named["key"];
    return Probe(std::move(settings), std::move(http)).run();
}
