#include "wire/agent_message.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "wire/agent_message_fields.hpp"

namespace ddl::wire {
namespace {

using nlohmann::json;

// ---- names on the wire ------------------------------------------------------------------------------------------

constexpr std::array<const char*, std::variant_size_v<Message>> kTypeNames = {
    "hello",           "ready",   "failed",  "first_exit",   "finished",   "leaving", "beat",     "accepted",
    "checkpoint_done", "welcome", "refused", "notice",       "assignment", "stop",    "job_over", "lease",
    "propose",         "retire",  "seek",    "vote_request", "vote",       "redirect"};

constexpr std::array kDeathKinds = {"exited", "signalled", "start_failed", "node_lost", "out_of_memory", "hung"};
constexpr std::array kStopReasons = {"failure", "membership"};
constexpr std::array kExitOrigins = {"success", "worker", "launcher"};

const auto& names_of(DeathKind /*tag*/) {
    return kDeathKinds;
}
const auto& names_of(StopReason /*tag*/) {
    return kStopReasons;
}
const auto& names_of(ExitOrigin /*tag*/) {
    return kExitOrigins;
}

template <class T>
inline constexpr bool is_text = std::is_same_v<T, std::string>;

// ---- values to JSON ---------------------------------------------------------------------------------------------

class Writer {
public:
    explicit Writer(json& object) : object_(object) {
    }

    template <class T>
    void operator()(const char* name, T& value) {
        object_[name] = to_json(value);
    }

private:
    template <class T>
    static json to_json(T& value) {
        if constexpr (std::is_enum_v<T>) {
            return names_of(value)[static_cast<std::size_t>(value)];
        } else if constexpr (std::is_arithmetic_v<T> || is_text<T>) {
            return value;
        } else {
            json object = json::object();
            Writer writer(object);
            fields(writer, value);
            return object;
        }
    }
    static json to_json(Duration& value) {
        return value.count();
    }
    template <class T>
    static json to_json(std::optional<T>& value) {
        return value ? to_json(*value) : json(nullptr);
    }
    template <class T>
    static json to_json(std::vector<T>& values) {
        json array = json::array();
        for (T& value : values) {
            array.push_back(to_json(value));
        }
        return array;
    }

    json& object_;
};

// ---- JSON to values ---------------------------------------------------------------------------------------------

class Reader {
public:
    explicit Reader(const json& object) : object_(object) {
    }

    template <class T>
    void operator()(const char* name, T& value) {
        if (!error_.empty()) {
            return;
        }
        const auto found = object_.find(name);
        if (found == object_.end()) {
            error_ = std::string("field ") + name + " is missing";
        } else if (!from_json(*found, value) && error_.empty()) {
            error_ = std::string("field ") + name + " has a bad value";
        }
    }

    [[nodiscard]] const std::string& error() const {
        return error_;
    }

private:
    template <class T>
    bool from_json(const json& in, T& value) {
        if constexpr (std::is_enum_v<T>) {
            const auto& names = names_of(value);
            const auto* text = in.get_ptr<const std::string*>();
            const auto found = std::find_if(names.begin(), names.end(),
                                            [&](const char* name) { return text != nullptr && *text == name; });
            value = static_cast<T>(found - names.begin());
            return found != names.end();
        } else if constexpr (std::is_same_v<T, bool>) {
            value = in.is_boolean() && in.get<bool>();
            return in.is_boolean();
        } else if constexpr (std::is_integral_v<T>) {
            return read_integer(in, value);
        } else if constexpr (is_text<T>) {
            const auto* text = in.get_ptr<const std::string*>();
            value = text != nullptr ? *text : "";
            return text != nullptr;
        } else {
            return read_object(in, value);
        }
    }
    template <class T>
    bool read_object(const json& in, T& value) {
        if (!in.is_object()) {
            return false;
        }
        Reader inner(in);
        fields(inner, value);
        error_ = inner.error();
        return error_.empty();
    }
    template <class T>
    static bool read_integer(const json& in, T& value) {
        if (!in.is_number_integer() || (in.is_number_unsigned() && in.get<std::uint64_t>() > kMaxInteger)) {
            return false;
        }
        const auto number = in.get<std::int64_t>();
        if (!std::in_range<T>(number)) {
            return false;
        }
        value = static_cast<T>(number);
        return true;
    }
    bool from_json(const json& in, Duration& value) {
        Duration::rep count = 0;
        const bool good = read_integer(in, count);
        value = Duration(count);
        return good;
    }
    template <class T>
    bool from_json(const json& in, std::optional<T>& value) {
        return in.is_null() || from_json(in, value.emplace());
    }
    template <class T>
    bool from_json(const json& in, std::vector<T>& values) {
        if (!in.is_array()) {
            return false;
        }
        values.resize(in.size());
        std::size_t index = 0;
        return std::all_of(in.begin(), in.end(),
                           [&](const json& element) { return from_json(element, values[index++]); });
    }

