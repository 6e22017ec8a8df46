#include "run/store_host.hpp"

#include <utility>

#include "os/host.hpp"

namespace ddl::run {
namespace {

// So many former ports stay reserved, so that a worker that comes that many rounds late finds nobody.
constexpr std::size_t kReservationsKept = 16;

}  // namespace

StoreHost::StoreHost(net::Loop& loop, const plan::LaunchPlan& plan, std::function<void(std::string)> warn)
    : loop_(loop), plan_(plan), warn_(std::move(warn)) {
}

bool StoreHost::on_rendezvous_port() const {
    return plan_.rendezvous.kind == plan::Rendezvous::kStatic && plan_.worker_store == plan::WorkerStore::kAgent;
}

net::StoreOptions StoreHost::options(std::uint16_t port) const {
    net::StoreOptions options;
    options.reach = plan_.loopback_only ? net::Reach::kLoopback : net::Reach::kEverywhere;
    options.port = port;
    options.compat = plan_.store_compat;
    options.warn = warn_;
    return options;
}

Result<std::uint16_t> StoreHost::prepare() {
    if (on_rendezvous_port()) {
        return plan_.rendezvous.endpoint.port;
    }
    const plan::PortRange range = plan_.store_ports;
    if (plan_.worker_store == plan::WorkerStore::kWorker && range.fixed()) {
        return range.first;
    }
    if (plan_.worker_store == plan::WorkerStore::kAgent && range.first != 0) {
        if (auto bound = bind_within(range); !bound) {
            return tl::unexpected(bound.error());
        }
        return server_->port();
    }
    if (auto bound = bind_fresh(); !bound) {
        return tl::unexpected(bound.error());
    }
    return reservations_.back().port();
}

// A port of the grid, or of the user's range where workers host there.
Result<void> StoreHost::bind_fresh() {
    Result<os::PortReservation> reservation =
        os::PortReservation::take(plan_.store_ports.first, plan_.store_ports.last);
    if (!reservation) {
        return tl::unexpected(reservation.error());
    }
    reservations_.push_back(std::move(*reservation));
    if (reservations_.size() > kReservationsKept) {
        reservations_.pop_front();
    }
    if (plan_.worker_store == plan::WorkerStore::kWorker) {
        return {};
    }
    auto server = net::StoreServer::bind(loop_, options(reservations_.back().port()));
    if (!server) {
        return tl::unexpected(server.error());
    }
    server_ = std::move(*server);
    return {};
}

Result<void> StoreHost::bind_within(plan::PortRange range) {
    if (range.fixed() && server_) {
        return {};
    }
    const int last_port = last_of_range_ != 0 ? last_of_range_ : range.first - 1;
    const int size = range.last - range.first + 1;
    Error last_error;
    for (int i = 0; i < size; ++i) {  // on from the last round's port, so that it is reused as late as possible
        const int port = range.first + (last_port - range.first + 1 + i) % size;
        auto server = net::StoreServer::bind(loop_, options(static_cast<std::uint16_t>(port)));
        if (server) {
            server_ = std::move(*server);
            last_of_range_ = port;
            return {};
        }
        last_error = server.error();
    }
    return tl::unexpected(last_error);
}

net::AllowList StoreHost::allowed(const std::vector<std::string>& clients) const {
    net::AllowList list;
    list.networks = {"127.0.0.0/8", "::1"};
    if (plan_.loopback_only) {
        return list;
    }
    for (const std::string& network : plan_.store_allow) {
        list.any = list.any || network == "any";
    }
    for (const auto& more : {clients, os::interface_addresses(), plan_.store_allow}) {
        list.networks.insert(list.networks.end(), more.begin(), more.end());
    }
    std::erase(list.networks, "any");
    list.any = list.any || (plan_.store_allow.empty() && os::own_network_namespace_in_container());
    return list;
}

Result<void> StoreHost::serve(const std::vector<std::string>& clients, int ranks_per_node) {
    if (plan_.worker_store == plan::WorkerStore::kWorker) {
        return {};
    }
    const Result<net::StoreServer*> server = on_rendezvous_port() ? rendezvous_store() : server_.get();
    if (!server) {
        return tl::unexpected(server.error());
    }
    return (*server)->serve(allowed(clients), ranks_per_node);
}

void StoreHost::withdraw() {
    if (!plan_.store_ports.fixed()) {
        server_.reset();
    }
}

void StoreHost::close() {
    if (on_rendezvous_port() && rendezvous_) {
        rendezvous_->reset();
    }
    if (server_ && plan_.store_ports.fixed()) {
        server_->reset();
    } else {
        server_.reset();
    }
}

void StoreHost::release() {
    server_.reset();
    rendezvous_.reset();
    reservations_.clear();
}

Result<net::StoreServer*> StoreHost::rendezvous_store() {
    if (!rendezvous_) {
        auto server = net::StoreServer::without_port(loop_, options(plan_.rendezvous.endpoint.port));
        if (!server) {
            return tl::unexpected(server.error());
        }
        rendezvous_ = std::move(*server);
    }
    return rendezvous_.get();
}

void StoreHost::adopt(int fd, std::string first_bytes) {
    os::Fd owned(fd);
    const bool first = !rendezvous_;
    if (first && !on_rendezvous_port()) {
        warn_(
            "a store client (PyTorch?) came to the rendezvous port: it gets a store of its own; workers find theirs at "
            "MASTER_ADDR:MASTER_PORT, and other nodes must be started by ddlaunch");
    }
    const Result<net::StoreServer*> server = rendezvous_store();
    if (!server) {
        warn_(server.error().message);
        return;
    }
    if (first && !on_rendezvous_port()) {
        constexpr int kRanksOfAStranger = 64;
        if (auto served = (*server)->serve(net::AllowList{true, {}}, kRanksOfAStranger); !served) {
            warn_(served.error().message);
        }
    }
    (*server)->adopt(owned.release(), std::move(first_bytes));
}

}  // namespace ddl::run
