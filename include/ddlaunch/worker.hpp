// ddlaunch::World: this process's place in its job, read from the environment that ddlaunch or torchrun gives.
//
// Reads environment variables, nothing else; call it before other threads change the environment.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <ddlaunch/export.hpp>
#include <ddlaunch/store.hpp>

namespace ddlaunch {

// The environment is incomplete or contradicts itself; the text names every variable concerned.
class DDLAUNCH_API EnvironmentError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct DDLAUNCH_API World {
    int rank = 0;
    int world_size = 1;
    int local_rank = 0;
    int local_world_size = 1;
    int node = 0;                  // GROUP_RANK
    int nodes = 1;                 // GROUP_WORLD_SIZE; 0 if the launcher doesn't say
    std::uint64_t generation = 0;  // DDLAUNCH_GENERATION; 0 with other launchers
    int restart_count = 0;
    int max_restarts = 0;
    std::string job_id;  // empty if the launcher doesn't say
    std::string master_addr;
    std::uint16_t master_port = 0;
    bool store_is_served = false;  // the launcher serves the store; else rank 0 is expected to
    bool launched = false;         // false: started without a launcher, a world of one

    // Without RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and GROUP_RANK: a world of one. With some of them, all
    // and MASTER_ADDR and MASTER_PORT must be there and fit together; else throws EnvironmentError.
    [[nodiscard]] static World from_environment();

    // Connects to the store at master_addr:master_port. Throws StoreError; kInvalid if there is no launcher.
    [[nodiscard]] Store connect_store(const StoreOptions& options = {}) const;
};

}  // namespace ddlaunch
