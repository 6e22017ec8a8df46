#include "plan/worker_environment.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "base/text.hpp"
#include "plan/authority_derivation.hpp"
#include "plan/host_facts.hpp"

namespace ddl::plan {

namespace {

constexpr std::array<std::string_view, 2> kSecrets = {"DDLAUNCH_TOKEN", kEtcdPasswordVariable};

class Environment {
public:
    explicit Environment(const std::vector<std::string>& inherited) {
        for (const std::string& variable : inherited) {
            const std::size_t equals = variable.find('=');
            const std::string_view name = std::string_view(variable).substr(0, equals);
            if (equals != std::string::npos && std::find(kSecrets.begin(), kSecrets.end(), name) == kSecrets.end()) {
                set(variable.substr(0, equals), variable.substr(equals + 1), "inherited");
            }
        }
    }

    void set(std::string name, std::string value, std::string source) {
        const auto [known, is_new] = index_.try_emplace(name, variables_.size());
        if (is_new) {
            variables_.push_back({std::move(name), std::move(value), std::move(source)});
        } else {
            variables_[known->second] = {std::move(name), std::move(value), std::move(source)};
        }
    }

    [[nodiscard]] bool has(const std::string& name) const {
        return index_.contains(name);
    }

    [[nodiscard]] std::vector<Variable> take() {
        return std::move(variables_);
    }

private:
    std::vector<Variable> variables_;
    std::unordered_map<std::string, std::size_t> index_;
};

void set_place(Environment& environment, const LaunchPlan& plan, const RankPlace& place) {
    const std::string rendezvous = "rendezvous";
    const int local_rank = plan.virtual_local_rank ? 0 : place.local_rank;
    environment.set("LOCAL_RANK", std::to_string(local_rank),
                    plan.virtual_local_rank ? "--virtual-local-rank" : "place on this node");
    environment.set("RANK", std::to_string(place.rank), rendezvous);
    environment.set("GROUP_RANK", std::to_string(place.group_rank), rendezvous);
    environment.set("ROLE_RANK", std::to_string(place.role_rank), rendezvous);
    environment.set("ROLE_NAME", plan.role, "--role");
    environment.set("LOCAL_WORLD_SIZE", std::to_string(plan.workers), "--nproc-per-node");
    environment.set("WORLD_SIZE", std::to_string(place.world_size), rendezvous);
    environment.set("GROUP_WORLD_SIZE", std::to_string(place.group_world_size), rendezvous);
    environment.set("ROLE_WORLD_SIZE", std::to_string(place.role_world_size), rendezvous);
    environment.set("MASTER_ADDR", place.master_addr, rendezvous);
    environment.set("MASTER_PORT", std::to_string(place.master_port), rendezvous);
    environment.set("DDLAUNCH_GENERATION", std::to_string(place.generation), rendezvous);
}

void set_elastic(Environment& environment, const LaunchPlan& plan, const RankPlace& place) {
    const bool agent_serves = plan.worker_store == WorkerStore::kAgent;
    environment.set("TORCHELASTIC_RESTART_COUNT", std::to_string(place.restart_count), "job");
    environment.set("TORCHELASTIC_MAX_RESTARTS", std::to_string(plan.supervision.max_restarts), "--max-restarts");
    environment.set("TORCHELASTIC_RUN_ID", place.job_id, plan.rendezvous.job_id_typed ? "--rdzv-id" : "made up");
    environment.set("TORCHELASTIC_USE_AGENT_STORE", agent_serves ? "True" : "False", "--worker-store");
    environment.set("TORCHELASTIC_ERROR_FILE", place.error_file, "--log-dir");
    if (!environment.has("TORCH_NCCL_ASYNC_ERROR_HANDLING")) {
        environment.set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", "default");
    }
}

// The one device that the worker of this local rank may see.
void narrow_devices(Environment& environment, int local_rank, const std::vector<std::string>& inherited) {
    const auto index = static_cast<std::size_t>(local_rank);
    bool listed = false;
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
        const Lookup devices = lookup(inherited, name);
        const std::vector<std::string_view> entries = split(devices.value, ',');
        if (devices.found && index < entries.size()) {
            environment.set(name, std::string(trim(entries[index])), "--virtual-local-rank");
            listed = true;
        }
    }
    if (!listed) {
        environment.set("CUDA_VISIBLE_DEVICES", std::to_string(local_rank), "--virtual-local-rank");
    }
}

}  // namespace

std::vector<Variable> worker_environment(const LaunchPlan& plan, const RankPlace& place,
                                         const std::vector<std::string>& inherited) {
    Environment environment(inherited);
    set_place(environment, plan, place);
    set_elastic(environment, plan, place);
    for (const Variable& variable : plan.fixed_environment) {
        environment.set(variable.name, variable.value, variable.source);
    }
    if (plan.virtual_local_rank) {
        narrow_devices(environment, place.local_rank, inherited);
    }
    return environment.take();
}

std::vector<std::string> worker_arguments(const LaunchPlan& plan, int local_rank) {
    constexpr std::string_view kMacro = "${local_rank}";
    const std::string value = std::to_string(local_rank);
    std::vector<std::string> arguments = plan.program.argv;
    for (std::string& argument : arguments) {
        for (std::size_t at = argument.find(kMacro); at != std::string::npos; at = argument.find(kMacro, at)) {
            argument.replace(at, kMacro.size(), value);
            at += value.size();
        }
    }
    return arguments;
}

}  // namespace ddl::plan
