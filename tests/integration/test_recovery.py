"""A worker that dies: one restart of all ranks, from the checkpoint, to the same result."""
import json
import os
import signal
import time

import pytest

from harness import raw_store
from harness.fixtures import Training, WORKERS, assert_same_curve, result_of
from harness.launching import agent, launch_on, wait_for_workers
from harness.procfs import environment, workers
from harness.waiting import wait_until

EPOCHS = 12


def kill_one(mark, training, rank, count, epochs=2):
    wait_until(lambda: training.epochs_done() >= epochs, f"{epochs} epochs are done", 60)
    victim = wait_for_workers(mark, count)[rank]
    os.kill(victim, signal.SIGKILL)
    return victim


def assert_uninterrupted(training, text, reference, ranks):
    curve, alone = reference(epochs=EPOCHS)
    assert_same_curve(training.losses(), curve)
    result = result_of(text)
    assert result["loss"] == pytest.approx(alone["loss"], abs=1e-4)
    assert result["ranks"] == ranks


@pytest.mark.parametrize("rank", [0, 3])
def test_one_node(run, ddlaunch, digits, reference, tmp_path, mark, rank):
    training = Training(tmp_path, digits, epochs=EPOCHS, step_delay_ms=5)
    process = run(agent(ddlaunch, ["--no-python", *training.command], "--max_restarts=1", workers_here=4))
    kill_one(mark, training, rank, 4)
    process.expect(0, 90)
    assert "going on after epoch" in process.out
    assert_uninterrupted(training, process.out, reference, 4)
    assert process.err.count("restart 1 of 1") == 1, process.describe()


@pytest.mark.parametrize("rank", [0, 3])
def test_killed_worker_is_the_cause_and_not_those_that_noticed_first(run, ddlaunch, digits, tmp_path, mark, rank):
    """The kernel closes a dying worker's sockets before it reports the death: another rank may notice, fail and be gone
    within that moment. Its death is a consequence all the same."""
    training = Training(tmp_path, digits, epochs=1000, step_delay_ms=5)
    process = run(agent(ddlaunch, ["--no-python", *training.command], workers_here=4))
    victim = kill_one(mark, training, rank, 4, epochs=1)
    process.expect(137, 30)
    assert f"rank {rank} " in process.err.rstrip().splitlines()[-1], process.describe()
    assert str(victim) in process.err, process.describe()


@pytest.mark.parametrize("rank", [0, 5])
def test_two_nodes_use_exactly_one_restart(cluster, ddlaunch, digits, reference, tmp_path, mark, rank):
    """Budget 1 for the whole job: a second restart, or one counted on each node, would end it with an error."""
    training = Training(tmp_path, digits, epochs=EPOCHS, step_delay_ms=5)
    agents = launch_on(cluster(2), ddlaunch, ["--no-python", *training.command], "--max_restarts=1",
                       workers_per_host=[4, 4])
    kill_one(mark, training, rank, 8)
    restarted = wait_until(lambda: _second_round(mark, 8), "all ranks run again", 30)
    assert {value["TORCHELASTIC_RESTART_COUNT"] for value in restarted.values()} == {"1"}
    assert len({value["DDLAUNCH_GENERATION"] for value in restarted.values()}) == 1
    for process in agents:
        process.expect(0, 90)
        assert process.err.count("restart 1 of 1") == 1, process.describe()
    assert_uninterrupted(training, "".join(process.out for process in agents), reference, 8)


def _second_round(mark, count):
    found = {rank: environment(pid) for rank, pid in workers(mark).items()}
    again = {rank: value for rank, value in found.items() if value.get("TORCHELASTIC_RESTART_COUNT") == "1"}
    return again if len(again) == count else None


def test_exhausted_budget_ends_the_job_everywhere(cluster, ddlaunch):
    program = ["--no-python", "/bin/sh", "-c", 'test "$RANK" != 1 || exit 9; sleep 60']
    agents = launch_on(cluster(2), ddlaunch, program, "--max_restarts=2", "--crash-loop-window=0")
    for process in agents:
        process.expect(9, 30)
        assert "restart 2 of 2" in process.err and "rank 1" in process.err, process.describe()


def test_restart_count_and_generation(run, ddlaunch, tmp_path):
    log = tmp_path / "rounds"
    script = (f'echo "$TORCHELASTIC_RESTART_COUNT $DDLAUNCH_GENERATION $TORCHELASTIC_MAX_RESTARTS" >> {log};'
              'test "$TORCHELASTIC_RESTART_COUNT" = 3')
    run(agent(ddlaunch, ["--no-python", "/bin/sh", "-c", script], "--max_restarts=3", "--crash-loop-window=0",
              workers_here=1)).expect(0, 30)
    rounds = [line.split() for line in log.read_text().splitlines()]
    assert [entry[0] for entry in rounds] == ["0", "1", "2", "3"]
    generations = [int(entry[1]) for entry in rounds]
    assert generations == sorted(set(generations)), "the generation only grows"
    assert {entry[2] for entry in rounds} == {"3"}


def test_late_worker_of_an_old_round_is_not_served(run, ddlaunch, tmp_path):
    """A leftover of round g that connects 2 s after round g+1 has begun must not reach the new key space."""
    process = run(agent(ddlaunch, ["--no-python", "/usr/bin/python3", WORKERS / "late_round.py", tmp_path],
                        "--max_restarts=1"))
    wait_until(lambda: (tmp_path / "round1").exists(), "the second round runs", 30)
    old, new = (json.loads((tmp_path / f"round{number}").read_text()) for number in (0, 1))
    assert old != new, "each round has its own listener"
    time.sleep(2)  # the case as users meet it: a worker that was still importing
    assert late_outcome(old) in ("refused", "closed")
    (tmp_path / "tried").touch()
    process.expect(0, 30)
    assert json.loads((tmp_path / "seen").read_text()) == {"late": False, "counter": 1}


def late_outcome(address):
    try:
        return "closed" if raw_store.add(raw_store.connect(*address), b"/late") is None else "served"
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return "closed"


def test_events_tell_of_the_restart(run, ddlaunch, tmp_path):
    events = tmp_path / "events"
    script = 'test "$TORCHELASTIC_RESTART_COUNT" = 1 || exit 3'
    run(agent(ddlaunch, ["--no-python", "/bin/sh", "-c", script], "--max_restarts=1", f"--events={events}")).expect(0)
    entries = [json.loads(line) for line in events.read_text().splitlines()]
    started = [entry for entry in entries if entry["event"] == "worker_exec"]
    reaped = [entry for entry in entries if entry["event"] == "worker_reaped"]
    assert len(started) == 4 and len(reaped) == 4
    for entry in started + reaped:
        assert {"t_ns", "node", "generation", "local_rank"} <= entry.keys()
    first = min(entry["generation"] for entry in started)
    ended = max(entry["t_ns"] for entry in reaped if entry["generation"] == first)
    begun = min(entry["t_ns"] for entry in started if entry["generation"] > first)
    assert ended < begun, "no worker starts before the last one of the old round is reaped"
