"""How nodes find each other, and what is said when they don't."""
import re
import socket
import time

import pytest

from harness.launching import PORT, launch_on, no_trace
from harness.procfs import assert_nothing_left
from harness.waiting import stays_true, wait_until

SAY = ["--no-python", "/bin/sh", "-c", 'echo "rank $RANK of $WORLD_SIZE local $LOCAL_RANK on $(hostname)"']


def node(ddlaunch, *flags, program=SAY):
    return [ddlaunch, "--nproc_per_node=2", "--rdzv_backend=c10d", f"--rdzv_endpoint=h0:{PORT}", *flags, *program]


def test_missing_node_is_named_and_has_its_own_status(cluster, ddlaunch, mark):
    process = cluster(2)[0].run(node(ddlaunch, "--nnodes=2", "--rdzv-conf=join_timeout=3"))
    begun = time.monotonic()
    process.expect(64, 15)
    assert time.monotonic() - begun >= 2.5
    last = process.err.rstrip().splitlines()[-3:]
    text = "\n".join(last)
    assert "1 of 2 nodes" in text and "h0" in text and "join_timeout 3 s" in text, process.describe()
    no_trace(process)
    assert_nothing_left(mark)


def test_missing_coordinator_is_named(cluster, ddlaunch):
    process = cluster(2)[1].run(node(ddlaunch, "--nnodes=2", "--rdzv-conf=join_timeout=3"))
    process.expect(64, 15)
    assert f"h0:{PORT}" in process.err, process.describe()
    no_trace(process)


def test_waiting_is_reported_while_it_lasts(cluster, ddlaunch):
    """Every 10 s: who is here, how many are missing, how long is left."""
    hosts = cluster(3)
    processes = [hosts[i].run(node(ddlaunch, "--nnodes=3")) for i in (0, 1)]
    for process in processes:
        wait_until(lambda p=process: re.search(r"2 of 3 nodes here: .*h0.*h1.*missing 1.*s left", p.err),
                   f"the waiting text\n{process.describe()}", 15)
    processes.append(hosts[2].run(node(ddlaunch, "--nnodes=3")))
    for process in processes:
        process.expect(0, 30)


@pytest.mark.parametrize("flag, ours, theirs", [
    ("--nnodes", ["--nnodes=2"], ["--nnodes=3"]),
    ("--max-restarts", ["--nnodes=2", "--max_restarts=1"], ["--nnodes=2", "--max_restarts=4"]),
    ("--rdzv-id", ["--nnodes=2", "--rdzv_id=blue"], ["--nnodes=2", "--rdzv_id=green"]),
])
def test_mismatch_is_refused_naming_both_values(cluster, ddlaunch, flag, ours, theirs):
    hosts = cluster(2)
    first = hosts[0].run(node(ddlaunch, *ours))
    stays_true(lambda: first.running, "the first node waits", 0.3)
    other = hosts[1].run(node(ddlaunch, *theirs))
    other.expect(2, 15)
    values = [ours[-1].partition("=")[2], theirs[-1].partition("=")[2]]
    assert flag in other.err and all(value in other.err for value in values), other.describe()
    assert first.running, "the running job is untouched"
    again = hosts[1].run(node(ddlaunch, *ours))
    again.expect(0, 20)
    first.expect(0, 20)


def test_different_programs_are_refused(cluster, ddlaunch):
    hosts = cluster(2)
    first = hosts[0].run(node(ddlaunch, "--nnodes=2"))
    stays_true(lambda: first.running, "the first node waits", 0.3)
    other = hosts[1].run(node(ddlaunch, "--nnodes=2", program=["--no-python", "/bin/echo", "other"]))
    other.expect(2, 15)
    assert "program" in other.err, other.describe()


def test_name_that_appears_later(cluster, ddlaunch):
    """A pod's DNS name, for example: unknown is 'not yet' until the join timeout."""
    hosts = cluster(2)
    known = hosts.hosts_text(1)
    hosts[1].set_hosts("127.0.0.1 localhost\n")
    early = hosts[1].run(node(ddlaunch, "--nnodes=2"))
    stays_true(lambda: early.running, "an unknown name is no error yet", 2)
    hosts[1].set_hosts(known)
    first = hosts[0].run(node(ddlaunch, "--nnodes=2"))
    first.expect(0, 30)
    early.expect(0, 30)
    no_trace(early)


