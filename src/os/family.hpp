// Finding and ending a worker's whole family: children that left its process group or session included.
//
// Every worker is started with DDLAUNCH_SPAWN_ID=<job nonce>.<serial> in its environment, which its descendants
// inherit. A member of the family is a process with that id in /proc/<pid>/environ, a descendant of one, or a member of
// its session. Each hit is pinned by a pidfd and checked again before it is signalled, so a reused pid is never hit.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ddl::os {

inline constexpr char kSpawnIdVariable[] = "DDLAUNCH_SPAWN_ID";

struct FamilyQuery {
    std::string nonce;              // of the job's agent
    std::vector<int> serials;       // of the workers whose families are meant; empty: of all
    std::vector<pid_t> spared;      // never touched, nor their descendants: guard, surviving workers
    std::vector<pid_t> sessions;    // session ids of the workers meant
    bool adopted_strangers = true;  // also direct children of this process that are not spared
};

struct Member {
    pid_t pid = -1;
    std::string command;       // for messages
    std::string wait_channel;  // /proc/<pid>/wchan, when it is in uninterruptible sleep; else empty
};

// One sweep over /proc: sends `signal` to every member found and returns them (signal 0 only looks). Zombies that are
// this process's children are reaped and not returned. Empty twice in a row: the families are gone.
std::vector<Member> sweep(const FamilyQuery& query, int signal);

}  // namespace ddl::os
