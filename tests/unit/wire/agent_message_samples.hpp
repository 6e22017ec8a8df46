// One filled-in example of every agent message, no field at its default.
#pragma once

#include <vector>

#include "wire/agent_message.hpp"

namespace ddl::wire {

inline Death sample_death() {
    Death death;
    death.kind = DeathKind::kSignalled;
    death.rank = 3;
    death.local_rank = 1;
    death.node = "n1";
    death.pid = 411;
    death.status = 9;
    death.age = std::chrono::milliseconds(1500);
    death.message = "out of \"memory\"\n\\";
    death.stderr_tail = {"line one", "line two \xC3\xA4"};
    death.error_file = "logs/error.json";
    return death;
}

inline Contact sample_contact() {
    return {"n1", "abc", "10.0.0.2", 29400};
}

inline RoundConfig sample_config() {
    return {{1, 6}, {{"n0", "ab", "h0", 29401}, sample_contact()}, 4};
}

inline Hello sample_hello() {
    Hello hello;
    hello.protocol = 7;
    hello.terms = {"job", true, 2, 4, 3, "c10d", "00ff"};
    hello.node.name = "n1";
    hello.node.incarnation = "abc";
    hello.node.workers = 8;
    hello.node.role = "trainer";
    hello.node.requested_rank = 1;
    hello.node.scheduler_order = 0;
    hello.node.announced_address = "192.168.7.1";
    hello.node.connection_address = "10.0.0.2";
    hello.node.addresses = {"10.0.0.2", "fd00::2"};
    hello.last = {2, 5};
    hello.last_group_rank = 1;
    hello.restart_count = 2;
    hello.terms.lease = std::chrono::seconds(5);
    hello.terms.takeover = true;
    hello.node.hub_port = 29400;
    hello.node.candidate = true;
    hello.restart_ages = {std::chrono::seconds(9)};
    hello.config = sample_config();
    hello.pending = RoundConfig{{1, 7}, {sample_contact()}, 1};
    hello.promised = 3;
    return hello;
}

inline Assignment sample_assignment() {
    Assignment assignment;
    assignment.generation = {1, 6};
    assignment.restart_count = 3;
    assignment.group_rank = 1;
    assignment.group_world_size = 4;
    assignment.base_rank = 8;
    assignment.world_size = 32;
    assignment.base_role_rank = 4;
    assignment.role_world_size = 16;
    assignment.master_addr = "h0";
    assignment.master_port = 65535;
    assignment.serves_store = true;
    assignment.store_clients = {"10.0.0.1", "10.0.0.2"};
    assignment.config = sample_config();
    assignment.lease_beat = 7;
    assignment.lease_limit = std::chrono::seconds(4);
    assignment.restart_ages = {std::chrono::seconds(8), std::chrono::seconds(1)};
    return assignment;
}

inline std::vector<Message> sample_messages() {
    Death lost;
    lost.kind = DeathKind::kNodeLost;
    lost.node = "n2";
    std::vector<Message> all;  // not one braced list, which takes a sanitizing compiler long
    all.emplace_back(sample_hello());
    all.emplace_back(Ready{{1, 5}, 40001, {sample_death(), lost}});
    all.emplace_back(Failed{{1, 5}, sample_death()});
    all.emplace_back(FirstExit{{1, 5}});
    all.emplace_back(Finished{{1, 5}});
    all.emplace_back(Leaving{15});
    all.emplace_back(Beat{4});
    all.emplace_back(Accepted{{1, 6}, true, 2});
    all.emplace_back(CheckpointDone{{1, 6}});
    all.emplace_back(Welcome{"job", 1, sample_contact()});
    all.emplace_back(Refused{"--nnodes is 3 on this node but 2 in the running job"});
    all.emplace_back(Notice{"2 of 4 nodes here"});
    all.emplace_back(sample_assignment());
    all.emplace_back(Stop{{1, 5}, StopReason::kMembership, "the job grows"});
    all.emplace_back(JobOver{137, ExitOrigin::kWorker, "rank 3 was killed", {sample_death()}, 3});
    all.emplace_back(Lease{4, std::chrono::milliseconds(3900)});
    all.emplace_back(Propose{sample_config(), {1, 5}, true});
    all.emplace_back(Retire{2, sample_contact(), "node n0 was stopped by SIGTERM"});
    all.emplace_back(Seek{"job", "abc"});
    all.emplace_back(VoteRequest{"job", 2, true, {1, 6}, sample_contact()});
    all.emplace_back(Vote{2, true, true, 1});
    all.emplace_back(Redirect{sample_hello().terms, 2, true, sample_contact()});
    return all;
}

}  // namespace ddl::wire
