#include "net/http_client.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "net/address.hpp"
#include "net/agent_sessions.hpp"
#include "net/http_module.hpp"
#include "net/timer.hpp"
#include "wire/etcd.hpp"

namespace ddl::net {
namespace {

using core::CallId;

constexpr Duration kShortestConnect = std::chrono::milliseconds(150);

// What the module said while it was called; dealt with afterwards, since it must not be called from within.
struct Said {
    std::uint64_t number = 0;
    bool finished = false;
    int outcome = 0;
    int status = 0;
    std::string text;  // data, or why
    std::string local_address;
};

struct Socket {
    std::unique_ptr<Watch> readable;
    std::unique_ptr<Watch> writable;
};

struct Call {
    core::HttpCall request;
    std::size_t server = 0;
    std::size_t tried = 1;
    std::uint64_t number = 0;  // of the module's call; 0: none is under way
    int status = 0;
    std::string body;
    std::unique_ptr<Timer> first_line;
};

long milliseconds(Duration time) {
    return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

const char* or_null(const std::string& text) {
    return text.empty() ? nullptr : text.c_str();
}

}  // namespace

struct HttpClient::Impl : std::enable_shared_from_this<HttpClient::Impl> {
    Impl(Loop& loop_, const DdlHttpModule& module_, HttpSettings settings_, std::function<void(core::HttpEvent)> call)
        : loop(loop_), module(module_), settings(std::move(settings_)), happened(std::move(call)), timer(loop_) {
        addresses.resize(settings.servers.size());
        host = {this, &on_watch, &on_timer, &on_received, &on_finished};
        engine = module.open(&host);
    }

    // ---- called by the module -----------------------------------------------------------------------------------

    static Impl& self(void* context) {
        return *static_cast<Impl*>(context);
    }
    static void on_watch(void* context, int fd, int what) {
        self(context).watch(fd, what);
    }
    static void on_timer(void* context, long wait) {
        self(context).set_timer(wait);
    }
    static void on_received(void* context, std::uint64_t call, int status, const char* data, std::size_t size) {
        self(context).said.push_back({call, false, 0, status, std::string(data, size), ""});
    }
    static void on_finished(void* context, std::uint64_t call, int outcome, int status, const char* why,
                            const char* local) {
        self(context).said.push_back({call, true, outcome, status, why, local});
    }

    void watch(int fd, int what);
    void set_timer(long wait);
    void socket_ready(int fd, int what);

    // ---- calls --------------------------------------------------------------------------------------------------

    void begin(Call& call);
    void launch(Call& call);
    void hear();
    void hear_data(Call& call, Said& part);
    void hear_end(CallId id, Call& call, const Said& end);
    void not_connected(CallId id, Call& call, const std::string& why);
    void end(CallId id, core::HttpEvent event);
    void leave(std::size_t server);
    void tell(core::HttpEvent event);
    void deliver();
    [[nodiscard]] std::string name_of(std::size_t server) const {
        return host_and_port(settings.servers[server].host, settings.servers[server].port);
    }

