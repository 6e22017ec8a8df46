// Where this node would serve the workers' store: one fresh port and key space per round, or the one that was fixed.
//
// Owned by run::Driver, which calls it in this order for every round: prepare() (the port is known to the coordinator
// before the round opens), then serve() on the node of group rank 0 or withdraw() elsewhere, then close() when the
// round is over. Nothing of an ended round is served any more; with a fixed port the key space is emptied instead.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/loop.hpp"
#include "net/store_server.hpp"
#include "os/ports.hpp"
#include "plan/launch_plan.hpp"

namespace ddl::run {

class StoreHost {
public:
    StoreHost(net::Loop& loop, const plan::LaunchPlan& plan, std::function<void(std::string)> warn);

    // The port at which this node would serve the next round. With --worker-store=worker it is only kept free.
    [[nodiscard]] Result<std::uint16_t> prepare();
    // Opens it to the round's nodes (numeric addresses), this machine's own included.
    [[nodiscard]] Result<void> serve(const std::vector<std::string>& clients, int ranks_per_node);
    void withdraw();
    void close();
    // The job is over: also gives the ports back.
    void release();

    // A store client that came to the rendezvous port: of the static backend's workers, or of whoever uses it bare.
    void adopt(int fd, std::string first_bytes);

private:
    [[nodiscard]] bool on_rendezvous_port() const;
    [[nodiscard]] net::StoreOptions options(std::uint16_t port) const;
    [[nodiscard]] net::AllowList allowed(const std::vector<std::string>& clients) const;
    [[nodiscard]] Result<void> bind_fresh();
    [[nodiscard]] Result<void> bind_within(plan::PortRange range);
    [[nodiscard]] Result<net::StoreServer*> rendezvous_store();

    net::Loop& loop_;
    const plan::LaunchPlan& plan_;
    std::function<void(std::string)> warn_;
    std::unique_ptr<net::StoreServer> server_;      // of the next or current round
    int last_of_range_ = 0;                         // port of the last round, with --store-port A-B
    std::unique_ptr<net::StoreServer> rendezvous_;  // clients of the rendezvous port
    std::deque<os::PortReservation> reservations_;  // the newest is in use; older ones keep late workers out
};

}  // namespace ddl::run
