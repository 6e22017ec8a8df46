// How the nodes of this job will find each other, and where the workers' store will be.
//
// Decides LaunchPlan's rendezvous, worker_store, store_ports, master_addr and loopback_only from flags alone: whether
// the endpoint's address is this node's is found out later, by run. Called by make_plan() only.
#pragma once

#include "plan/asked.hpp"
#include "plan/host_facts.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::plan {

inline constexpr std::uint16_t kRendezvousPort = 29'400;
inline constexpr std::uint16_t kStaticPort = 29'500;
inline constexpr std::uint16_t kEtcdPort = 2'379;

void derive_rendezvous(Asked& asked, const HostFacts& host, LaunchPlan& plan);

}  // namespace ddl::plan
