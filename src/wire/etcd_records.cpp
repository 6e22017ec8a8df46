#include "wire/etcd_records.hpp"

#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

namespace ddl::wire {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Takes fields out of an object; remembers whether all were there and of the right kind.
class Taker {
public:
    explicit Taker(const json& object) : object_(object), sound_(object.is_object()) {
    }

    void take(const char* name, std::string& value) {
        const json* found = look(name);
        const auto* text = found == nullptr ? nullptr : found->get_ptr<const std::string*>();
        sound_ = sound_ && text != nullptr;
        value = text == nullptr ? "" : *text;
    }

    template <class T>
    void take(const char* name, T& value) {
        const json* found = look(name);
        constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
        // All numbers of these records are counts or names: none is negative, or a fraction.
        const bool right = found != nullptr && found->is_number_unsigned() && found->get<std::uint64_t>() <= kMost;
        sound_ = sound_ && right;
        value = right ? static_cast<T>(found->get<std::uint64_t>()) : T{};
    }

    [[nodiscard]] const json* list(const char* name, std::size_t limit) {
        const json* found = look(name);
        sound_ = sound_ && found != nullptr && found->is_array() && found->size() <= limit;
        return sound_ ? found : nullptr;
    }

    [[nodiscard]] bool sound() const {
        return sound_;
    }

private:
    [[nodiscard]] const json* look(const char* name) const {
        if (!object_.is_object()) {
            return nullptr;
        }
        const auto found = object_.find(name);
        return found == object_.end() ? nullptr : &*found;
    }

    const json& object_;
    bool sound_;
};

}  // namespace

std::string encode(const LeaderRecord& record) {
    return text_of({{"node", record.node},
                    {"incarnation", record.incarnation},
                    {"address", record.address},
                    {"port", record.port},
                    {"lease", static_cast<std::uint64_t>(record.lease)}});
}

std::string encode(const StoredRound& record) {
    json places = json::array();
    for (const StoredPlace& place : record.places) {
        places.push_back({{"name", place.name}, {"workers", static_cast<unsigned>(place.workers)}});
    }
    return text_of({{"term", record.generation.term},
                    {"counter", record.generation.counter},
                    {"restart_count", static_cast<unsigned>(record.restart_count)},
                    {"places", std::move(places)}});
}

Result<LeaderRecord> decode_leader(std::string_view text) {
    const json value = json::parse(text, nullptr, false);
    Taker taker(value);
    LeaderRecord record;
    taker.take("node", record.node);
    taker.take("incarnation", record.incarnation);
    taker.take("address", record.address);
    taker.take("port", record.port);
    taker.take("lease", record.lease);
    return taker.sound() ? Result<LeaderRecord>(std::move(record)) : fail("not the record of a leader");
}

Result<StoredRound> decode_round(std::string_view text) {
    const json value = json::parse(text, nullptr, false);
    Taker taker(value);
    StoredRound record;
    taker.take("term", record.generation.term);
    taker.take("counter", record.generation.counter);
    taker.take("restart_count", record.restart_count);
    bool sound = true;
    if (const json* places = taker.list("places", kMaxRecordPlaces)) {
        for (const json& entry : *places) {
            Taker place(entry);
            place.take("name", record.places.emplace_back().name);
            place.take("workers", record.places.back().workers);
            sound = sound && place.sound();
        }
    }
    return sound && taker.sound() ? Result<StoredRound>(std::move(record)) : fail("not the record of a round");
}

}  // namespace ddl::wire
