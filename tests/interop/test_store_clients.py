"""The store on the wire: PyTorch's clients with our server, our client with PyTorch's server, both together."""
import json
import subprocess
from pathlib import Path

import pytest

from harness.fixtures import program

SCRIPT = Path(__file__).with_name("torch_store.py")

EVERY_RELEASE = {
    "get": "hello", "get_from_another_client": "hello", "get_empty": "", "get_binary": "a\0b\n", "add": [5, -2, -2],
    "compare_set": ["1", "1", "2"], "num_keys": 5, "delete_key": [True, False], "prefix": [None, "v"], "woken": "late",
    "usable_after_timeout": -2, "large": 8 << 20, "over_the_limit": True, "alive_after_that": -1,
}
NEWER_RELEASES = {
    "append": "abcd", "multi_get": ["x", "yy"], "check": [True, False],
    "queue": [2, "item1", "item2", 0, "QueueEmptyError"], "list_keys": ["m1", "m2"], "clone": "abcd",
    "barrier": "none", "barrier_timeout": "DistStoreError",
}

new_release_only = pytest.mark.parametrize("torch_python", ["2.13"], indirect=True)


def is_new(python):
    return not python.startswith("/usr/bin")


def port_of(server):
    server.wait_for_text("listening on port", stream="out", seconds=60)
    return server.out.split()[-1]


def check_every_operation(run, torch_python, server):
    client = run([torch_python, SCRIPT, "client", port_of(server)], name="client").expect(0, seconds=90)
    results = json.loads(client.out)
    assert results.pop("timeout") == ("DistStoreError" if is_new(torch_python) else "RuntimeError")
    assert results == {**EVERY_RELEASE, **(NEWER_RELEASES if is_new(torch_python) else {})}
    return server


def test_every_operation(run, ddlaunch, torch_python):
    server = run([ddlaunch, "store", "--port", "0"], name="store")
    check_every_operation(run, torch_python, server)
    assert ("older than PyTorch 2.1" in server.err) == (not is_new(torch_python))


def test_every_operation_of_a_release_that_was_named(run, ddlaunch, torch_python):
    server = run([ddlaunch, "store", "--port", "0", "--store-compat", "1.13"], name="store")
    check_every_operation(run, torch_python, server)
    assert "PyTorch" not in server.err


@pytest.fixture
def store_client():
    return program("STORE_CLIENT_BIN", "build/tests/interop/store_client")


def test_our_client_and_our_server(run, ddlaunch, store_client):
    server = run([ddlaunch, "store", "--port", "0"], name="store")
    run([store_client, "127.0.0.1", port_of(server)], name="client").expect(0)


@pytest.fixture
def torch_server(torch_python, tmp_path, environment):
    """Port of PyTorch's own server."""
    with open(tmp_path / "server.err", "w", encoding="utf-8") as err, \
            subprocess.Popen([torch_python, SCRIPT, "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
                             env=environment, text=True) as process:
        yield process.stdout.readline().split()[-1]
        process.stdin.close()


@new_release_only  # our client speaks the protocol of PyTorch 2.2 and later
def test_our_client_and_their_server(run, store_client, torch_server):
    run([store_client, "127.0.0.1", torch_server], name="client").expect(0)


@new_release_only  # PyTorch 1.13 has no store barrier
def test_a_barrier_of_both_clients(run, ddlaunch, store_client, torch_python):
    port = port_of(run([ddlaunch, "store", "--port", "0"], name="store"))
    theirs = run([torch_python, SCRIPT, "barrier", port], name="theirs")
    ours = run([store_client, "127.0.0.1", port, "barrier"], name="ours")
    theirs.expect(0, seconds=60)
    ours.expect(0)
