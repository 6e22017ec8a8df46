// What the launcher and the loadable module ddlaunch-etcd.so know of each other: HTTP by libcurl, driven from outside.
//
// Included by src/modules/etcd_http.cpp and by net/http_client. Plain C types only, so that both sides may bring their
// own C++ library; nothing throws across. One thread: the host calls the module from its loop, and the module calls the
// host only from within such a call. The host must not call the module from within `watch_socket`, `set_timer` or
// `received`.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

constexpr std::uint32_t kDdlHttpVersion = 1;
constexpr char kDdlHttpEntry[] = "ddlaunch_http_module";

enum DdlHttpWatch : int { kDdlHttpNothing = 0, kDdlHttpReadable = 1, kDdlHttpWritable = 2 };

enum DdlHttpOutcome : int {
    kDdlHttpDone = 0,          // a whole reply, whatever its status
    kDdlHttpNotConnected = 1,  // nothing was sent: another server may be asked
    kDdlHttpBroken = 2,        // anything else: the request may have been carried out
};

struct DdlHttpHost {
    void* context;
    // Replaces what is waited for on a socket (DdlHttpWatch values, or'd). kDdlHttpNothing comes before it is closed.
    void (*watch_socket)(void* context, int fd, int what);
    // One timer: timer_expired is to be called after so many milliseconds; -1 stops it.
    void (*set_timer)(void* context, long milliseconds);
    // Bytes of the reply's body, as they come.
    void (*received)(void* context, std::uint64_t call, int status, const char* data, std::size_t size);
    // Once for each call, unless it is cancelled. Texts are valid during the call; `local_address` may be empty.
    void (*finished)(void* context, std::uint64_t call, int outcome, int status, const char* why,
                     const char* local_address);
};

struct DdlHttpRequest {
    std::uint64_t call;         // chosen by the host, new for each
    const char* url;            // http or https, by name
    const char* resolve;        // "name:port:address,address", or null if the url has a numeric address
    const char* authorization;  // value of that header line, or null
    const char* body;           // JSON
    std::size_t body_size;      //
    long limit_ms;              // for the whole call; 0: none
    long connect_limit_ms;      // until the connection is up
    const char* ca_file;        // of https; each may be null
    const char* certificate_file;
    const char* key_file;
};

struct DdlHttpModule {
    std::uint32_t version;                   // kDdlHttpVersion; first in every version
    void* (*open)(const DdlHttpHost* host);  // which outlives it; null: out of memory
    void (*close)(void* engine);
    int (*start)(void* engine, const DdlHttpRequest* request);  // copies what it needs; 0: started
    void (*cancel)(void* engine, std::uint64_t call);
    void (*socket_ready)(void* engine, int fd, int what);
    void (*timer_expired)(void* engine);
};

typedef const DdlHttpModule* (*DdlHttpEntry)();
}
