#include "wire/tcpstore.hpp"

namespace ddl::wire {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
    using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

void append_keys(std::string& out, const std::vector<std::string>& keys) {
    append_u64(out, keys.size());
    for (const std::string& key : keys) {
        append_blob(out, key);
    }
}

void append_fields(std::string& out, const Request& request) {
    std::visit(Overloaded{[&](const op::Set& r) {
                              append_blob(out, r.key);
                              append_blob(out, r.value);
                          },
                          [&](const op::CompareSet& r) {
                              append_blob(out, r.key);
                              append_blob(out, r.expected);
                              append_blob(out, r.desired);
                          },
                          [&](const op::Get& r) { append_blob(out, r.key); },
                          [&](const op::Add& r) {
                              append_blob(out, r.key);
                              append_i64(out, r.delta);
                          },
                          [&](const op::Check& r) { append_keys(out, r.keys); },
                          [&](const op::Wait& r) { append_keys(out, r.keys); },
                          [&](const op::WatchKey& r) { append_blob(out, r.key); },
                          [&](const op::DeleteKey& r) { append_blob(out, r.key); },
                          [&](const op::Append& r) {
                              append_blob(out, r.key);
                              append_blob(out, r.suffix);
                          },
                          [&](const op::MultiGet& r) { append_keys(out, r.keys); },
                          [&](const op::MultiSet& r) {
                              append_u64(out, r.pairs.size());
                              for (const auto& [key, value] : r.pairs) {
                                  append_blob(out, key);
                                  append_blob(out, value);
                              }
                          },
                          [&](const op::Ping& r) { append_u32(out, r.nonce); },
                          [&](const op::QueuePush& r) {
                              append_blob(out, r.key);
                              append_blob(out, r.item);
                          },
                          [&](const op::QueuePop& r) { append_blob(out, r.key); },
                          [&](const op::QueueLen& r) { append_blob(out, r.key); },
                          [&](const op::Barrier& r) {
                              append_blob(out, r.key);
                              append_i64(out, r.world_size);
                          },
                          [](const op::NumKeys&) {}, [](const op::CancelWait&) {},
                          [](const op::ListKeys&) {
                          }},
               request);
}

}  // namespace

void append_handshake(std::string& out) {
    out.push_back('\0');
    append_u32(out, kValidateMagic);
}

bool append_request(std::string& out, const Request& request, Dialect dialect) {
    const auto opcode = opcode_of(dialect, request);
    if (!opcode) {
        return false;
    }
    out.push_back(static_cast<char>(*opcode));
    append_fields(out, request);
    return true;
}

void append_reply(std::string& out, const Reply& reply) {
    std::visit(Overloaded{[&](const reply::Byte& r) { out.push_back(static_cast<char>(r.value)); },
                          [&](const reply::Integer& r) { append_i64(out, r.value); },
                          [&](const reply::Nonce& r) { append_u32(out, r.value); },
                          [&](const reply::Blob& r) { append_blob(out, r.value); },
                          [&](const reply::Blobs& r) {
                              for (const std::string& value : r.values) {
                                  append_blob(out, value);
                              }
                          },
                          [&](const reply::Popped& r) {
                              append_i64(out, r.before);
                              if (r.before > 0) {
                                  append_blob(out, r.item);
                              }
                          },
                          [&](const reply::Keys& r) { append_keys(out, r.keys); },
                          [&](const reply::Change& r) {
                              out.push_back(static_cast<char>(r.kind));
                              append_blob(out, r.key);
                              append_blob(out, r.before);
                              append_blob(out, r.after);
                          }},
               reply);
}

}  // namespace ddl::wire