    static constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
    const json& object_;
    std::string error_;
};

// ---- messages ---------------------------------------------------------------------------------------------------

std::string to_text(Message message) {
    json object = json::object();
    object["type"] = kTypeNames[message.index()];
    Writer writer(object);
    std::visit([&](auto& value) { fields(writer, value); }, message);
    return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// How much of the texts that workers wrote goes into a message; each step is tried until the message fits.
struct Cut {
    std::size_t deaths;
    std::size_t lines;
    std::size_t bytes;
};
constexpr std::array<Cut, 4> kCuts = {
    {{32, kMaxStderrTailLines, kMaxLineBytes}, {16, kMaxStderrTailLines, 512}, {8, 10, 128}, {1, 5, 64}}};

void shorten(std::string& text, std::size_t limit) {
    if (text.size() > limit) {
        constexpr std::string_view kMark = "...";
        text.resize(limit - kMark.size());
        text += kMark;
    }
}

void shorten(Death& death, const Cut& cut) {
    shorten(death.message, 4 * cut.bytes);
    shorten(death.node, cut.bytes);
    shorten(death.error_file, 2 * cut.bytes);
    if (death.stderr_tail.size() > cut.lines) {
        death.stderr_tail.erase(death.stderr_tail.begin(),
                                death.stderr_tail.end() - static_cast<std::ptrdiff_t>(cut.lines));
    }
    for (std::string& line : death.stderr_tail) {
        shorten(line, cut.bytes);
    }
}

void shorten(std::vector<Death>& deaths, const Cut& cut) {
    deaths.resize(std::min(deaths.size(), cut.deaths));
    for (Death& death : deaths) {
        shorten(death, cut);
    }
}

void shorten(Message& message, const Cut& cut) {
    if (auto* failed = std::get_if<Failed>(&message)) {
        shorten(failed->death, cut);
    } else if (auto* ready = std::get_if<Ready>(&message)) {
        shorten(ready->deaths, cut);
    } else if (auto* over = std::get_if<JobOver>(&message)) {
        shorten(over->deaths, cut);
        shorten(over->why, 4 * cut.bytes);
    } else if (auto* hello = std::get_if<Hello>(&message)) {
        hello->node.addresses.resize(std::min(hello->node.addresses.size(), kMaxAddresses));
        hello->restart_ages.resize(std::min(hello->restart_ages.size(), kMaxRestartAges));
    } else if (auto* notice = std::get_if<Notice>(&message)) {
        shorten(notice->text, 4 * cut.bytes);
    } else if (auto* refused = std::get_if<Refused>(&message)) {
        shorten(refused->reason, 4 * cut.bytes);
    } else if (auto* stop = std::get_if<Stop>(&message)) {
        shorten(stop->why, 4 * cut.bytes);
    } else if (auto* retire = std::get_if<Retire>(&message)) {
        shorten(retire->why, 4 * cut.bytes);
    }
}

template <std::size_t... I>
Message message_of_type(std::size_t index, std::index_sequence<I...> /*all*/) {
    Message message;
    ((I == index ? static_cast<void>(message.emplace<I>()) : static_cast<void>(0)), ...);
    return message;
}

Result<Message> parse(std::string_view text) {
    const json object = json::parse(text, nullptr, false);
    if (!object.is_object()) {
        return fail("agent message is not a JSON object");
    }
    const auto type = object.find("type");
    const auto* name = type == object.end() ? nullptr : type->get_ptr<const std::string*>();
    const auto known = std::find_if(kTypeNames.begin(), kTypeNames.end(),
                                    [&](const char* candidate) { return name != nullptr && *name == candidate; });
    if (known == kTypeNames.end()) {
        return fail("agent message of unknown type " + (name == nullptr ? "(none)" : name->substr(0, 40)));
    }
    Message message = message_of_type(static_cast<std::size_t>(known - kTypeNames.begin()),
                                      std::make_index_sequence<std::variant_size_v<Message>>{});
    Reader reader(object);
    std::visit([&](auto& value) { fields(reader, value); }, message);
    if (!reader.error().empty()) {
        return fail("agent message " + *name + ": " + reader.error());
    }
    return message;
}

constexpr std::size_t kLengthBytes = 4;

std::string frame(const std::string& text) {
    std::string framed;
    framed.reserve(kLengthBytes + text.size());
    for (std::size_t shift = 0; shift < 8 * kLengthBytes; shift += 8) {
        framed.push_back(static_cast<char>((text.size() >> shift) & 0xFFU));
    }
    return framed + text;
}

}  // namespace

std::string encode(const Message& message) {
    Message copy = message;
    std::string text;
    for (const Cut& cut : kCuts) {
        shorten(copy, cut);
        text = to_text(copy);
        if (text.size() <= kMaxMessageBytes) {
            break;
        }
    }
    return frame(text);
}

void MessageReader::feed(std::string_view bytes) {
    if (2 * consumed_ >= buffer_.size()) {  // moves each byte once at most; what was read doesn't pile up
        buffer_.erase(0, consumed_);
        consumed_ = 0;
    }
    buffer_ += bytes;
}

Result<std::optional<Message>> MessageReader::next() {
    const std::string_view rest = std::string_view(buffer_).substr(consumed_);
    if (rest.size() < kLengthBytes) {
        return std::nullopt;
    }
    std::size_t length = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i) {
        length |= std::size_t{static_cast<unsigned char>(rest[i])} << (8 * i);
    }
    if (length > kMaxMessageBytes) {
        return fail("agent message of " + std::to_string(length) + " bytes; the limit is " +
                    std::to_string(kMaxMessageBytes));
    }
    if (rest.size() < kLengthBytes + length) {
        return std::nullopt;
    }
    Result<Message> message = parse(rest.substr(kLengthBytes, length));
    consumed_ += kLengthBytes + length;
    if (!message) {
        return tl::unexpected<Error>(message.error());
    }
    return std::optional<Message>(std::move(*message));
}

}  // namespace ddl::wire
