// Gloo for the ranks of a job: a rendezvous store over ddlaunch::Store, and a connected context in one call.
//
// Header only; needs Gloo's headers and library, which nothing else of ddlaunch does. Called once in each round by
// every rank; blocks until all ranks are connected, at most the timeout. The context starts Gloo's own thread (TCP
// transport). Never picks an address by host name: a rank listens where the job's store is reached from.
#pragma once

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ddlaunch/route.hpp>
#include <ddlaunch/store.hpp>
#include <ddlaunch/worker.hpp>

namespace ddlaunch {

struct GlooOptions {
    std::string name = "world";  // several contexts of one round need different names
    std::string address;         // numeric local address to listen on; empty: the one that leads to the store
    std::chrono::milliseconds timeout = std::chrono::seconds(60);  // to connect, and for each collective afterwards
};

// What Gloo needs of a store. Waits end after `timeout` unless Gloo names another limit; errors are StoreError.
class GlooStore final : public ::gloo::rendezvous::Store {
public:
    explicit GlooStore(ddlaunch::Store store, std::chrono::milliseconds timeout)
        : store_(std::move(store)), timeout_(timeout) {
    }

    void set(const std::string& key, const std::vector<char>& data) override {
        store_.set(key, std::string_view(data.data(), data.size()), timeout_);
    }
    std::vector<char> get(const std::string& key) override {
        const std::string value = store_.get(key, timeout_);
        return {value.begin(), value.end()};
    }
    void wait(const std::vector<std::string>& keys) override {
        store_.wait(keys, timeout_);
    }
    void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
        store_.wait(keys, timeout.count() > 0 ? timeout : timeout_);
    }

private:
    ddlaunch::Store store_;
    std::chrono::milliseconds timeout_;
};

namespace detail {

// Where this rank listens. On the host of the store its name may mean a loopback address (Debian's 127.0.1.1), which is
// of no use to other nodes; then the route to the first rank that has a real one decides.
inline std::string listen_address(const World& world, const ddlaunch::Store& shared, const GlooOptions& options) {
    ddlaunch::Store store = shared;
    const std::string own =
        options.address.empty() ? local_address_towards(world.master_addr, world.master_port) : options.address;
    if (world.nodes == 1 || !options.address.empty()) {
        return own;
    }
    store.set("address/" + std::to_string(world.rank), own, options.timeout);
    for (int rank = 0; is_loopback_address(own) && rank < world.world_size; ++rank) {
        const std::string other = store.get("address/" + std::to_string(rank), options.timeout);
        if (!is_loopback_address(other)) {
            return local_address_towards(other, world.master_port);
        }
    }
    return own;
}

}  // namespace detail

// A Gloo context in which all ranks of the world are connected with each other. Throws StoreError or gloo::Exception;
// after any of these the process should end, since the other ranks can't know.
[[nodiscard]] inline std::shared_ptr<::gloo::Context> make_gloo_context(const World& world,
                                                                        const ddlaunch::Store& store,
                                                                        const GlooOptions& options = {}) {
    // Launchers other than ddlaunch may serve the same store to the next round.
    const ddlaunch::Store own = store.prefixed("gloo/" + options.name + "/" + std::to_string(world.generation) + "." +
                                               std::to_string(world.restart_count));
    ::gloo::transport::tcp::attr attributes;
    attributes.hostname = detail::listen_address(world, own, options);
    auto device = ::gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<::gloo::rendezvous::Context>(world.rank, world.world_size);
    context->setTimeout(options.timeout);
    GlooStore rendezvous(own, options.timeout);
    context->connectFullMesh(rendezvous, device);
    return context;
}

}  // namespace ddlaunch
