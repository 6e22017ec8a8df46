// Who may coordinate, for how long without a word, and when the membership may change.
//
// Decides RendezvousPlan's lease_timeout, takeover, scale_up and etcd, once its kind is known. Called by the
// rendezvous' derivation only.
#pragma once

#include "plan/asked.hpp"
#include "plan/host_facts.hpp"
#include "plan/launch_plan.hpp"
#include "plan/meeting.hpp"

namespace ddl::plan {

// Of etcd's password, so that it need not stand in a command line, which every user can see.
inline constexpr char kEtcdPasswordVariable[] = "DDL_ETCD_PASSWORD";

void derive_authority(Asked& asked, const Meeting& meeting, const HostFacts& host, LaunchPlan& plan);

}  // namespace ddl::plan
