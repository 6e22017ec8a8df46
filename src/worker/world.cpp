#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "ddlaunch/worker.hpp"

namespace ddlaunch {
namespace {

constexpr std::array<const char*, 5> kRankNames = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                                   "GROUP_RANK"};
constexpr std::array<const char*, 2> kMasterNames = {"MASTER_ADDR", "MASTER_PORT"};

// An empty variable is as good as none.
std::optional<std::string> variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

std::int64_t number(const char* name, std::int64_t least, std::int64_t most) {
    const std::string text = variable(name).value_or("");
    const auto value = ddl::parse_integer(text);
    if (!value || *value < least || *value > most) {
        throw EnvironmentError(std::string(name) + "=" + text + " is not a number between " + std::to_string(least) +
                               " and " + std::to_string(most));
    }
    return *value;
}

std::int64_t number_or(const char* name, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
    return variable(name) ? number(name, least, most) : otherwise;
}

template <std::size_t N>
void sort_out(const std::array<const char*, N>& names, std::vector<std::string>& there,
              std::vector<std::string>& missing) {
    for (const char* name : names) {
        (variable(name) ? there : missing).emplace_back(name);
    }
}

// False without a launcher.
bool complete() {
    std::vector<std::string> there;
    std::vector<std::string> missing;
    sort_out(kRankNames, there, missing);
    if (there.empty()) {
        return false;
    }
    sort_out(kMasterNames, there, missing);
    if (!missing.empty()) {
        throw EnvironmentError("the environment names a place in a job only in part: " + ddl::join(missing, ", ") +
                               " missing, " + ddl::join(there, ", ") +
                               " set: start the program with ddlaunch or torchrun, or unset them all");
    }
    return true;
}

// rank < size, as far as the two variables say so.
int below(const char* rank, const char* size, int limit) {
    const auto value = static_cast<int>(number(rank, 0, INT32_MAX));
    if (value >= limit) {
        throw EnvironmentError(std::string(rank) + "=" + std::to_string(value) + " is not below " + size + "=" +
                               std::to_string(limit));
    }
    return value;
}

}  // namespace

World World::from_environment() {
    World world;
    if (!complete()) {
        return world;
    }
    world.launched = true;
    world.world_size = static_cast<int>(number("WORLD_SIZE", 1, INT32_MAX));
    world.rank = below("RANK", "WORLD_SIZE", world.world_size);
    world.local_world_size = static_cast<int>(number("LOCAL_WORLD_SIZE", 1, INT32_MAX));
    world.local_rank = below("LOCAL_RANK", "LOCAL_WORLD_SIZE", world.local_world_size);
    if (world.local_world_size > world.world_size) {
        throw EnvironmentError("LOCAL_WORLD_SIZE=" + std::to_string(world.local_world_size) +
                               " is more than WORLD_SIZE=" + std::to_string(world.world_size));
    }
    world.node = static_cast<int>(number("GROUP_RANK", 0, INT32_MAX));
    world.nodes = static_cast<int>(number_or("GROUP_WORLD_SIZE", 0, 0, INT32_MAX));
    if (world.nodes > 0) {
        world.node = below("GROUP_RANK", "GROUP_WORLD_SIZE", world.nodes);
    }
    world.generation = static_cast<std::uint64_t>(number_or("DDLAUNCH_GENERATION", 0, 0, INT64_MAX));
    world.restart_count = static_cast<int>(number_or("TORCHELASTIC_RESTART_COUNT", 0, 0, INT32_MAX));
    world.max_restarts = static_cast<int>(number_or("TORCHELASTIC_MAX_RESTARTS", 0, 0, INT32_MAX));
    world.job_id = variable("TORCHELASTIC_RUN_ID").value_or("");
    world.master_addr = *variable("MASTER_ADDR");
    world.master_port = static_cast<std::uint16_t>(number("MASTER_PORT", 1, UINT16_MAX));
    world.store_is_served = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
    return world;
}

Store World::connect_store(const StoreOptions& options) const {
    if (!launched) {
        throw StoreError(StoreErrc::kInvalid,
                         "store: this process was started without a launcher, so there is no store to connect to");
    }
    return Store(master_addr, master_port, options);
}

}  // namespace ddlaunch
