"""Nodes and coordinators that die, are cut off, paused or told to stop: the others go on, and how soon is printed.

Times run from the fault to the last exec of the next round's workers, by the stamps in --events.
"""
import json
import signal
import time

import pytest

from harness.launching import PORT, agent
from harness.procfs import assert_nothing_left
from harness.waiting import TIME_SCALE, wait_until

LEASE = 1.0  # seconds
SLEEP = ["--no-python", "/bin/sleep", "600"]
ENDED = 0.3
CUT = LEASE + 0.5


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Job:
    """One agent on each host of a cluster, each with its events file."""

    def __init__(self, hosts, ddlaunch, folder, nodes, *flags, workers=2):
        self.hosts, self.ddlaunch, self.folder, self.nodes, self.flags = hosts, ddlaunch, folder, nodes, flags
        self.workers = workers
        self.agents, self.files = {}, []
        for index in range(hosts.count):
            self.start(index)

    def start(self, index):
        path = self.folder / f"h{index}.{len(self.files)}.events"
        self.files.append(path)
        command = agent(self.ddlaunch, SLEEP, f"--events={path}", f"--nnodes={self.nodes}", "--max-restarts=50",
                        "--rdzv-conf", f"lease_timeout={LEASE:g},last_call_timeout=3,rejoin_timeout=30", *self.flags,
                        workers_here=self.workers)
        command.remove("--standalone")
        command[1:1] = [f"--rdzv_endpoint=h0:{PORT}", "--rdzv_backend=c10d"]
        self.agents[index] = self.hosts[index].run(command, name=f"agent-h{index}.{len(self.files)}")
        return self.agents[index]

    def events(self, kind):
        found = []
        for path in self.files:
            if path.exists():
                lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
                found += [entry for entry in lines if entry["event"] == kind]
        return found

    def rounds(self):
        """{generation: stamps of its workers' execs}"""
        table = {}
        for entry in self.events("worker_exec"):
            table.setdefault(entry["generation"], []).append(entry["t_ns"])
        return table

    def wait_for_round(self, nodes, after=-1, seconds=30):
        """The number of the first later round that runs on `nodes` nodes, and when its last worker was started."""

        def there():
            full = {number: stamps for number, stamps in self.rounds().items()
                    if number > after and len(stamps) == nodes * self.workers}
            return min(full.items()) if full else None

        number, stamps = wait_until(there, f"a round after {after} with {nodes} nodes: {self.rounds()}\n{self.said()}",
                                    seconds)
        return number, max(stamps)

    def said(self):
        return "\n".join(process.describe() for process in self.agents.values())

    def recovers(self, what, fault, nodes, after, limit):
        _, started = self.wait_for_round(nodes, after)
        taken = (started - fault) / 1e9
        print(f"{what}: new workers after {taken * 1000:.0f} ms")
        assert taken <= limit * TIME_SCALE, f"{what}: {taken:.3f} s\n{self.said()}"

    def end(self):
        for process in self.agents.values():
            process.signal(signal.SIGTERM)
        for process in self.agents.values():
            process.wait(20)


@pytest.fixture
def job(cluster, ddlaunch, tmp_path, mark):
    jobs = []

    def start(hosts, nodes, *flags, **options):
        jobs.append(Job(cluster(hosts), ddlaunch, tmp_path, nodes, *flags, **options))
        return jobs[-1]

    yield start
    for one in jobs:
        one.end()
    assert_nothing_left(mark)


@pytest.mark.parametrize("victim", [2, 0], ids=["node", "coordinator"])
def test_killed_agent_and_back(job, victim):
    """The connection ends: the others go on within a moment; the node that comes back is let in."""
    running = job(3, "2:3")
    first, _ = running.wait_for_round(3)
    fault = now()
    running.agents[victim].signal(signal.SIGKILL)
    running.recovers(f"killed h{victim}", fault, 2, first, ENDED)
    second, _ = running.wait_for_round(2, first)
    time.sleep(1)
    running.start(victim)
    running.wait_for_round(3, second)


@pytest.mark.parametrize("victim", [2, 0], ids=["node", "coordinator"])
def test_cut_host(job, victim):
    """No packet arrives any more: the lease decides, and the workers on the far side are dead before the new ones."""
    running = job(3, "2:3")
    first, _ = running.wait_for_round(3)
    fault = now()
    running.hosts[victim].link("down")
    running.recovers(f"cut h{victim}", fault, 2, first, CUT)
    second, started = running.wait_for_round(2, first)
    far = [entry["t_ns"] for entry in running.events("worker_reaped")
           if entry["node"] == f"h{victim}" and entry["generation"] == first]
    assert len(far) == 2 and max(far) < started, f"{far} {started}\n{running.said()}"
    running.hosts[victim].link("up")
    running.wait_for_round(3, second)


def test_paused_agent_learns_that_it_was_evicted(job):
    running = job(3, "2:3")
    first, _ = running.wait_for_round(3)
    fault = now()
    running.agents[2].signal(signal.SIGSTOP)
    running.recovers("paused h2", fault, 2, first, CUT)
    second, _ = running.wait_for_round(2, first)
    running.agents[2].signal(signal.SIGCONT)
    running.wait_for_round(3, second)
    assert "no lease is left" in running.agents[2].err, running.said()


def test_coordinator_is_paused(job):
    running = job(3, "2:3")
    first, _ = running.wait_for_round(3)
    fault = now()
    running.agents[0].signal(signal.SIGSTOP)
    running.recovers("paused h0", fault, 2, first, CUT)
    second, _ = running.wait_for_round(2, first)
    running.agents[0].signal(signal.SIGCONT)
    running.wait_for_round(3, second)


@pytest.mark.parametrize("victim", [2, 0], ids=["node", "coordinator"])
def test_told_to_stop(job, victim):
    """Preemption: its workers end in their grace, the others form the next round; nobody is counted as lost."""
    running = job(3, "2:3")
    first, _ = running.wait_for_round(3)
    fault = now()
    running.agents[victim].signal(signal.SIGTERM)
    running.recovers(f"SIGTERM to h{victim}", fault, 2, first, ENDED)
    assert running.agents[victim].wait(10) == 66
    del running.agents[victim]
    assert [entry["restart_count"] for entry in running.events("round") if entry["generation"] != first] == [0, 0]


def test_two_nodes_have_no_majority(job):
    running = job(2, "1:2")
    first, _ = running.wait_for_round(2)
    running.agents[0].signal(signal.SIGKILL)
    wait_until(lambda: "no takeover is possible" in running.agents[1].err, running.said(), 10)
    running.start(0)
    running.wait_for_round(2, first)


def test_spare_takes_the_hole(job):
    running = job(4, "3:3")
    first, _ = running.wait_for_round(3)
    places = {entry["node"]: entry["group_rank"] for entry in running.events("round")}
    spare, = {"h0", "h1", "h2", "h3"} - set(places)
    victim, = [node for node, rank in places.items() if rank == 1]
    fault = now()
    running.agents[int(victim[1])].signal(signal.SIGKILL)
    running.recovers(f"spare for {victim}", fault, 3, first, ENDED)
    second, _ = running.wait_for_round(3, first)
    after = {entry["node"]: entry["group_rank"] for entry in running.events("round") if entry["generation"] == second}
    assert after == {spare if node == victim else node: rank for node, rank in places.items()}


def test_nodes_that_trickle_in_cost_one_restart(job):
    running = job(4, "1:4", "--scale-up=now")
    number, _ = running.wait_for_round(4)
    assert number <= 2, "all four came in the first round or in one growth"