def test_name_that_first_means_a_wrong_address(cluster, ddlaunch):
    hosts = cluster(2)
    known = hosts.hosts_text(1)
    hosts[1].set_hosts("127.0.0.1 localhost\n10.77.9.9 h0\n")
    early = hosts[1].run(node(ddlaunch, "--nnodes=2"))
    stays_true(lambda: early.running, "an unreachable address is no error yet", 1)
    hosts[1].set_hosts(known)
    hosts[0].run(node(ddlaunch, "--nnodes=2")).expect(0, 40)
    early.expect(0, 30)


def test_elastic_range_starts_with_what_is_there(cluster, ddlaunch):
    hosts = cluster(2)
    process = hosts[0].run(node(ddlaunch, "--nnodes=1:2", "--rdzv-conf=last_call_timeout=1"))
    process.expect(0, 20)
    assert "of 2 local" in process.out  # two workers, one node


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_port_in_use_names_the_owner(cluster, ddlaunch, address):
    host = cluster(2)[0]
    family = "AF_INET6" if ":" in address else "AF_INET"
    script = (f"import socket,time; s=socket.socket(socket.{family}); s.bind(('{address}', {PORT})); s.listen();"
              " print('bound', flush=True); time.sleep(60)")
    owner = host.run(["/usr/bin/python3", "-c", script])
    owner.wait_for_text("bound", stream="out")
    begun = time.monotonic()
    process = host.run(node(ddlaunch, "--nnodes=2"))
    assert process.wait(5) != 0
    assert time.monotonic() - begun < 3
    assert str(PORT) in process.err and re.search(rf"\b{owner.pid}\b", process.err), process.describe()
    no_trace(process)


def test_foreign_bytes_on_the_rendezvous_port_do_no_harm(cluster, ddlaunch):
    hosts = cluster(2)
    first = hosts[0].run(node(ddlaunch, "--nnodes=2"))
    script = (f"import os,socket,time\nfor data in [b'GET / HTTP/1.1\\r\\n\\r\\n', os.urandom(4096),"
              f" b'\\xddLA\\x01\\xff\\xff\\xff\\x7f', b'\\xddLA\\x01\\x05\\x00\\x00\\x00hello', b'', b'\\x00']:\n"
              f"    for attempt in range(200):\n"
              f"        try:\n            s=socket.create_connection(('10.77.0.1',{PORT}),2); break\n"
              f"        except ConnectionRefusedError: time.sleep(0.05)\n"
              f"    try: s.sendall(data)\n    except OSError: pass\nprint('sent')")
    hosts[1].run(["/usr/bin/python3", "-c", script]).expect(0, 20)
    second = hosts[1].run(node(ddlaunch, "--nnodes=2"))
    second.expect(0, 20)
    first.expect(0, 20)
    no_trace(first)


def test_more_nodes_than_needed(cluster, ddlaunch):
    """A spare waits, and leaves in peace with the job."""
    hosts = cluster(3)
    program = ["--no-python", "/bin/sh", "-c", "sleep 1"]
    pair = [hosts[i].run(node(ddlaunch, "--nnodes=2", program=program)) for i in (0, 1)]
    wait_until(lambda: all(process.running for process in pair), "both run")
    spare = hosts[2].run(node(ddlaunch, "--nnodes=2", program=program))
    for process in [*pair, spare]:
        process.expect(0, 20)


def test_two_jobs_on_one_machine(run, ddlaunch):
    """Single-node jobs need no ports of their own choosing: any number of them side by side."""
    jobs = [run([ddlaunch, "--nproc_per_node=2", *SAY]) for _ in range(4)]
    for job in jobs:
        job.expect(0, 20)
        assert job.out.count("of 2 local") == 2


def test_default_ports_taken_is_no_matter_on_one_node(run, ddlaunch):
    taken = []
    try:
        for port in (29400, 29500):
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
                listener.listen()
            except OSError:
                pass  # somebody else has it: as good
            taken.append(listener)
        run([ddlaunch, "--nproc_per_node=2", *SAY]).expect(0, 20)
        run([ddlaunch, "--standalone", "--nproc_per_node=2", *SAY]).expect(0, 20)
    finally:
        for listener in taken:
            listener.close()


def test_many_nodes(cluster, ddlaunch):
    hosts = cluster(6)
    agents = launch_on(hosts, ddlaunch, SAY, workers_per_host=[1, 2, 1, 3, 1, 1])
    for process in agents:
        process.expect(0, 40)
    ranks = sorted(int(line.split()[1]) for process in agents for line in process.out.splitlines())
    assert ranks == list(range(9))
