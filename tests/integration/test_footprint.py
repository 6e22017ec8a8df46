"""What a launch costs and shows to others: threads, libraries, listening sockets, memory, files."""
import os
import re
import subprocess

import pytest

from harness.fixtures import need
from harness.launching import agent, launch_on
from harness.procfs import children, marked, stat_fields, status_value, workers
from harness.waiting import wait_until

SLEEP = ["--no-python", "/bin/sh", "-c", "echo ready; sleep 60"]
ALLOWED_LIBRARIES = ("linux-vdso.so", "libc.so", "ld-linux", "/lib64/ld-linux", "/lib/ld-linux")


def running(run, ddlaunch):
    process = run(agent(ddlaunch, SLEEP))
    wait_until(lambda: process.out.count("ready") == 2, "both workers run", 20)
    return process


@pytest.mark.release_only
def test_one_thread(run, ddlaunch):
    process = running(run, ddlaunch)
    assert status_value(process.pid, "Threads") == 1


@pytest.mark.release_only
def test_links_against_libc_only(ddlaunch):
    listed = subprocess.run(["ldd", ddlaunch], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.strip()]
    foreign = [name for name in names if not os.path.basename(name).startswith(ALLOWED_LIBRARIES)]
    assert not foreign, f"{ddlaunch} needs {foreign}"


def listening(prefix=()):
    need("ss")
    lines = subprocess.run([*prefix, "ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [(line.split()[3], [int(pid) for pid in re.findall(r"pid=(\d+)", line)]) for line in lines]


def test_standalone_listens_on_loopback_only(run, ddlaunch):
    process = running(run, ddlaunch)
    own = [address for address, owners in listening() if process.pid in owners]
    assert own, "the worker store listens"
    assert all(address.startswith(("127.0.0.1:", "[::1]:")) for address in own), own


def test_single_node_without_flags_listens_on_loopback_only(run, ddlaunch):
    process = run([ddlaunch, *SLEEP])
    process.wait_for_text("ready", stream="out")
    own = [address for address, owners in listening() if process.pid in owners]
    assert own and all(address.startswith(("127.0.0.1:", "[::1]:")) for address in own), own


def test_several_nodes_listen_where_they_must(cluster, ddlaunch):
    """The rendezvous port and one worker store, both on the endpoint's host."""
    hosts = cluster(2)
    agents = launch_on(hosts, ddlaunch, SLEEP)
    wait_until(lambda: all(process.out.count("ready") == 2 for process in agents), "all workers run", 20)
    first = listening(hosts[0].holder.inside())
    assert any(address.endswith(":29400") for address, _ in first)
    assert len({address.rpartition(":")[2] for address, _ in first}) == 2, first


@pytest.mark.release_only
def test_memory_of_agent_and_guard(run, ddlaunch, mark):
    process = running(run, ddlaunch)
    helpers = [pid for pid in children(process.pid) if pid not in workers(mark).values()]
    peak = sum(status_value(pid, "VmHWM") for pid in [process.pid, *helpers])
    assert peak < 15 * 1024, f"{peak} KiB"


@pytest.mark.release_only
def test_idle_agent_uses_no_time(run, ddlaunch):
    """Nothing is polled: while workers run and nothing happens, the agent gets no processor time worth a tick."""
    process = running(run, ddlaunch)

    def ticks():
        fields = stat_fields(process.pid)
        return int(fields[11]) + int(fields[12])

    def switches():
        return status_value(process.pid, "voluntary_ctxt_switches")

    before, woken = ticks(), switches()
    subprocess.run(["sleep", "1"], check=True)
    assert ticks() - before <= 1
    assert switches() - woken <= 5


def test_waiting_for_others_to_leave_polls_nothing(cluster, ddlaunch, tmp_path):
    """The coordinator's process has nothing to do while another node still ends what its workers left behind."""
    script = '[ "$GROUP_RANK" = 0 ] || { trap "" TERM; sleep 60 & }; exit 0'
    events = tmp_path / "events"
    agents = launch_on(cluster(2), ddlaunch, ["--no-python", "/bin/sh", "-c", script], "--shutdown-timeout=4",
                       f"--events={events}", workers_per_host=[1, 1])
    wait_until(lambda: events.exists() and events.read_text().count("job_over") >= 1, "the job is over", 20)
    before = status_value(agents[0].pid, "voluntary_ctxt_switches")
    subprocess.run(["sleep", "1"], check=True)
    assert agents[0].running and agents[1].running, "the second node still waits for its family"
    assert status_value(agents[0].pid, "voluntary_ctxt_switches") - before <= 20
    for process in agents:
        process.expect(0, 20)


def test_no_files_are_left(run, ddlaunch, tmp_path, mark):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = run(agent(ddlaunch, ["--no-python", "/bin/true"]), env={"TMPDIR": str(scratch),
                                                                      "XDG_RUNTIME_DIR": str(scratch)})
    process.expect(0)
    assert [path for path in scratch.rglob("*") if path.is_file()] == []
    assert marked(mark) == []
