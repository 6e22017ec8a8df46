// The module ddlaunch-etcd.so: HTTP calls by libcurl, driven by the launcher's loop (net/http_abi.hpp).
//
// Loaded by net/http_client at first use. It starts no thread and resolves no name: addresses come with each request.
// It knows nothing of etcd; the name says what it is needed for.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>

#include <map>
#include <memory>
#include <new>
#include <string>

#include "net/http_abi.hpp"

namespace {

struct Deleter {
    void operator()(CURL* easy) const {
        curl_easy_cleanup(easy);
    }
    void operator()(curl_slist* list) const {
        curl_slist_free_all(list);
    }
};

struct Engine;

struct Call {
    Engine* engine = nullptr;
    std::uint64_t id = 0;
    std::string body;
    std::unique_ptr<curl_slist, Deleter> headers;
    std::unique_ptr<curl_slist, Deleter> resolve;
    std::unique_ptr<CURL, Deleter> easy;
    char error[CURL_ERROR_SIZE] = {};
};

struct Engine {
    const DdlHttpHost* host = nullptr;
    CURLM* multi = nullptr;
    std::map<std::uint64_t, std::unique_ptr<Call>> calls;
};

int status_of(CURL* easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
}

// ---- called by libcurl ------------------------------------------------------------------------------------------

std::size_t on_data(char* data, std::size_t size, std::size_t count, void* user) {
    const Call* call = static_cast<Call*>(user);
    const Engine* engine = call->engine;
    engine->host->received(engine->host->context, call->id, status_of(call->easy.get()), data, size * count);
    return size * count;
}

int on_socket(CURL* /*easy*/, curl_socket_t fd, int what, void* user, void* /*of_socket*/) {
    const Engine* engine = static_cast<Engine*>(user);
    int wanted = kDdlHttpNothing;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) {
        wanted |= kDdlHttpReadable;
    }
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) {
        wanted |= kDdlHttpWritable;
    }
    engine->host->watch_socket(engine->host->context, fd, wanted);
    return 0;
}

int on_timer(CURLM* /*multi*/, long milliseconds, void* user) {
    const Engine* engine = static_cast<Engine*>(user);
    engine->host->set_timer(engine->host->context, milliseconds);
    return 0;
}

// A watch that is silent for hours must notice that the server's host is gone: probes after 2 s, given up after 3 more.
int on_new_socket(void* /*user*/, curl_socket_t fd, curlsocktype /*purpose*/) {
    const auto set = [fd](int level, int option, int value) {
        (void)::setsockopt(fd, level, option, &value, sizeof value);
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 5000);
    return CURL_SOCKOPT_OK;
}

int on_close_socket(void* user, curl_socket_t fd) {
    const Engine* engine = static_cast<Engine*>(user);
    engine->host->watch_socket(engine->host->context, fd, kDdlHttpNothing);
    return ::close(fd);
}

// ---- calls ------------------------------------------------------------------------------------------------------

bool nothing_was_sent(CURLcode code, CURL* easy) {
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_SSL_CONNECT_ERROR ||
        code == CURLE_PEER_FAILED_VERIFICATION) {
        return true;
    }
    curl_off_t sending_began = 0;  // zero also when the time limit came first
    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &sending_began);
    return code == CURLE_OPERATION_TIMEDOUT && sending_began == 0;
}

void finish(Engine& engine, CURL* easy, CURLcode code) {
    Call* call = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
    const auto found = engine.calls.find(call->id);
    const std::unique_ptr<Call> owned = std::move(found->second);
    engine.calls.erase(found);
    const char* local = nullptr;
    curl_easy_getinfo(easy, CURLINFO_LOCAL_IP, &local);
    int outcome = kDdlHttpDone;
    if (code != CURLE_OK) {
        outcome = nothing_was_sent(code, easy) ? kDdlHttpNotConnected : kDdlHttpBroken;
    }
    const char* why = owned->error[0] != '\0' ? owned->error : curl_easy_strerror(code);
    const std::string address = local != nullptr ? local : "";
    const int status = status_of(easy);
    curl_multi_remove_handle(engine.multi, easy);
    engine.host->finished(engine.host->context, owned->id, outcome, status, why, address.c_str());
}

void collect(Engine& engine) {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(engine.multi, &left)) {
        if (message->msg == CURLMSG_DONE) {
            finish(engine, message->easy_handle, message->data.result);
        }
    }
}

bool add_line(std::unique_ptr<curl_slist, Deleter>& list, const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) {
        return false;
    }
    (void)list.release();
    list.reset(longer);
    return true;
}

template <class T>
bool set(const Call& call, CURLoption option, T value) {
    return curl_easy_setopt(call.easy.get(), option, value) == CURLE_OK;
}

