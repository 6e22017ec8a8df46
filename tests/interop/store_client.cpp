// Tries every call of ddlaunch::Store against a server: store_client HOST PORT. With a further argument `barrier` it
// meets one PyTorch client instead. Exit status 0 if all results are right; else says which was not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>

#include "ddlaunch/store.hpp"

namespace {

using namespace std::chrono_literals;
using ddlaunch::Store;
using ddlaunch::StoreErrc;
using ddlaunch::StoreError;

int failures = 0;

void check(bool right, const char* what) {
    if (!right) {
        std::fprintf(stderr, "wrong: %s\n", what);
        ++failures;
    }
}

template <class Function>
bool times_out(Function call) {
    try {
        call();
    } catch (const StoreError& error) {
        return error.code() == StoreErrc::kTimeout;
    }
    return false;
}

void values(Store& store) {
    const std::string binary("\0\n\xFF", 3);
    store.set("k", binary);
    check(store.get("k") == binary, "get");
    check(store.try_get("k") == binary && !store.try_get("absent"), "try_get");
    store.set("", "");
    check(store.get("").empty(), "empty key and value");
    check(store.add("n", 5) == 5 && store.add("n", -7) == -2, "add");
    check(store.compare_set("c", "", "1") == "1", "compare_set of an absent key");
    check(store.compare_set("c", "x", "2") == "1", "compare_set of another value");
    check(store.compare_set("c", "1", "2") == "2", "compare_set");
    store.append("ap", "ab");
    store.append("ap", "cd");
    check(store.get("ap") == "abcd", "append");
    store.multi_set({{"m1", "x"}, {"m2", "yy"}});
    check(store.multi_get({"m2", "m1"}) == std::vector<std::string>{"yy", "x"}, "multi_get");
    check(store.multi_get({}).empty(), "multi_get of nothing");
    check(store.check({"m1", "m2"}) && !store.check({"m1", "absent"}), "check");
    check(store.delete_key("m1") && !store.delete_key("m1"), "delete_key");
    store.prefixed("p").set("k", "v");
    check(store.get("p/k") == "v", "prefixed");
    check(store.prefixed("p").list_keys() == std::vector<std::string>{"k"}, "list_keys");
    check(store.num_keys() == 7, "num_keys");
    const std::string large(8U << 20U, 'x');
    store.set("large", large);
    check(store.get("large") == large, "8 MiB");
    check(store.join() == 1, "join");
}

void waits(Store& store) {
    for (int i = 0; i < 3; ++i) {
        check(times_out([&] { store.wait({"k", "never"}, 30ms); }), "timeout of wait");
        check(store.add("n", 0) == -2, "usable after a timeout");
    }
    check(times_out([&] { static_cast<void>(store.queue_pop("never", 30ms)); }), "timeout of queue_pop");
    auto late = std::async(std::launch::async, [other = store.clone()]() mutable { return other.get("late"); });
    store.set("late", "v");
    check(late.get() == "v", "woken by another client");
    auto first = std::async(std::launch::async, [other = store.clone()]() mutable { other.barrier("b", 2); });
    store.barrier("b", 2);
    first.get();
}

void queues(Store& store) {
    store.queue_push("q", "1");
    store.queue_push("q", "2");
    check(store.queue_len("q") == 2, "queue_len");
    check(store.queue_pop("q") == "1" && store.try_queue_pop("q") == "2", "queue_pop");
    check(!store.try_queue_pop("q"), "try_queue_pop of an empty queue");
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) {
        std::fprintf(stderr, "usage: store_client HOST PORT [barrier]\n");
        return 2;
    }
    try {
        const auto port = static_cast<std::uint16_t>(std::atoi(arguments[2]));
        Store store(arguments[1], port, {20s, 20s, true});
        if (count > 3 && std::strcmp(arguments[3], "barrier") == 0) {
            store.prefixed("p").barrier("mixed", 2);
            return 0;
        }
        values(store);
        waits(store);
        queues(store);
    } catch (const StoreError& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return failures == 0 ? 0 : 1;
}