    Loop& loop;
    const DdlHttpModule& module;
    HttpSettings settings;
    std::function<void(core::HttpEvent)> happened;  // empty: the client is gone
    DdlHttpHost host{};
    void* engine = nullptr;
    std::map<int, Socket> sockets;
    Timer timer;
    std::size_t current = 0;                                         // server of new calls
    std::vector<std::optional<std::vector<std::string>>> addresses;  // of servers with names, once they are known
    std::map<CallId, Call> calls;
    std::map<std::uint64_t, CallId> numbers;
    std::uint64_t last_number = 0;
    std::deque<Said> said;
    std::deque<core::HttpEvent> events;
};

// ---- sockets and time -------------------------------------------------------------------------------------------

void HttpClient::Impl::watch(int fd, int what) {
    if (what == kDdlHttpNothing) {
        sockets.erase(fd);
        return;
    }
    Socket& socket = sockets[fd];
    const auto keep = [this, fd, what](std::unique_ptr<Watch>& watch, int kind, auto make) {
        if ((what & kind) == 0) {
            watch.reset();
        } else if (watch == nullptr) {
            watch = make(fd, [this, fd, kind] { socket_ready(fd, kind); });
        }
    };
    keep(socket.readable, kDdlHttpReadable,
         [this](int of, std::function<void()> ready) { return loop.watch_readable(of, std::move(ready)); });
    keep(socket.writable, kDdlHttpWritable,
         [this](int of, std::function<void()> ready) { return loop.watch_writable(of, std::move(ready)); });
}

void HttpClient::Impl::set_timer(long wait) {
    if (wait < 0) {
        timer.cancel();
        return;
    }
    timer.start(std::chrono::milliseconds(wait), [this] {
        module.timer_expired(engine);
        hear();
    });
}

void HttpClient::Impl::socket_ready(int fd, int what) {
    const std::shared_ptr<Impl> alive = shared_from_this();
    module.socket_ready(engine, fd, what);
    hear();
}

// ---- a call's way -----------------------------------------------------------------------------------------------

void HttpClient::Impl::begin(Call& call) {
    const std::size_t server = call.server;
    const std::string& name = settings.servers[server].host;
    if (socket_address(name, 0).has_value() || addresses[server].has_value()) {
        launch(call);
        return;
    }
    const CallId id = call.request.id;
    resolve(loop, name, [weak = weak_from_this(), id, server](Result<std::vector<std::string>> found) {
        const std::shared_ptr<Impl> impl = weak.lock();
        const auto place = impl == nullptr ? decltype(calls)::iterator() : impl->calls.find(id);
        if (impl == nullptr || place == impl->calls.end()) {
            return;  // cancelled in the meantime
        }
        if (found.has_value() && !found->empty()) {
            impl->addresses[server] = std::move(*found);
            impl->launch(place->second);
        } else {
            impl->not_connected(id, place->second, found.has_value() ? "no address" : found.error().message);
        }
    });
}

void HttpClient::Impl::launch(Call& call) {
    const HttpServer& server = settings.servers[call.server];
    const std::string place = host_and_port(server.host, server.port);
    const std::string url = (settings.tls ? "https://" : "http://") + place + call.request.path;
    std::string known;
    if (addresses[call.server].has_value()) {
        known = server.host + ":" + std::to_string(server.port) + ":" + join(*addresses[call.server], ",");
    }
    const Duration connect = call.request.limit / static_cast<int>(settings.servers.size() + 1);
    call.number = ++last_number;
    call.body.clear();
    numbers[call.number] = call.request.id;
    DdlHttpRequest request{};
    request.call = call.number;
    request.url = url.c_str();
    request.resolve = or_null(known);
    request.authorization = or_null(call.request.token);
    request.body = call.request.body.data();
    request.body_size = call.request.body.size();
    request.limit_ms = call.request.streaming ? 0 : milliseconds(call.request.limit);
    request.connect_limit_ms = milliseconds(std::max(connect, kShortestConnect));
    request.ca_file = or_null(settings.ca_file);
    request.certificate_file = or_null(settings.certificate_file);
    request.key_file = or_null(settings.key_file);
    const CallId id = call.request.id;
    if (module.start(engine, &request) != 0) {
        end(id, core::HttpFailed{id, place + ": the call cannot be made"});
        return;
    }
    if (call.request.streaming) {
        call.first_line = std::make_unique<Timer>(loop);
        call.first_line->start(call.request.limit, [this, id, server_number = call.server] {
            leave(server_number);
            end(id, core::HttpFailed{id, name_of(server_number) + " does not answer"});
        });
    }
    hear();
}

void HttpClient::Impl::hear() {
    while (!said.empty()) {
        Said part = std::move(said.front());
        said.pop_front();
        const auto number = numbers.find(part.number);
        if (number == numbers.end()) {
            continue;  // cancelled in the meantime
        }
        const CallId id = number->second;
        Call& call = calls.at(id);
        if (part.finished) {
            numbers.erase(number);
            call.number = 0;
            hear_end(id, call, part);
        } else {
            hear_data(call, part);
        }
    }
}

void HttpClient::Impl::hear_data(Call& call, Said& part) {
    const CallId id = call.request.id;
    call.status = part.status;
    call.first_line.reset();
    call.body += part.text;
    if (call.request.streaming && part.status == 200) {
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = call.body.find('\n', begin)) != std::string::npos; begin = end + 1) {
            if (end > begin) {
                tell(core::StreamLine{id, call.body.substr(begin, end - begin)});
            }
        }
        call.body.erase(0, begin);
    }
    if (call.body.size() > wire::kMaxEtcdReply) {
        end(id, core::HttpFailed{id, name_of(call.server) + " sends too much"});
    }
}