bool set_up_connection(const Call& call, const DdlHttpRequest& request) {
    // No proxy: its name would have to be resolved, and etcd is part of the cluster.
    return set(call, CURLOPT_URL, request.url) && set(call, CURLOPT_PROXY, "") && set(call, CURLOPT_NOSIGNAL, 1L) &&
           set(call, CURLOPT_PROTOCOLS_STR, "http,https") &&
           set(call, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1)) &&
           set(call, CURLOPT_CONNECTTIMEOUT_MS, request.connect_limit_ms) &&
           set(call, CURLOPT_TIMEOUT_MS, request.limit_ms) && set(call, CURLOPT_SOCKOPTFUNCTION, &on_new_socket) &&
           set(call, CURLOPT_CLOSESOCKETFUNCTION, &on_close_socket) &&
           set(call, CURLOPT_CLOSESOCKETDATA, static_cast<void*>(call.engine)) &&
           (call.resolve == nullptr || set(call, CURLOPT_RESOLVE, call.resolve.get())) &&
           (request.ca_file == nullptr || set(call, CURLOPT_CAINFO, request.ca_file)) &&
           (request.certificate_file == nullptr || set(call, CURLOPT_SSLCERT, request.certificate_file)) &&
           (request.key_file == nullptr || set(call, CURLOPT_SSLKEY, request.key_file));
}

bool set_up_request(Call& call) {
    return set(call, CURLOPT_POST, 1L) && set(call, CURLOPT_POSTFIELDS, call.body.data()) &&
           set(call, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size())) &&
           set(call, CURLOPT_HTTPHEADER, call.headers.get()) && set(call, CURLOPT_WRITEFUNCTION, &on_data) &&
           set(call, CURLOPT_WRITEDATA, static_cast<void*>(&call)) &&
           set(call, CURLOPT_PRIVATE, static_cast<void*>(&call)) &&
           set(call, CURLOPT_ERRORBUFFER, static_cast<char*>(call.error));
}

bool begin(Engine& engine, const DdlHttpRequest& request) {
    auto call = std::make_unique<Call>();
    call->engine = &engine;
    call->id = request.call;
    call->body.assign(request.body, request.body_size);
    call->easy.reset(curl_easy_init());
    // Without "Expect:", a body of more than a kilobyte would wait for a go-ahead.
    bool ready = call->easy != nullptr && add_line(call->headers, "Content-Type: application/json") &&
                 add_line(call->headers, "Expect:");
    if (ready && request.authorization != nullptr) {
        ready = add_line(call->headers, std::string("Authorization: ") + request.authorization);
    }
    if (ready && request.resolve != nullptr) {
        ready = add_line(call->resolve, std::string("+") + request.resolve);
    }
    if (!ready || !set_up_connection(*call, request) || !set_up_request(*call)) {
        return false;
    }
    const auto place = engine.calls.emplace(request.call, std::move(call)).first;
    if (curl_multi_add_handle(engine.multi, place->second->easy.get()) != CURLM_OK) {
        engine.calls.erase(place);
        return false;
    }
    return true;
}

// ---- called by the host -----------------------------------------------------------------------------------------

void* open_engine(const DdlHttpHost* host) {
    static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    auto engine = std::unique_ptr<Engine>(new (std::nothrow) Engine);
    if (!ready || engine == nullptr) {
        return nullptr;
    }
    engine->host = host;
    engine->multi = curl_multi_init();
    if (engine->multi == nullptr) {
        return nullptr;
    }
    curl_multi_setopt(engine->multi, CURLMOPT_SOCKETFUNCTION, &on_socket);
    curl_multi_setopt(engine->multi, CURLMOPT_SOCKETDATA, engine.get());
    curl_multi_setopt(engine->multi, CURLMOPT_TIMERFUNCTION, &on_timer);
    curl_multi_setopt(engine->multi, CURLMOPT_TIMERDATA, engine.get());
    curl_multi_setopt(engine->multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
    return engine.release();
}

void cancel(void* opaque, std::uint64_t id) {
    Engine& engine = *static_cast<Engine*>(opaque);
    const auto found = engine.calls.find(id);
    if (found != engine.calls.end()) {
        curl_multi_remove_handle(engine.multi, found->second->easy.get());
        engine.calls.erase(found);
    }
}

void close_engine(void* opaque) {
    const std::unique_ptr<Engine> engine(static_cast<Engine*>(opaque));
    while (!engine->calls.empty()) {
        cancel(engine.get(), engine->calls.begin()->first);
    }
    curl_multi_cleanup(engine->multi);
}

int start(void* opaque, const DdlHttpRequest* request) {
    try {
        return begin(*static_cast<Engine*>(opaque), *request) ? 0 : -1;
    } catch (const std::bad_alloc&) {
        return -1;
    }
}

void act(Engine& engine, curl_socket_t fd, int what) {
    int running = 0;
    curl_multi_socket_action(engine.multi, fd, what, &running);
    collect(engine);
}

void socket_ready(void* opaque, int fd, int what) {
    const int readable = (what & kDdlHttpReadable) != 0 ? CURL_CSELECT_IN : 0;
    const int writable = (what & kDdlHttpWritable) != 0 ? CURL_CSELECT_OUT : 0;
    act(*static_cast<Engine*>(opaque), fd, readable | writable);
}

void timer_expired(void* opaque) {
    act(*static_cast<Engine*>(opaque), CURL_SOCKET_TIMEOUT, 0);
}

constexpr DdlHttpModule kModule = {kDdlHttpVersion, &open_engine,  &close_engine, &start,
                                   &cancel,         &socket_ready, &timer_expired};

}  // namespace

extern "C" __attribute__((visibility("default"))) const DdlHttpModule* ddlaunch_http_module() {
    return &kModule;
}
