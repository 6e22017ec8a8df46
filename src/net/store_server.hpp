// A TCPStore-compatible server over one core::KvTable: PyTorch's store on the wire.
//
// Life: bind() takes the port without listening (so nobody can connect and the port is known), serve() opens it for
// the given clients, destruction closes the listener and every connection. One instance per generation; with a fixed
// port, one instance whose key space is replaced by reset(). Used by run::Driver and by `ddlaunch store`.
// Everything runs on the loop's thread and never blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/loop.hpp"

namespace ddl::net {

enum class Reach : std::uint8_t { kLoopback, kEverywhere };  // 127.0.0.1, or dual-stack wildcard (IPv4 where no IPv6)

// Who may connect: numeric addresses and CIDRs; v4-mapped forms are normalised; loopback and own addresses are the
// caller's to add. `any` switches the check off.
struct AllowList {
    bool any = false;
    std::vector<std::string> networks;
};

struct StoreOptions {
    Reach reach = Reach::kLoopback;
    std::uint16_t port = 0;                               // 0: kernel's choice
    std::string compat = "auto";                          // auto | 1.13 | 2.1: opcode table of clients older than 2.2
    Duration handshake_limit = std::chrono::seconds(10);  // for clients that only `any` lets in, from their first byte
    std::function<void(std::string)> warn;  // one line per refused address (address, count, flag to set), …
};

class StoreServer {
public:
    // Takes the port. Error names the address, the port and, where it can be found, the pid that has it.
    [[nodiscard]] static Result<std::unique_ptr<StoreServer>> bind(Loop& loop, StoreOptions options);
    // One that is only handed connections by adopt(), from a port (options.port) that somebody else listens on.
    [[nodiscard]] static Result<std::unique_ptr<StoreServer>> without_port(Loop& loop, StoreOptions options);
    ~StoreServer();

    [[nodiscard]] std::uint16_t port() const;

    // Starts to accept. `ranks_per_address` scales the limit of silent connections.
    [[nodiscard]] Result<void> serve(AllowList allow, int ranks_per_address);

    // Closes every connection and forgets every key; then refuses all until the next serve().
    void reset();

    // Takes over an accepted socket whose first bytes have been read (a port shared with agent sessions). Applies the
    // same allow-list; closes it when not serving.
    void adopt(int fd, std::string first_bytes);

private:
    struct Impl;
    explicit StoreServer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace ddl::net
