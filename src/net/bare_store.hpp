// `ddlaunch store`: a store for clients of any job, without agents or workers.
//
// Called by main; blocks until SIGINT or SIGTERM. Says through `say` what a person or script needs to know.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "net/store_server.hpp"

namespace ddl::net {

struct BareStoreOptions {
    Reach reach = Reach::kEverywhere;
    std::uint16_t port = 29500;                    // 0: a free one
    std::string compat = "auto";                   // StoreOptions::compat
    AllowList allow{.any = true, .networks = {}};  // who may connect
    std::function<void(std::string)> listening;    // once: "listening on port N"
    std::function<void(std::string)> warn;         // StoreOptions::warn
};

// Returns when a signal ended it, or the error that kept it from listening.
[[nodiscard]] Result<void> run_bare_store(BareStoreOptions options);

}  // namespace ddl::net
