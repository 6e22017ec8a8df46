#include "net/bare_store.hpp"

#include <csignal>
#include <utility>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>

namespace ddl::net {
namespace {

constexpr int kRanksPerAddress = 512;  // scales the limit of silent connections; there is no job that would tell

}  // namespace

Result<void> run_bare_store(BareStoreOptions options) {
    Loop loop;
    asio::signal_set signals(loop.context());
    asio::error_code error;
    for (const int signal : {SIGINT, SIGTERM}) {
        signals.add(signal, error);
        if (error) {
            return fail("cannot watch for signal " + std::to_string(signal) + ": " + error.message());
        }
    }
    signals.async_wait([&loop](const asio::error_code& wait_error, int) {
        if (!wait_error) {
            loop.stop();
        }
    });
    auto server = StoreServer::bind(
        loop,
        {.reach = options.reach, .port = options.port, .compat = options.compat, .warn = std::move(options.warn)});
    if (!server.has_value()) {
        return tl::unexpected(server.error());
    }
    if (auto served = (*server)->serve(std::move(options.allow), kRanksPerAddress); !served.has_value()) {
        return served;
    }
    if (options.listening) {
        options.listening("listening on port " + std::to_string((*server)->port()));
    }
    loop.run();
    return {};
}

}  // namespace ddl::net
