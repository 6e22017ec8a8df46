"""Who listens on MASTER_PORT, and for whom."""
import json

from harness import raw_store
from harness.fixtures import WORKERS
from harness.launching import agent, launch_on
from harness.waiting import wait_until

HOST_ITSELF = WORKERS / "hosts_itself.py"


def test_worker_may_host_there_itself(run, ddlaunch):
    """Programs that bind MASTER_PORT on rank 0 find it free, in every round."""
    process = run(agent(ddlaunch, ["--no-python", "/usr/bin/python3", HOST_ITSELF, "--fail-first"],
                        "--worker-store=worker", "--max_restarts=1", workers_here=3))
    process.expect(0, 30)
    assert process.out.count("served 2 peers") == 2
    assert "agent store: True" not in process.out


def test_worker_may_host_there_itself_on_two_nodes(cluster, ddlaunch):
    agents = launch_on(cluster(2), ddlaunch, ["--no-python", "/usr/bin/python3", HOST_ITSELF], "--worker-store=worker")
    for process in agents:
        process.expect(0, 30)
    assert "served 3 peers" in agents[0].out


def test_agent_store_is_there_before_the_workers(run, ddlaunch):
    script = ("import os,sys; sys.path.insert(0, sys.argv[1]); from harness import raw_store as s;"
              "c=s.connect(os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])); print('sum', s.add(c, b'/n'));"
              "print('agent store:', os.environ['TORCHELASTIC_USE_AGENT_STORE'])")
    process = run(agent(ddlaunch, ["--no-python", "/usr/bin/python3", "-c", script, WORKERS.parent], workers_here=3))
    process.expect(0, 20)
    assert sorted(line for line in process.out.splitlines() if line.startswith("sum")) == ["sum 1", "sum 2", "sum 3"]
    assert process.out.count("agent store: True") == 3


def test_fixed_port_serves_every_round(run, ddlaunch, tmp_path):
    """Where the user fixed the port it is the same in the next round, with an empty key space."""
    process = run(agent(ddlaunch, ["--no-python", "/usr/bin/python3", WORKERS / "late_round.py", tmp_path],
                        "--max_restarts=1", "--store-port=28733"))
    wait_until(lambda: (tmp_path / "round1").exists(), "the second round runs", 30)
    (tmp_path / "tried").touch()
    process.expect(0, 30)
    assert json.loads((tmp_path / "round0").read_text())[1] == 28733
    assert json.loads((tmp_path / "round1").read_text())[1] == 28733
    assert json.loads((tmp_path / "seen").read_text()) == {"late": False, "counter": 1}


def test_strangers_are_refused_by_the_round_store(cluster, ddlaunch, tmp_path):
    """h2 takes no part in the job, so its address may not use the job's store; its refusal is said on rank 0's node.
    (Without --store-allow a container with a network of its own lets everybody in.)"""
    hosts = cluster(3)
    where = tmp_path / "where"
    script = (f'[ "$RANK" = 0 ] && echo "$MASTER_ADDR $MASTER_PORT" > {where}.tmp && mv {where}.tmp {where};'
              f' while [ ! -e {where}.done ]; do sleep 0.05; done')
    agents = [hosts[i].run(agent(ddlaunch, ["--no-python", "/bin/sh", "-c", script], "--store-allow=10.77.0.2",
                                 nodes=2, endpoint="h0:29400")) for i in (0, 1)]
    wait_until(where.exists, "the round runs", 20)
    host, port = where.read_text().split()
    probe = ("import sys; sys.path.insert(0, sys.argv[1]); from harness import raw_store as s\n"
             "try: print('served' if s.add(s.connect(sys.argv[2], int(sys.argv[3])), b'/x') else 'closed')\n"
             "except OSError: print('closed')")
    command = ["/usr/bin/python3", "-c", probe, WORKERS.parent, host, port]
    assert hosts[2].run(command).expect(0, 10).out.strip() == "closed"
    assert hosts[1].run(command).expect(0, 10).out.strip() == "served"
    agents[0].wait_for_text("10.77.0.3", 5)
    (tmp_path / "where.done").touch()
    for process in agents:
        process.expect(0, 20)


def test_bare_store(run, ddlaunch):
    """`ddlaunch store` by itself, for programs that only want a key-value store."""
    process = run([ddlaunch, "store", "--port", "0"])
    process.wait_for_text("listening on port", stream="out")
    port = int(process.out.split()[-1])
    client = raw_store.connect("127.0.0.1", port)
    assert raw_store.add(client, b"/n", 5) == 5
    assert raw_store.add(raw_store.connect("127.0.0.1", port), b"/n", 2) == 7
    process.signal(15)
    assert process.wait(5) in (0, 143)
