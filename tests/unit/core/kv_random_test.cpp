// Random requests from several connections against a model that is too simple to be wrong: maps, and for every
// waiting connection the set of keys it still lacks, searched from end to end.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>

#include "core/kv_table.hpp"

namespace ddl::core {
namespace {

namespace op = wire::op;
namespace reply = wire::reply;

class Model {
public:
    using Replies = std::map<ConnectionId, std::vector<wire::Reply>>;

    bool closed = false;
    Replies replies;

    void apply(ConnectionId who, const wire::Request& request) {
        closed = false;
        replies.clear();
        std::erase_if(waits_, [&](const Wait& wait) { return wait.who == who; });
        who_ = who;
        std::visit(*this, request);
    }

    void connection_closed(ConnectionId who) {
        std::erase_if(waits_, [&](const Wait& wait) { return wait.who == who; });
    }

    void operator()(const op::Set& r) {
        values_[r.key] = r.value;
        wake(r.key);
    }
    void operator()(const op::CompareSet& r) {
        const bool absent = !values_.contains(r.key);
        if (absent && !r.expected.empty()) {
            answer(reply::Blob{r.expected});
        } else if (!absent && values_[r.key] != r.expected) {
            answer(reply::Blob{values_[r.key]});
        } else {
            values_[r.key] = r.desired;
            answer(reply::Blob{r.desired});
            if (absent) {
                wake(r.key);
            }
        }
    }
    void operator()(const op::Get& r) {
        answer(reply::Blob{value(r.key)});
    }
    void operator()(const op::Add& r) {
        if (const auto number = bump(r.key, r.delta)) {
            answer(reply::Integer{*number});
            wake(r.key);
        }
    }
    void operator()(const op::Check& r) {
        answer(reply::Byte{missing(r.keys).empty() ? reply::kReady : reply::kNotReady});
    }
    void operator()(const op::Wait& r) {
        if (missing(r.keys).empty()) {
            answer(reply::Byte{reply::kStopWaiting});
        } else {
            waits_.push_back({who_, missing(r.keys), false});
        }
    }
    void operator()(const op::NumKeys&) {
        answer(reply::Integer{static_cast<std::int64_t>(values_.size())});
    }
    void operator()(const op::DeleteKey& r) {
        answer(reply::Integer{static_cast<std::int64_t>(values_.erase(r.key))});
    }
    void operator()(const op::Append& r) {
        values_[r.key] += r.suffix;
        wake(r.key);
    }
    void operator()(const op::MultiGet& r) {
        reply::Blobs blobs;
        for (const std::string& key : r.keys) {
            blobs.values.push_back(value(key));
        }
        answer(blobs);
    }
    void operator()(const op::MultiSet& r) {
        for (const auto& [key, text] : r.pairs) {
            values_[key] = text;
            wake(key);
        }
    }
    void operator()(const op::CancelWait&) {
        answer(reply::Byte{reply::kWaitCancelled});
    }
    void operator()(const op::Ping& r) {
        answer(reply::Nonce{r.nonce});
    }
    void operator()(const op::QueuePush& r) {
        queues_[r.key].push_back(r.item);
        for (std::size_t i = 0; i < waits_.size(); ++i) {
            if (!waits_[i].barrier && waits_[i].keys.erase(r.key) > 0 && waits_[i].keys.empty()) {
                release(i);
                return;
            }
        }
    }
    void operator()(const op::QueuePop& r) {
        auto& items = queues_[r.key];
        reply::Popped popped;
        if (!items.empty()) {
            popped = {static_cast<std::int64_t>(items.size()), items.front()};
            items.pop_front();
        }
        answer(popped);
    }
    void operator()(const op::QueueLen& r) {
        answer(reply::Integer{static_cast<std::int64_t>(queues_[r.key].size())});
    }
    void operator()(const op::ListKeys&) {
        reply::Keys list;
        for (const auto& entry : values_) {
            list.keys.push_back(entry.first);
        }
        answer(list);
    }
    void operator()(const op::Barrier& r) {
        const auto count = bump(r.key, 1);
        if (!count) {
            return;
        }
        if (*count >= r.world_size) {
            answer(reply::Byte{reply::kStopWaiting});
            wake(r.key);
        } else {
            waits_.push_back({who_, {r.key}, true});
        }
    }
    void operator()(const op::WatchKey&) {
        FAIL() << "not part of this test";
    }

private:
    struct Wait {
        ConnectionId who;
        std::set<std::string> keys;
        bool barrier;
    };

    void answer(wire::Reply reply) {
        replies[who_].push_back(std::move(reply));
    }

    [[nodiscard]] std::string value(const std::string& key) const {
        return values_.contains(key) ? values_.at(key) : std::string();
    }

