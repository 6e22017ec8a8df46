// The fields of every agent message, named once for both directions.
//
// fields(archive, value) calls archive(name, member) for each member; wire/agent_message.cpp has the archive that
// writes JSON and the one that reads it. Included by that file only.
#pragma once

#include "wire/agent_message.hpp"

namespace ddl::wire {

template <class Archive>
void fields(Archive& archive, Generation& v) {
    archive("term", v.term);
    archive("counter", v.counter);
}

template <class Archive>
void fields(Archive& archive, JobTerms& v) {
    archive("job_id", v.job_id);
    archive("job_id_typed", v.job_id_typed);
    archive("min_nodes", v.min_nodes);
    archive("max_nodes", v.max_nodes);
    archive("max_restarts", v.max_restarts);
    archive("backend", v.backend);
    archive("command_digest", v.command_digest);
    archive("lease_ns", v.lease);
    archive("takeover", v.takeover);
}

template <class Archive>
void fields(Archive& archive, NodeFacts& v) {
    archive("name", v.name);
    archive("incarnation", v.incarnation);
    archive("workers", v.workers);
    archive("role", v.role);
    archive("requested_rank", v.requested_rank);
    archive("scheduler_order", v.scheduler_order);
    archive("announced_address", v.announced_address);
    archive("connection_address", v.connection_address);
    archive("addresses", v.addresses);
    archive("hub_port", v.hub_port);
    archive("candidate", v.candidate);
}

template <class Archive>
void fields(Archive& archive, Contact& v) {
    archive("name", v.name);
    archive("incarnation", v.incarnation);
    archive("address", v.address);
    archive("port", v.port);
}

template <class Archive>
void fields(Archive& archive, RoundConfig& v) {
    archive("generation", v.generation);
    archive("voters", v.voters);
    archive("nodes", v.nodes);
}

template <class Archive>
void fields(Archive& archive, Death& v) {
    archive("kind", v.kind);
    archive("rank", v.rank);
    archive("local_rank", v.local_rank);
    archive("node", v.node);
    archive("pid", v.pid);
    archive("status", v.status);
    archive("age_ns", v.age);
    archive("message", v.message);
    archive("stderr_tail", v.stderr_tail);
    archive("error_file", v.error_file);
}

template <class Archive>
void fields(Archive& archive, Hello& v) {
    archive("protocol", v.protocol);
    archive("terms", v.terms);
    archive("node", v.node);
    archive("last", v.last);
    archive("last_group_rank", v.last_group_rank);
    archive("restart_count", v.restart_count);
    archive("restart_ages_ns", v.restart_ages);
    archive("config", v.config);
    archive("pending", v.pending);
    archive("promised", v.promised);
}

template <class Archive>
void fields(Archive& archive, Ready& v) {
    archive("ended", v.ended);
    archive("store_port", v.store_port);
    archive("deaths", v.deaths);
}

template <class Archive>
void fields(Archive& archive, Failed& v) {
    archive("generation", v.generation);
    archive("death", v.death);
}

template <class Archive>
void fields(Archive& archive, FirstExit& v) {
    archive("generation", v.generation);
}

template <class Archive>
void fields(Archive& archive, Finished& v) {
    archive("generation", v.generation);
}

template <class Archive>
void fields(Archive& archive, Beat& v) {
    archive("number", v.number);
}

template <class Archive>
void fields(Archive& archive, Accepted& v) {
    archive("generation", v.generation);
    archive("agreed", v.agreed);
    archive("promised", v.promised);
}

template <class Archive>
void fields(Archive& archive, CheckpointDone& v) {
    archive("generation", v.generation);
}

template <class Archive>
void fields(Archive& archive, Leaving& v) {
    archive("signal", v.signal);
}

template <class Archive>
void fields(Archive& archive, Welcome& v) {
    archive("job_id", v.job_id);
    archive("term", v.term);
    archive("coordinator", v.coordinator);
}

template <class Archive>
void fields(Archive& archive, Refused& v) {
    archive("reason", v.reason);
}

template <class Archive>
void fields(Archive& archive, Notice& v) {
    archive("text", v.text);
}

template <class Archive>
void fields(Archive& archive, Assignment& v) {
    archive("generation", v.generation);
    archive("restart_count", v.restart_count);
    archive("group_rank", v.group_rank);
    archive("group_world_size", v.group_world_size);
    archive("base_rank", v.base_rank);
    archive("world_size", v.world_size);
    archive("base_role_rank", v.base_role_rank);
    archive("role_world_size", v.role_world_size);
    archive("master_addr", v.master_addr);
    archive("master_port", v.master_port);
    archive("serves_store", v.serves_store);
    archive("store_clients", v.store_clients);
    archive("config", v.config);
    archive("lease_beat", v.lease_beat);
    archive("lease_limit_ns", v.lease_limit);
    archive("restart_ages_ns", v.restart_ages);
}

template <class Archive>
void fields(Archive& archive, Lease& v) {
    archive("number", v.number);
    archive("limit_ns", v.limit);
}

template <class Archive>
void fields(Archive& archive, Propose& v) {
    archive("config", v.config);
    archive("previous", v.previous);
    archive("agreed", v.agreed);
}

template <class Archive>
void fields(Archive& archive, Retire& v) {
    archive("term", v.term);
    archive("successor", v.successor);
    archive("why", v.why);
}

template <class Archive>
void fields(Archive& archive, Seek& v) {
    archive("job_id", v.job_id);
    archive("incarnation", v.incarnation);
}

template <class Archive>
void fields(Archive& archive, VoteRequest& v) {
    archive("job_id", v.job_id);
    archive("term", v.term);
    archive("trial", v.trial);
    archive("last", v.last);
    archive("candidate", v.candidate);
}

template <class Archive>
void fields(Archive& archive, Vote& v) {
    archive("term", v.term);
    archive("trial", v.trial);
    archive("granted", v.granted);
    archive("promised", v.promised);
}

template <class Archive>
void fields(Archive& archive, Redirect& v) {
    archive("terms", v.terms);
    archive("term", v.term);
    archive("opened", v.opened);
    archive("leader", v.leader);
}

template <class Archive>
void fields(Archive& archive, Stop& v) {
    archive("generation", v.generation);
    archive("reason", v.reason);
    archive("why", v.why);
}

template <class Archive>
void fields(Archive& archive, JobOver& v) {
    archive("exit_code", v.exit_code);
    archive("origin", v.origin);
    archive("why", v.why);
    archive("deaths", v.deaths);
    archive("restart_count", v.restart_count);
}

}  // namespace ddl::wire