void HttpClient::Impl::hear_end(CallId id, Call& call, const Said& said_last) {
    const std::string why = name_of(call.server) + ": " + said_last.text;
    if (said_last.outcome == kDdlHttpNotConnected) {
        not_connected(id, call, why);
        return;
    }
    if (said_last.outcome != kDdlHttpDone) {
        leave(call.server);
        end(id, core::HttpFailed{id, why});
    } else if (call.request.streaming && said_last.status == 200) {
        leave(call.server);
        end(id, core::HttpFailed{id, name_of(call.server) + " ended the stream"});
    } else {
        if (said_last.status >= 500) {
            leave(call.server);
        }
        end(id, core::HttpReply{id, said_last.status, std::move(call.body), plain_address(said_last.local_address)});
    }
}

void HttpClient::Impl::not_connected(CallId id, Call& call, const std::string& why) {
    addresses[call.server].reset();  // the name may mean another host by now
    leave(call.server);
    if (call.tried >= settings.servers.size()) {
        end(id, core::HttpFailed{id, why});
        return;
    }
    ++call.tried;
    call.first_line.reset();
    call.server = (call.server + 1) % settings.servers.size();
    begin(call);
}

void HttpClient::Impl::end(CallId id, core::HttpEvent event) {
    const auto found = calls.find(id);
    if (found->second.number != 0) {
        numbers.erase(found->second.number);
        module.cancel(engine, found->second.number);
    }
    calls.erase(found);
    tell(std::move(event));
}

void HttpClient::Impl::leave(std::size_t server) {
    if (current == server) {
        current = (current + 1) % settings.servers.size();
    }
}

// ---- events -----------------------------------------------------------------------------------------------------

void HttpClient::Impl::tell(core::HttpEvent event) {
    events.push_back(std::move(event));
    if (events.size() == 1) {
        loop.post([self = shared_from_this()] { self->deliver(); });
    }
}

void HttpClient::Impl::deliver() {
    while (!events.empty() && happened) {
        const core::HttpEvent event = events.front();
        const auto call = happened;  // it may destroy the client, and itself with it
        call(event);
        events.pop_front();
    }
}

HttpClient::HttpClient(Loop& loop, const DdlHttpModule& module, HttpSettings settings,
                       std::function<void(core::HttpEvent)> happened)
    : impl_(std::make_shared<Impl>(loop, module, std::move(settings), std::move(happened))) {
}

HttpClient::~HttpClient() {
    impl_->happened = nullptr;
    impl_->calls.clear();
    impl_->numbers.clear();
    if (impl_->engine != nullptr) {
        impl_->module.close(impl_->engine);
    }
    impl_->timer.cancel();
    impl_->sockets.clear();
}

Result<std::unique_ptr<HttpClient>> HttpClient::open(Loop& loop, HttpSettings settings,
                                                     std::function<void(core::HttpEvent)> happened) {
    const Result<const DdlHttpModule*> module = load_http_module();
    if (!module) {
        return tl::unexpected(module.error());
    }
    auto client = std::make_unique<HttpClient>(loop, **module, std::move(settings), std::move(happened));
    if (client->impl_->engine == nullptr) {
        return fail("libcurl cannot be started: out of memory");
    }
    return client;
}

void HttpClient::start(const core::HttpCall& call) {
    Call& started = impl_->calls[call.id];
    started.request = call;
    started.server = impl_->current;
    impl_->begin(started);
}

// What has happened to the call is still told if it is on its way already; nobody waits for it any more.
void HttpClient::cancel(core::CallId id) {
    const auto found = impl_->calls.find(id);
    if (found == impl_->calls.end()) {
        return;
    }
    if (found->second.number != 0) {
        impl_->numbers.erase(found->second.number);
        impl_->module.cancel(impl_->engine, found->second.number);
    }
    impl_->calls.erase(found);
}

}  // namespace ddl::net
