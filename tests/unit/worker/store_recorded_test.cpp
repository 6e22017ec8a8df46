// Our client against what PyTorch's client sent: the same call must put the same bytes on the wire, and make the same
// of the server's recorded answer.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "ddlaunch/store.hpp"
#include "support/store_vectors.hpp"
#include "unit/worker/loopback.hpp"

namespace ddlaunch {
namespace {

using namespace std::chrono_literals;
namespace test = ddl::test;

std::string text(bool value) {
    return value ? "true" : "false";
}

std::string joined(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) {
        all += part + ";";
    }
    return all;
}

struct Call {
    std::function<std::string(Store&)> make;
    std::string result;  // "timeout" for a StoreError with kTimeout
};

// By the last part of a vector's id.
const std::map<std::string, Call>& calls() {
    static const std::map<std::string, Call> all = {
        {"set", {[](Store& s) { return s.set("k", "hello"), ""; }, ""}},
        {"set_empty_value", {[](Store& s) { return s.set("e", ""), ""; }, ""}},
        {"get", {[](Store& s) { return s.get("k"); }, "hello"}},
        {"get_arrives_later", {[](Store& s) { return s.get("k"); }, "v"}},
        {"get_missing_timeout", {[](Store& s) { return s.get("k", 20ms); }, "timeout"}},
        {"wait_present",
         {[](Store& s) {
              return s.wait({"a", "b"}), "";
          },
          ""}},
        {"wait_two_keys_arrive",
         {[](Store& s) {
              return s.wait({"a", "b"}), "";
          },
          ""}},
        {"wait_timeout",
         {[](Store& s) {
              return s.wait({"a", "b"}, 20ms), "";
          },
          "timeout"}},
        {"add_new", {[](Store& s) { return std::to_string(s.add("ctr", 5)); }, "5"}},
        {"add_existing_negative", {[](Store& s) { return std::to_string(s.add("ctr", -7)); }, "-2"}},
        {"compare_set_create", {[](Store& s) { return s.compare_set("cs", "", "v1"); }, "v1"}},
        {"compare_set_match", {[](Store& s) { return s.compare_set("cs", "v1", "v2"); }, "v2"}},
        {"compare_set_mismatch", {[](Store& s) { return s.compare_set("cs", "zz", "v3"); }, "v2"}},
        {"compare_set_absent_nonempty_expected", {[](Store& s) { return s.compare_set("cs", "exp", "new"); }, "exp"}},
        {"delete_key_present", {[](Store& s) { return text(s.delete_key("k")); }, "true"}},
        {"delete_key_absent", {[](Store& s) { return text(s.delete_key("k")); }, "false"}},
        {"num_keys", {[](Store& s) { return std::to_string(s.num_keys()); }, "2"}},
        {"prefix_store_set", {[](Store& s) { return s.prefixed("pfx").set("k", "v"), ""; }, ""}},
        {"check_ready",
         {[](Store& s) {
              return text(s.check({"a", "b"}));
          },
          "true"}},
        {"check_not_ready",
         {[](Store& s) {
              return text(s.check({"a", "b"}));
          },
          "false"}},
        {"append", {[](Store& s) { return s.append("ap", "cd"), s.get("ap"); }, "abcd"}},
        {"multi_set",
         {[](Store& s) {
              return s.multi_set({{"m1", "x"}, {"m2", "yy"}}), "";
          },
          ""}},
        {"multi_get",
         {[](Store& s) {
              return joined(s.multi_get({"m1", "m2"}));
          },
          "x;yy;"}},
        {"queue_push", {[](Store& s) { return s.queue_push("q", "item1"), ""; }, ""}},
        {"queue_len", {[](Store& s) { return std::to_string(s.queue_len("q")); }, "2"}},
        {"queue_pop_blocking", {[](Store& s) { return s.queue_pop("q"); }, "a"}},
        {"queue_pop_nonblocking_empty", {[](Store& s) { return s.try_queue_pop("q").value_or("none"); }, "none"}},
        {"queue_pop_blocking_arrives", {[](Store& s) { return s.queue_pop("q"); }, "late"}},
        {"queue_pop_blocking_timeout", {[](Store& s) { return s.queue_pop("q", 20ms); }, "timeout"}},
        {"list_keys", {[](Store& s) { return joined(s.list_keys()); }, "only;"}},
        {"prefix_store_barrier", {[](Store& s) { return s.prefixed("pfx").barrier("pb", 2), ""; }, ""}},
    };
    return all;
}

std::string operation(const test::StoreVector& vector) {
    return vector.id.substr(vector.id.rfind('/') + 1);
}

class Recorded : public testing::TestWithParam<test::StoreVector> {};

TEST_P(Recorded, SameBytesSameResult) {
    const test::StoreVector& vector = GetParam();
    const Call& call = calls().at(operation(vector));
    std::string expected = "00cef7853c";
    std::string sent;
    test::ScriptedServer server([&](int fd) {
        sent = test::to_hex(test::read_exactly(fd, 5));
        for (const test::StoreStep& step : vector.steps) {
            if (step.kind == test::StoreStep::Kind::kClient) {
                sent += test::to_hex(test::read_exactly(fd, step.bytes.size()));
            } else {
                test::write_all(fd, step.bytes);
            }
        }
        sent += test::to_hex(test::read_exactly(fd, 1));  // nothing may follow but the end
    });
    for (const test::StoreStep& step : vector.steps) {
        expected += step.kind == test::StoreStep::Kind::kClient ? test::to_hex(step.bytes) : "";
    }
    {
        Store store("127.0.0.1", server.port(), {10s, 10s, false});
        try {
            EXPECT_EQ(call.make(store), call.result);
        } catch (const StoreError& error) {
            EXPECT_EQ(error.code(), StoreErrc::kTimeout) << error.what();
            EXPECT_EQ(call.result, "timeout") << error.what();
        }
    }
    server.finish();
    EXPECT_EQ(sent, expected);
}

std::vector<test::StoreVector> modern_calls() {
    std::vector<test::StoreVector> chosen;
    for (test::StoreVector& vector : test::load_store_vectors()) {
        if (vector.kind == "client_op" && vector.dialect == ddl::wire::Dialect::kModern &&
            calls().count(operation(vector)) > 0) {
            chosen.push_back(std::move(vector));
        }
    }
    return chosen;
}

INSTANTIATE_TEST_SUITE_P(Calls, Recorded, testing::ValuesIn(modern_calls()),
                         [](const auto& tested) { return test::vector_name(tested.param.id); });

TEST(RecordedCalls, AllOfTheClientAreCovered) {
    EXPECT_GE(modern_calls().size(), calls().size());
}

}  // namespace
}  // namespace ddlaunch
