#include "wire/etcd.hpp"

#include <array>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace ddl::wire {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The first key behind all that begin with `prefix`.
std::string end_of(std::string prefix) {
    while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) {
        prefix.pop_back();
    }
    if (prefix.empty()) {
        return std::string(1, '\0');  // etcd: to the very end
    }
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
    return prefix;
}

json range_body(const EtcdRange& range) {
    json body{{"key", base64(range.key)}};
    if (range.prefix) {
        body["range_end"] = base64(end_of(range.key));
    }
    if (range.count_only) {
        body["count_only"] = true;
    }
    return body;
}

json operation_body(const EtcdOperation& operation) {
    if (const auto* put = std::get_if<EtcdPut>(&operation)) {
        return {{"request_put",
                 {{"key", base64(put->key)}, {"value", base64(put->value)}, {"lease", std::to_string(put->lease)}}}};
    }
    if (const auto* deletion = std::get_if<EtcdDelete>(&operation)) {
        return {{"request_delete_range", {{"key", base64(deletion->key)}}}};
    }
    return {{"request_range", range_body(std::get<EtcdRange>(operation))}};
}

json operations_body(const std::vector<EtcdOperation>& operations) {
    json list = json::array();
    for (const EtcdOperation& operation : operations) {
        list.push_back(operation_body(operation));
    }
    return list;
}

// ---- reading ----------------------------------------------------------------------------------------------------

const json* find(const json& object, const char* name) {
    const auto found = object.find(name);
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

// Fields of one object. What is missing has its default value; what has another type is an error of the whole reply.
class Fields {
public:
    Fields(const json& object, bool& sound) : object_(object), sound_(sound) {
        sound_ = sound_ && object.is_object();
    }

    [[nodiscard]] const json* part(const char* name) const {
        return object_.is_object() ? find(object_, name) : nullptr;
    }

    [[nodiscard]] const json* list(const char* name) const {
        const json* found = part(name);
        if (found != nullptr && (!found->is_array() || found->size() > kMaxEtcdItems)) {
            sound_ = false;
            return nullptr;
        }
        return found;
    }

    [[nodiscard]] std::int64_t integer(const char* name) const {
        const json* found = part(name);
        if (found == nullptr) {
            return 0;
        }
        std::optional<std::int64_t> value;
        if (const auto* text = found->get_ptr<const std::string*>()) {
            value = parse_integer(*text);
        } else if (found->is_number_integer() && !found->is_number_unsigned()) {
            value = found->get<std::int64_t>();
        } else if (found->is_number_unsigned() && found->get<std::uint64_t>() <= kMax) {
            value = static_cast<std::int64_t>(found->get<std::uint64_t>());
        }
        sound_ = sound_ && value.has_value();
        return value.value_or(0);
    }

    [[nodiscard]] bool truth(const char* name) const {
        const json* found = part(name);
        sound_ = sound_ && (found == nullptr || found->is_boolean());
        return found != nullptr && found->is_boolean() && found->get<bool>();
    }

    [[nodiscard]] std::string text(const char* name) const {
        const json* found = part(name);
        const auto* value = found == nullptr ? nullptr : found->get_ptr<const std::string*>();
        sound_ = sound_ && (found == nullptr || value != nullptr);
        return value == nullptr ? "" : *value;
    }

    [[nodiscard]] std::string bytes(const char* name) const {
        std::optional<std::string> value = from_base64(text(name));
        sound_ = sound_ && value.has_value();
        return std::move(value).value_or("");
    }

    [[nodiscard]] std::int64_t revision() const {
        const json* header = part("header");
        return header == nullptr ? 0 : Fields(*header, sound_).integer("revision");
    }

private:
    static constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const json& object_;
    bool& sound_;
};

EtcdKeyValue pair_of(const json& object, bool& sound) {
    const Fields fields(object, sound);
    return {fields.bytes("key"), fields.bytes("value"), fields.integer("create_revision"),
            fields.integer("mod_revision"), fields.integer("lease")};
}

EtcdFound found_of(const json& object, bool& sound) {
    const Fields fields(object, sound);
    EtcdFound found;
    if (const json* list = fields.list("kvs")) {
        for (const json& entry : *list) {
            found.pairs.push_back(pair_of(entry, sound));
        }
    }
    found.count = fields.integer("count");
    return found;
}

EtcdFound result_of(const json& object, bool& sound) {
    const json* range = Fields(object, sound).part("response_range");
    return range == nullptr ? EtcdFound{} : found_of(*range, sound);
}

Result<json> parse(std::string_view body) {
    if (body.size() > kMaxEtcdReply) {
        return fail("etcd's reply is too long: " + std::to_string(body.size()) + " bytes");
    }
    json value = json::parse(body, nullptr, false);
    if (!value.is_object()) {
        return fail("etcd's reply is no JSON object; is it etcd 3.4 or later that answers there?");
    }
    return value;
}

// A reply, or the "result" of one line of a stream; a stream's "error" is one.
Result<json> parse_result(std::string_view body) {
    Result<json> value = parse(body);
    if (!value) {
        return value;
    }
    if (find(*value, "error") != nullptr) {
        return fail(etcd_error(0, body));
    }
    if (const json* result = find(*value, "result")) {
        return json(*result);
    }
    return value;
}

tl::unexpected<Error> bad(const char* what) {
    return fail(std::string("etcd's reply has a field of a wrong kind: ") + what);
}

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> digit_values() {
    std::array<std::int8_t, 256> values{};
    values.fill(-1);
    for (std::size_t i = 0; i < kDigits.size(); ++i) {
        values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
    }
    return values;
}

constexpr std::array<std::int8_t, 256> kDigitValues = digit_values();

}  // namespace

