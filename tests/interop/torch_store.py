"""PyTorch's side of the store tests: `client PORT` tries every operation of the release against a server and prints the
results as JSON; `server` serves a store until standard input ends; `barrier PORT` meets one other client.
"""
import json
import sys
import threading
from datetime import timedelta

import torch
from torch.distributed import PrefixStore, TCPStore

RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdigit())


def connect(port):
    return TCPStore("127.0.0.1", port, None if RELEASE >= (2, 0) else -1, False, timeout=timedelta(seconds=20))


def text(value):
    return value.decode("latin-1")


def error_of(call):
    try:
        call()
    except Exception as error:  # the classes differ by release
        return type(error).__name__
    return "none"


def woken_by_another(port, store, key):
    setter = connect(port)
    timer = threading.Timer(0.1, lambda: setter.set(key, "late"))
    timer.start()
    value = text(store.get(key))
    timer.join()
    return value


def every_release(port, store):
    other = connect(port)
    store.set("k", "hello")
    store.set("empty", "")
    store.set("binary", "a\0b\n")
    return {
        "get": text(store.get("k")),
        "get_from_another_client": text(other.get("k")),
        "get_empty": text(store.get("empty")),
        "get_binary": text(store.get("binary")),
        "add": [store.add("n", 5), store.add("n", -7), int(text(store.get("n")))],
        "compare_set": [text(store.compare_set("c", "", "1")), text(store.compare_set("c", "x", "2")),
                        text(store.compare_set("c", "1", "2"))],
        "num_keys": store.num_keys(),
        "delete_key": [store.delete_key("empty"), store.delete_key("empty")],
        "prefix": [PrefixStore("p", store).set("k", "v"), text(store.get("p/k"))],
        "woken": woken_by_another(port, store, "later"),
        "timeout": error_of(lambda: store.wait(["never"], timedelta(milliseconds=100))),
        "usable_after_timeout": store.add("n", 0),
        "large": len(store.get("large")) if store.set("large", "x" * (8 << 20)) is None else 0,
        "over_the_limit": over_the_limit(port),
        "alive_after_that": store.add("n", 1),
    }


def over_the_limit(port):
    store = connect(port)

    def overdo():
        store.set("large", "x" * ((8 << 20) + 1))
        store.add("n", 1)
    return error_of(overdo) != "none"


def newer_releases(store):
    store.append("ap", "ab")
    store.append("ap", "cd")
    store.multi_set(["m1", "m2"], ["x", "yy"])
    store.queue_push("q", "item1")
    store.queue_push("q", "item2")
    return {
        "append": text(store.get("ap")),
        "multi_get": [text(value) for value in store.multi_get(["m1", "m2"])],
        "check": [store.check(["m1", "m2"]), store.check(["m1", "never"])],
        "queue": [store.queue_len("q"), text(store.queue_pop("q")), text(store.queue_pop("q", False)),
                  store.queue_len("q"), error_of(lambda: store.queue_pop("q", False))],
        "list_keys": sorted(key for key in store.list_keys() if key.startswith("m")),
        "clone": text(store.clone().get("ap")),
        "barrier": error_of(lambda: store.barrier("alone", 1)),
        "barrier_timeout": error_of(lambda: store.barrier("two", 2, timedelta(milliseconds=100))),
    }


def client(port):
    store = connect(port)
    results = every_release(port, store)
    if RELEASE >= (2, 12):
        results.update(newer_releases(store))
    print(json.dumps(results))


def server():
    store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    print(f"listening on port {store.port}", flush=True)
    sys.stdin.read()


def barrier(port):
    PrefixStore("p", connect(port)).barrier("mixed", 2, timedelta(seconds=20))
    print("passed")


if __name__ == "__main__":
    if sys.argv[1] == "server":
        server()
    else:
        {"client": client, "barrier": barrier}[sys.argv[1]](int(sys.argv[2]))
