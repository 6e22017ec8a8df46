// The recorded TCPStore conversations of tests/data/tcpstore_vectors.json, as values.
#pragma once

#include <cstdlib>
#include <fstream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "wire/tcpstore.hpp"

namespace ddl::test {

struct StoreStep {
    enum class Kind : std::uint8_t { kClient, kServer, kServerClosed } kind = Kind::kClient;
    std::string bytes;
};

struct StoreVector {
    std::string id;
    std::string kind;  // client_op, whole_connection, raw_probe
    std::string call;  // the Python call that was recorded
    wire::Dialect dialect = wire::Dialect::kModern;
    std::string handshake;        // of the client, before the steps
    std::string handshake_reply;  // of the server
    std::vector<StoreStep> steps;
    std::string server_bytes;  // of all steps
    bool server_closed = false;
    std::vector<std::string> before;      // requests of another client, before
    std::vector<std::string> concurrent;  // requests of another client, while this one waits
};

inline std::string from_hex(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

inline std::string to_hex(const std::string& bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    std::string hex;
    for (const char byte : bytes) {
        hex.push_back(kDigits[static_cast<unsigned char>(byte) >> 4U]);
        hex.push_back(kDigits[static_cast<unsigned char>(byte) & 15U]);
    }
    return hex;
}

namespace detail {

inline std::string text_of(const nlohmann::json& object, const char* name) {
    return object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : std::string();
}

inline std::vector<std::string> messages_of(const nlohmann::json& object, const char* name) {
    std::vector<std::string> messages;
    if (object.contains(name) && object[name].is_array()) {
        for (const auto& message : object[name]) {
            messages.push_back(from_hex(message["client_hex"]));
        }
    }
    return messages;
}

inline wire::Dialect dialect_of(const std::string& release) {
    if (release.rfind("1.13", 0) == 0) {
        return wire::Dialect::k1_13;
    }
    return release.rfind("2.1.", 0) == 0 ? wire::Dialect::k2_1 : wire::Dialect::kModern;
}

inline StoreStep step_of(const nlohmann::json& entry) {
    const std::string who = entry[0];
    if (who == "S-closed") {
        return {StoreStep::Kind::kServerClosed, {}};
    }
    return {who == "C" ? StoreStep::Kind::kClient : StoreStep::Kind::kServer, from_hex(entry[1])};
}

}  // namespace detail

inline std::vector<StoreVector> load_store_vectors() {
    std::ifstream file(DDLAUNCH_TEST_DATA "/tcpstore_vectors.json");
    const nlohmann::json all = nlohmann::json::parse(file);
    std::vector<StoreVector> vectors;
    for (const auto& entry : all["vectors"]) {
        StoreVector vector;
        vector.id = entry["id"];
        vector.kind = entry["kind"];
        vector.call = detail::text_of(entry, "python_call");
        vector.dialect = detail::dialect_of(entry["torch_version"]);
        if (vector.kind == "client_op") {
            vector.handshake = from_hex(detail::text_of(entry, "handshake_client_hex"));
            vector.handshake_reply = from_hex(detail::text_of(entry, "handshake_server_hex"));
        }
        for (const auto& step : entry["order"]) {
            vector.steps.push_back(detail::step_of(step));
        }
        vector.server_bytes = from_hex(detail::text_of(entry, "server_hex"));
        vector.server_closed = entry.value("server_closed", false);
        vector.before = detail::messages_of(entry, "setup_on_another_connection");
        vector.concurrent = detail::messages_of(entry, "concurrent_on_another_connection");
        vectors.push_back(std::move(vector));
    }
    if (vectors.empty()) {
        throw std::runtime_error("no vectors in " DDLAUNCH_TEST_DATA);
    }
    return vectors;
}

inline void PrintTo(const StoreVector& vector, std::ostream* out) {
    *out << vector.id;
}

// A readable GoogleTest parameter.
inline std::string vector_name(const std::string& id) {
    std::string name = id;
    for (char& letter : name) {
        letter = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ? letter : '_';
    }
    return name;
}

}  // namespace ddl::test