std::string encode(const EtcdTxn& request) {
    return text_of({{"compare", json::array({{{"key", base64(request.key)},
                                              {"target", "CREATE"},
                                              {"result", "EQUAL"},
                                              {"create_revision", std::to_string(request.create_revision)}}})},
                    {"success", operations_body(request.then)},
                    {"failure", operations_body(request.otherwise)}});
}

std::string encode(const EtcdRange& request) {
    return text_of(range_body(request));
}

std::string encode(const EtcdWatch& request) {
    return text_of({{"create_request",
                     {{"key", base64(request.key)}, {"start_revision", std::to_string(request.start_revision)}}}});
}

std::string encode(const EtcdGrant& request) {
    return text_of({{"TTL", std::to_string(request.seconds)}});
}

std::string encode(const EtcdLeaseId& request) {
    return text_of({{"ID", std::to_string(request.id)}});
}

std::string encode(const EtcdUser& request) {
    return text_of({{"name", request.name}, {"password", request.password}});
}

Result<EtcdTxnReply> decode_etcd_txn(std::string_view body) {
    const Result<json> value = parse_result(body);
    if (!value) {
        return tl::unexpected(value.error());
    }
    bool sound = true;
    const Fields fields(*value, sound);
    EtcdTxnReply reply{fields.revision(), fields.truth("succeeded"), {}};
    if (const json* list = fields.list("responses")) {
        for (const json& entry : *list) {
            reply.results.push_back(result_of(entry, sound));
        }
    }
    return sound ? Result<EtcdTxnReply>(std::move(reply)) : bad("of a transaction");
}

Result<EtcdRangeReply> decode_etcd_range(std::string_view body) {
    const Result<json> value = parse_result(body);
    if (!value) {
        return tl::unexpected(value.error());
    }
    bool sound = true;
    EtcdRangeReply reply{Fields(*value, sound).revision(), found_of(*value, sound)};
    return sound ? Result<EtcdRangeReply>(std::move(reply)) : bad("of a range");
}

Result<EtcdLease> decode_etcd_lease(std::string_view body) {
    const Result<json> value = parse_result(body);
    if (!value) {
        return tl::unexpected(value.error());
    }
    bool sound = true;
    const Fields fields(*value, sound);
    const EtcdLease lease{fields.integer("ID"), fields.integer("TTL")};
    return sound && lease.id != 0 ? Result<EtcdLease>(lease) : bad("of a lease");
}

Result<EtcdWatchLine> decode_etcd_watch(std::string_view line) {
    const Result<json> value = parse_result(line);
    if (!value) {
        return tl::unexpected(value.error());
    }
    bool sound = true;
    const Fields fields(*value, sound);
    EtcdWatchLine result{fields.revision(), fields.truth("canceled"), fields.text("cancel_reason"), {}};
    if (result.cancelled && result.why.empty()) {
        result.why = fields.integer("compact_revision") != 0 ? "the revision has been compacted" : "no reason given";
    }
    if (const json* list = fields.list("events")) {
        for (const json& entry : *list) {
            const Fields event(entry, sound);
            const json* pair = event.part("kv");
            const std::string type = event.text("type");
            sound = sound && pair != nullptr && (type.empty() || type == "PUT" || type == "DELETE");
            result.changes.push_back({type == "DELETE", pair != nullptr ? pair_of(*pair, sound) : EtcdKeyValue{}});
        }
    }
    return sound ? Result<EtcdWatchLine>(std::move(result)) : bad("of a watch");
}

Result<std::string> decode_etcd_token(std::string_view body) {
    const Result<json> value = parse_result(body);
    if (!value) {
        return tl::unexpected(value.error());
    }
    bool sound = true;
    std::string token = Fields(*value, sound).text("token");
    // It becomes a line of a request's head.
    for (const char c : token) {
        sound = sound && static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7F;
    }
    return sound && !token.empty() ? Result<std::string>(std::move(token)) : bad("of a token");
}

std::string etcd_error(int status, std::string_view body) {
    if (const Result<json> value = parse(body)) {
        bool sound = true;
        const json* error = find(*value, "error");
        const json& object = error != nullptr && error->is_object() ? *error : *value;
        const Fields fields(object, sound);
        const std::string message = fields.text("message");
        const std::string text = message.empty() && &object == &*value ? fields.text("error") : message;
        if (!text.empty()) {
            return text.substr(0, 300);
        }
    }
    return status == 0 ? "an error without a text" : "HTTP status " + std::to_string(status);
}

std::string base64(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
        std::uint32_t group = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            group = group << 8U | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
        }
        for (std::size_t i = 0; i < 4; ++i) {
            text += i <= count ? kDigits[group >> (18U - 6U * i) & 0x3FU] : '=';
        }
    }
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) {
        return std::nullopt;
    }
    std::size_t padding = 0;
    while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') {
        ++padding;
    }
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const int value = i >= text.size() - padding ? 0 : kDigitValues[static_cast<unsigned char>(text[i])];
        if (value < 0) {
            return std::nullopt;
        }
        group = group << 6U | static_cast<std::uint32_t>(value);
        if (i % 4 == 3) {
            bytes += {static_cast<char>(group >> 16U & 0xFFU), static_cast<char>(group >> 8U & 0xFFU),
                      static_cast<char>(group & 0xFFU)};
            group = 0;
        }
    }
    bytes.resize(bytes.size() - padding);
    return bytes;
}

}  // namespace ddl::wire