    std::optional<std::int64_t> bump(const std::string& key, std::int64_t delta) {
        std::int64_t number = delta;
        if (values_.contains(key)) {
            try {
                number += std::stoll(values_[key]);
            } catch (const std::exception&) {
                closed = true;
                return std::nullopt;
            }
        }
        values_[key] = std::to_string(number);
        return number;
    }

    std::set<std::string> missing(const std::vector<std::string>& keys) {
        std::set<std::string> lacking;
        for (const std::string& key : keys) {
            if (!values_.contains(key) && queues_[key].empty()) {
                lacking.insert(key);
            }
        }
        return lacking;
    }

    void release(std::size_t index) {
        replies[waits_[index].who].push_back(reply::Byte{reply::kStopWaiting});
        waits_.erase(waits_.begin() + static_cast<std::ptrdiff_t>(index));
    }

    void wake(const std::string& key) {
        for (std::size_t i = 0; i < waits_.size();) {
            if (waits_[i].keys.erase(key) > 0 && waits_[i].keys.empty()) {
                release(i);
            } else {
                ++i;
            }
        }
    }

    ConnectionId who_{};
    std::map<std::string, std::string> values_;
    std::map<std::string, std::deque<std::string>> queues_;
    std::vector<Wait> waits_;
};

class Requests {
public:
    explicit Requests(std::uint32_t seed) : random_(seed) {
    }

    std::uint32_t below(std::uint32_t limit) {
        return static_cast<std::uint32_t>(random_()) % limit;
    }

    wire::Request next() {
        switch (below(18)) {
            case 0:
                return op::Set{key(), text()};
            case 1:
                return op::CompareSet{key(), text(), text()};
            case 2:
                return op::Get{key()};
            case 3:
                return op::Add{key(), static_cast<std::int64_t>(below(5)) - 2};
            case 4:
                return op::Check{keys()};
            case 5:
            case 6:
                return op::Wait{keys()};
            case 7:
                return op::NumKeys{};
            case 8:
            case 9:
                return op::DeleteKey{key()};
            case 10:
                return op::Append{key(), text()};
            case 11:
                return op::MultiGet{keys()};
            case 12:
                return op::MultiSet{{{key(), text()}, {key(), text()}}};
            case 13:
                return op::CancelWait{};
            case 14:
                return op::QueuePush{key(), text()};
            case 15:
                return op::QueuePop{key()};
            case 16:
                return op::ListKeys{};
            default:
                return op::Barrier{key(), static_cast<std::int64_t>(below(4))};
        }
    }

private:
    std::string key() {
        return "/" + std::to_string(below(5));
    }
    std::string text() {
        static const std::vector<std::string> kTexts = {"", "1", "7", "x", " 3z"};
        return kTexts[below(5)];
    }
    std::vector<std::string> keys() {
        std::vector<std::string> list(below(4));
        for (std::string& entry : list) {
            entry = key();
        }
        return list;
    }

    std::mt19937 random_;
};

Model::Replies by_connection(const KvResult& result) {
    Model::Replies sorted;
    for (const KvReply& each : result.replies) {
        wire::Reply reply = each.reply;
        if (auto* list = std::get_if<reply::Keys>(&reply)) {
            std::sort(list->keys.begin(), list->keys.end());
        }
        sorted[each.connection].push_back(std::move(reply));
    }
    return sorted;
}

class RandomRequests : public testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomRequests, AgreeWithTheModel) {
    Requests requests(GetParam());
    Model model;
    KvTable table;
    for (int step = 0; step < 4000; ++step) {
        const ConnectionId who{1 + requests.below(6)};
        if (requests.below(40) == 0) {
            model.connection_closed(who);
            table.connection_closed(who);
            continue;
        }
        const wire::Request request = requests.next();
        model.apply(who, request);
        const KvResult result = table.apply(who, request);
        ASSERT_EQ(result.close.has_value(), model.closed) << "step " << step << " request " << request.index();
        ASSERT_EQ(by_connection(result), model.replies) << "step " << step << " request " << request.index();
    }
    for (std::uint32_t who = 1; who <= 6; ++who) {
        table.connection_closed(ConnectionId{who});
    }
    EXPECT_EQ(table.waiting(), 0U);
    for (int key = 0; key < 5; ++key) {
        const std::string name = "/" + std::to_string(key);
        static_cast<void>(table.apply(ConnectionId{1}, op::DeleteKey{name}));
        while (std::get<reply::Popped>(table.apply(ConnectionId{1}, op::QueuePop{name}).replies[0].reply).before > 0) {
        }
    }
    EXPECT_EQ(table.bytes(), 0U) << "the account of memory drifts";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRequests, testing::Range(1U, 16U));

}  // namespace
}  // namespace ddl::core
