// HTTP calls to a service that answers at several addresses, such as the members of an etcd.
//
// Owned by run::Rendezvous; performs what core::EtcdElection asks for. All calls go to one member; when that cannot be
// reached, fails or answers with a server's error, the next ones go to the next member. A call that could not be sent
// is tried with every member before it fails. No thread but the resolver's, and that only for names. Callbacks run on
// the loop's thread, never from within a call of this class.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/http_calls.hpp"
#include "net/http_abi.hpp"
#include "net/loop.hpp"

namespace ddl::net {

struct HttpServer {
    std::string host;  // a name or a numeric address, without brackets
    std::uint16_t port = 0;
};

struct HttpSettings {
    std::vector<HttpServer> servers;  // at least one
    bool tls = false;
    std::string ca_file;  // empty: the system's
    std::string certificate_file;
    std::string key_file;
};

class HttpClient {
public:
    // Loads the module. The error says which file or library is missing.
    [[nodiscard]] static Result<std::unique_ptr<HttpClient>> open(Loop& loop, HttpSettings settings,
                                                                  std::function<void(core::HttpEvent)> happened);
    HttpClient(Loop& loop, const DdlHttpModule& module, HttpSettings settings,
               std::function<void(core::HttpEvent)> happened);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    void start(const core::HttpCall& call);
    void cancel(core::CallId id);

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace ddl::net
