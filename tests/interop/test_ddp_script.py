"""The unmodified PyTorch DDP script, which knows nothing of the launcher, under every PyTorch release at hand."""
import os
import signal

import pytest

from harness.fixtures import DDP_SCRIPT, Reference, Training, assert_same_curve, result_of
from harness.launching import PORT, agent, launch_on, wait_for_workers
from harness.procfs import assert_nothing_left, environment, workers
from harness.waiting import wait_until

EPOCHS = 8


@pytest.fixture(scope="session")
def script(torch_python):
    """The words that a launcher gets: the script, run by the chosen Python."""
    return ["--no-python", torch_python, DDP_SCRIPT]


@pytest.fixture(scope="session")
def ddp_reference(torch_python, tmp_path_factory):
    return Reference(tmp_path_factory.mktemp("ddp"), [torch_python, DDP_SCRIPT])


def check(training, text, ddp_reference, ranks, epochs=EPOCHS):
    curve, alone = ddp_reference(epochs=epochs)
    assert_same_curve(training.losses(), curve)
    result = result_of(text)
    assert result["loss"] == pytest.approx(alone["loss"], abs=1e-4)
    assert result["ranks"] == ranks
    return result


def test_one_node(run, ddlaunch, script, ddp_reference, tmp_path, mark):
    training = Training(tmp_path, script, epochs=30)
    process = run(agent(ddlaunch, training.command, workers_here=2)).expect(0, 120)
    assert check(training, process.out, ddp_reference, 2, epochs=30)["accuracy"] >= 0.95
    assert_nothing_left(mark)


def test_through_the_launchers_choice_of_python(run, ddlaunch, torch_python, ddp_reference, tmp_path):
    """`ddlaunch train.py`: the interpreter comes from PYTHON_EXEC, as with torchrun."""
    training = Training(tmp_path, [DDP_SCRIPT], epochs=EPOCHS)
    process = run(agent(ddlaunch, training.command), env={"PYTHON_EXEC": torch_python}).expect(0, 120)
    check(training, process.out, ddp_reference, 2)


@pytest.mark.parametrize("counts", [(2, 2), (3, 1)], ids=["2+2", "3+1"])
def test_two_hosts(cluster, ddlaunch, script, ddp_reference, tmp_path, counts):
    training = Training(tmp_path, script, epochs=EPOCHS)
    agents = launch_on(cluster(2), ddlaunch, training.command, workers_per_host=counts)
    for process in agents:
        process.expect(0, 150)
    check(training, "".join(process.out for process in agents), ddp_reference, 4)


@pytest.mark.parametrize("endpoint, variables", [
    ("10.77.0.1", {}), ("[fd77::1]", {}), ("h0-ib", {"GLOO_SOCKET_IFNAME": "eth1"})], ids=["IPv4", "IPv6", "second"])
def test_endpoint(cluster, ddlaunch, script, tmp_path, endpoint, variables):
    training = Training(tmp_path, script, epochs=2)
    agents = launch_on(cluster(2), ddlaunch, training.command, workers_per_host=(1, 1), endpoint=f"{endpoint}:{PORT}",
                       env=variables)
    for process in agents:
        process.expect(0, 120)


@pytest.mark.parametrize("rank", [0, 1])
def test_crash_takes_one_restart_and_finds_no_stale_key(run, ddlaunch, script, ddp_reference, tmp_path, mark, rank):
    """After kill -9 of one rank all ranks form a new group in an empty key space and go on from the checkpoint."""
    training = Training(tmp_path, script, epochs=EPOCHS, step_delay_ms=10)
    process = run(agent(ddlaunch, training.command, "--max_restarts=1", workers_here=2))
    kill_after_an_epoch(mark, training, rank, 2)
    process.expect(0, 150)
    check(training, process.out, ddp_reference, 2)
    assert process.err.count("restart 1 of 1") == 1, process.describe()


def test_crash_on_two_hosts(cluster, ddlaunch, script, ddp_reference, tmp_path, mark):
    training = Training(tmp_path, script, epochs=EPOCHS, step_delay_ms=10)
    agents = launch_on(cluster(2), ddlaunch, training.command, "--max_restarts=1", workers_per_host=(1, 1))
    kill_after_an_epoch(mark, training, 1, 2)
    for process in agents:
        process.expect(0, 150)
        assert process.err.count("restart 1 of 1") == 1, process.describe()
    check(training, "".join(process.out for process in agents), ddp_reference, 2)


def kill_after_an_epoch(mark, training, rank, count):
    wait_until(lambda: training.epochs_done() >= 1, "an epoch is done", 90)
    os.kill(wait_for_workers(mark, count)[rank], signal.SIGKILL)

    def again():
        found = [environment(pid).get("TORCHELASTIC_RESTART_COUNT") for pid in workers(mark).values()]
        return found == ["1"] * count

    wait_until(again, "all ranks run again", 60)


def test_many_crashes(run, ddlaunch, torch_python, tmp_path):
    """Six rounds, in all but the last a rank fails after the group was made: no key of one reaches the next."""
    program = ("import os,sys,datetime,torch,torch.distributed as d\n"
               "d.init_process_group('gloo', timeout=datetime.timedelta(seconds=30))\n"
               "n=int(os.environ['TORCHELASTIC_RESTART_COUNT']); t=torch.tensor([float(n)]); d.all_reduce(t)\n"
               "assert t.item()==n*d.get_world_size(), t\n"
               "if n<5 and d.get_rank()==n%2: os._exit(3)\n"
               "d.barrier(); sys.stdout.write(f'done {n}\\n'); sys.stdout.flush()\n")  # one write: both ranks share it
    path = tmp_path / "crashes.py"
    path.write_text(program)
    process = run(agent(ddlaunch, ["--no-python", torch_python, path], "--max_restarts=5",
                        "--crash-loop-window=0")).expect(0, 200)
    assert process.out.count("done 5") == 2


def test_script_hosts_its_own_store(run, ddlaunch, script, ddp_reference, tmp_path):
    """--worker-store=worker: MASTER_PORT is free and PyTorch's rank 0 serves it."""
    training = Training(tmp_path, script, epochs=EPOCHS)
    process = run(agent(ddlaunch, training.command, "--worker-store=worker")).expect(0, 120)
    check(training, process.out, ddp_reference, 2)


def test_a_node_that_joins_changes_the_round_and_not_the_restart_count(cluster, ddlaunch, script, ddp_reference,
                                                                       tmp_path, mark):
    """Both rounds have restart count 0, so PyTorch 1.13 gives its keys the same prefix in both: only the key space of
    each generation keeps them apart."""
    training = Training(tmp_path, script, epochs=EPOCHS, step_delay_ms=20)
    hosts = cluster(2)
    command = agent(ddlaunch, training.command, "--rdzv-conf=last_call_timeout=0", nodes="1:2", workers_here=1,
                    endpoint=f"h0:{PORT}")
    first = hosts[0].run(command, name="first")
    wait_until(lambda: training.epochs_done() >= 1, "the first node trains alone", 90)
    second = hosts[1].run(command, name="second")

    def both_run():
        found = [environment(pid) for pid in workers(mark).values()]
        return [(e.get("WORLD_SIZE"), e.get("TORCHELASTIC_RESTART_COUNT")) for e in found] == [("2", "0")] * 2

    wait_until(both_run, "both train together", 60)
    first.expect(0, 150)
    second.expect(0, 30)
    check(training, first.out, ddp_reference, 2)
