"""SIGTERM and SIGINT: once polite, twice at once, in every phase of a job."""
import os
import signal
import time

import pytest

from harness.fixtures import Training
from harness.launching import PORT, agent, launch_on, no_trace, wait_for_workers
from harness.procfs import assert_nothing_left, read, stat_fields
from harness.waiting import wait_until

STATUS = {signal.SIGTERM: 143, signal.SIGINT: 130}
POLITE = 'trap "echo polite; exit 0" TERM INT; echo ready; while :; do sleep 0.05; done'
DEAF = 'trap "" TERM INT; echo ready; while :; do sleep 0.05; done'


def shell(script):
    return ["--no-python", "/bin/sh", "-c", script]


def started(process, count=2):
    wait_until(lambda: process.out.count("ready") == count, f"{count} workers are ready\n{process.describe()}", 20)
    return process


def test_while_waiting_for_peers(run, ddlaunch, mark, stop_signal):
    process = run([ddlaunch, "--nnodes=2", "--node_rank=0", "--master_addr=127.0.0.1", f"--master_port={PORT + 177}",
                   *shell("sleep 60")])
    stop_and_expect(process, stop_signal, mark)


def catches(pid, number):
    """Handled, or blocked to be read from a descriptor."""
    masks = [line.split()[1] for line in read(f"/proc/{pid}/status").decode().splitlines()
             if line.startswith(("SigCgt:", "SigBlk:"))]
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def stop_and_expect(process, number, mark):
    """The launcher's own status once it catches the signal (before that the kernel gives the same number)."""
    wait_until(lambda: catches(process.pid, number), "the launcher listens to signals")
    process.signal(number)
    assert process.wait(5) == STATUS[number], process.describe()
    no_trace(process)
    assert_nothing_left(mark)


def test_while_the_coordinator_is_not_there(cluster, ddlaunch, mark, stop_signal):
    host = cluster(2)[1]
    process = host.run([ddlaunch, "--nnodes=2", "--rdzv_backend=c10d", f"--rdzv_endpoint=h0:{PORT}",
                        *shell("sleep 60")])
    stop_and_expect(process, stop_signal, mark)


def test_while_the_coordinators_name_is_unknown(cluster, ddlaunch, mark, stop_signal):
    host = cluster(1)[0]
    process = host.run([ddlaunch, "--nnodes=2", "--rdzv_backend=c10d", f"--rdzv_endpoint=nowhere:{PORT}",
                        *shell("sleep 60")])
    stop_and_expect(process, stop_signal, mark)


def test_workers_get_the_grace(run, ddlaunch, mark, stop_signal):
    process = started(run(agent(ddlaunch, shell(POLITE))))
    process.signal(stop_signal)
    process.wait(10)
    assert process.out.count("polite") == 2, process.describe()
    assert_nothing_left(mark)


def test_stopped_job_has_a_status_that_is_not_success(run, ddlaunch, stop_signal):
    # exec: dash drops a SIGINT that comes while it starts a child, and waits for that child.
    process = started(run(agent(ddlaunch, shell("echo ready; exec sleep 60"))))
    process.signal(stop_signal)
    assert process.wait(10) in (66, STATUS[stop_signal]), process.describe()


def test_second_signal_ends_deaf_workers_at_once(run, ddlaunch, mark, stop_signal):
    process = started(run(agent(ddlaunch, shell(DEAF))))
    process.signal(stop_signal)
    process.wait_for_text("second signal")
    assert process.running, "the grace of 30 s is not over"
    before = time.monotonic()
    process.signal(stop_signal)
    assert process.wait(5) != 0, process.describe()
    assert time.monotonic() - before < 3
    assert_nothing_left(mark)


def test_grace_ends_deaf_workers(run, ddlaunch, mark, stop_signal):
    process = started(run(agent(ddlaunch, shell(DEAF), "--shutdown-timeout=1")))
    process.signal(stop_signal)
    assert process.wait(10) != 0, process.describe()
    assert_nothing_left(mark)


def test_one_node_of_two_is_stopped(cluster, ddlaunch, mark, stop_signal):
    agents = launch_on(cluster(2), ddlaunch, shell(POLITE))
    for process in agents:
        started(process)
    agents[1].signal(stop_signal)
    statuses = [process.wait(20) for process in agents]
    assert 0 not in statuses, [process.describe() for process in agents]
    assert "h1" in agents[0].err, "the other node is told who left\n" + agents[0].describe()
    assert_nothing_left(mark)


def test_during_a_restart(run, ddlaunch, mark, tmp_path, stop_signal):
    """Rank 0 ignores TERM, so that the restart's grace is a phase to be interrupted."""
    script = f'[ "$RANK" = 1 ] && {{ while [ ! -e {tmp_path}/fail ]; do sleep 0.05; done; exit 3; }}; {DEAF}'
    process = started(run(agent(ddlaunch, shell(script), "--max_restarts=3", "--restart-grace=30")), count=1)
    (tmp_path / "fail").touch()
    process.wait_for_text("rank 1")
    process.signal(stop_signal)
    time.sleep(0.1)
    process.signal(stop_signal)
    assert process.wait(10) != 0, process.describe()
    assert_nothing_left(mark)


def test_training_survives_as_a_checkpoint(run, ddlaunch, digits, tmp_path, mark):
    training = Training(tmp_path, digits, epochs=200, step_delay_ms=2)
    process = run(agent(ddlaunch, ["--no-python", *training.command]))
    wait_until(lambda: training.epochs_done() >= 2, "2 epochs are done", 60)
    process.signal(signal.SIGTERM)
    process.wait(10)
    assert_nothing_left(mark)
    done = training.epochs_done()
    again = Training(tmp_path, digits, epochs=done + 1)
    run(agent(ddlaunch, ["--no-python", *again.command])).expect(0, 60)
    assert training.epochs_done() == done + 1


def test_stopped_agent_comes_back(run, ddlaunch, mark):
    """SIGSTOP and SIGCONT of the agent do no harm to a running job."""
    script = "echo ready; i=0; while [ $i -lt 40 ]; do sleep 0.05; i=$((i+1)); done"
    process = started(run(agent(ddlaunch, shell(script))))
    os.kill(process.pid, signal.SIGSTOP)
    wait_until(lambda: stat_fields(process.pid)[0] == "T", "the agent is stopped")
    os.kill(process.pid, signal.SIGCONT)
    process.expect(0, 20)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_other_stop_signals(run, ddlaunch, mark, number):
    process = started(run(agent(ddlaunch, shell("echo ready; sleep 60"))))
    process.signal(number)
    assert process.wait(10) != 0, process.describe()
    assert_nothing_left(mark)


def test_workers_are_not_reached_by_the_terminals_interrupt(run, ddlaunch, mark):
    """Each worker leads its own session, so that only the launcher decides how it ends."""
    process = started(run(agent(ddlaunch, shell("echo ready; sleep 60"))))
    found = wait_for_workers(mark, 2)
    assert all(int(stat_fields(pid)[3]) == pid != int(stat_fields(process.pid)[3]) for pid in found.values())


def test_forwarded_signals_stop_nothing(run, ddlaunch, mark):
    script = 'trap "echo usr" USR1; trap "echo polite; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    process = started(run(agent(ddlaunch, shell(script), "--forward-signals=USR1")))
    process.signal(signal.SIGUSR1)
    wait_until(lambda: process.out.count("usr") == 2, f"both workers got it\n{process.describe()}", 20)
    process.signal(signal.SIGTERM)
    assert process.wait(10) == 66, process.describe()
    assert process.out.count("polite") == 2
    assert_nothing_left(mark)
