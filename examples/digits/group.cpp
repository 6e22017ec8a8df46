#include "group.hpp"

#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>

#include <ddlaunch/gloo.hpp>
#include <ddlaunch/worker.hpp>
#include <string>

namespace digits {

struct Group::Connections {
    ddlaunch::Store store;
    std::shared_ptr<gloo::Context> context;
    std::chrono::milliseconds timeout;
};

Group Group::from_environment(std::chrono::milliseconds timeout) {
    const auto world = ddlaunch::World::from_environment();
    Group group;
    group.rank_ = world.rank;
    group.size_ = world.world_size;
    if (world.world_size > 1) {
        ddlaunch::StoreOptions store_options;
        store_options.connect_timeout = timeout;
        ddlaunch::GlooOptions gloo_options;
        gloo_options.timeout = timeout;
        const auto store = world.connect_store(store_options);
        const auto own = "digits/" + std::to_string(world.generation) + "." + std::to_string(world.restart_count);
        group.connections_ = std::make_shared<Connections>(
            Connections{store.prefixed(own), ddlaunch::make_gloo_context(world, store, gloo_options), timeout});
    }
    return group;
}

void Group::sum(Numbers& numbers) {
    if (!connections_) {
        return;
    }
    gloo::AllreduceOptions options(connections_->context);
    options.setOutput(numbers.data(), numbers.size());
    options.setReduceFunction(
        [](void* to, const void* a, const void* b, std::size_t count) { gloo::sum<double>(to, a, b, count); });
    gloo::allreduce(options);
}

std::int64_t Group::highest(std::int64_t value) {
    if (connections_) {
        gloo::AllreduceOptions options(connections_->context);
        options.setOutput(&value, 1);
        options.setReduceFunction([](void* to, const void* a, const void* b, std::size_t count) {
            gloo::max<std::int64_t>(to, a, b, count);
        });
        gloo::allreduce(options);
    }
    return value;
}

void Group::copy_from(int source, Numbers& numbers) {
    if (!connections_) {
        return;
    }
    gloo::BroadcastOptions options(connections_->context);
    options.setOutput(numbers.data(), numbers.size());
    options.setRoot(source);
    gloo::broadcast(options);
}

void Group::leave() {
    if (connections_) {
        connections_->store.barrier("leave", size_, connections_->timeout);
    }
}

}  // namespace digits
