// Calls over HTTP as core asks for them, and what comes of them.
//
// core/etcd_election emits HttpCall and CancelCall and takes the events; net::HttpClient performs them. A call ends
// with exactly one HttpReply or HttpFailed, unless it is cancelled. Which of the service's addresses is called is the
// transport's business: it goes on to the next one after a failure.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/time.hpp"

namespace ddl::core {

enum class CallId : std::uint64_t {};

struct HttpCall {
    CallId id{};
    std::string path;
    std::string body;
    std::string token;       // of the Authorization line; empty: none
    bool streaming = false;  // its body comes as StreamLines for as long as it goes on
    Duration limit{};        // for the whole call; of a stream: until its first line

    friend bool operator==(const HttpCall&, const HttpCall&) = default;
};
struct CancelCall {  // nothing more comes of it
    CallId id{};

    friend bool operator==(const CancelCall&, const CancelCall&) = default;
};

struct HttpReply {
    CallId id{};
    int status = 0;
    std::string body;           // of a stream: what came before an end that was no line
    std::string local_address;  // numeric address of this end of the connection
};
struct HttpFailed {
    CallId id{};
    std::string why;
};
struct StreamLine {
    CallId id{};
    std::string line;
};
using HttpEvent = std::variant<HttpReply, HttpFailed, StreamLine>;

}  // namespace ddl::core
