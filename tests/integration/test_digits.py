"""The digits program by itself: its flags, its checkpoint, and what a rank does when another one dies.

Ranks are started by hand around `ddlaunch store`, so that nobody but the program itself reacts."""
import os
import signal

import pytest

from harness.fixtures import DIGITS_DATA, Training, assert_same_curve, result_of
from harness.waiting import wait_until


@pytest.fixture
def ranks(run, ddlaunch, digits):
    """ranks(n, flags for all or a list of flags for each): n ranks around one store."""
    store = run([ddlaunch, "store", "--port", "0"])
    store.wait_for_text("listening on port", stream="out")
    port = store.out.split()[-1]

    def start(count, flags, leave_out=()):
        each = flags if flags and isinstance(flags[0], list) else [flags] * count
        place = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1,
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        return [run([digits, *each[rank]], name=f"rank{rank}",
                    env={n: str(v) for n, v in {**place, "RANK": rank, "LOCAL_RANK": rank}.items()})
                for rank in range(count) if rank not in leave_out]

    return start


def one_line(process, *words):
    lines = process.err.strip().splitlines()
    assert len(lines) == 1 and all(word in lines[0] for word in words), process.describe()


@pytest.mark.parametrize("victim", [0, 1, 3])
def test_death_of_a_rank_ends_the_others(ranks, tmp_path, victim):
    """At once or, where Gloo forgets a send that was under way (in waitSend), when their timeout is over."""
    log = tmp_path / "log"
    processes = ranks(4, ["--step-delay-ms", "2", "--epochs", "1000", "--loss-log", log, "--timeout-ms", "3000"])
    wait_until(log.exists, "an epoch is done", 20)
    os.kill(processes[victim].pid, signal.SIGKILL)
    for rank, process in enumerate(processes):
        if rank != victim:
            process.expect(1, 10)
            one_line(process, f"rank {rank} of 4")


def test_rank_that_never_comes(ranks):
    for process in ranks(3, ["--timeout-ms", "700"], leave_out=[2]):
        process.expect(1, 10)
        one_line(process, "in time")


@pytest.mark.parametrize("count", [2, 3, 5])
def test_curve_does_not_depend_on_the_number_of_ranks(ranks, reference, tmp_path, count):
    log = tmp_path / "log"
    training = Training(tmp_path, "digits", epochs=6)
    training.loss_log = log
    for process in ranks(count, ["--epochs", "6", "--loss-log", log]):
        process.expect(0, 60)
    assert_same_curve(training.losses(), reference(epochs=6)[0])


def test_threads_do_not_change_the_curve(run, digits, reference, tmp_path):
    training = Training(tmp_path, digits, epochs=4, threads=3)
    run(training.command).expect(0, 60)
    assert_same_curve(training.losses(), reference(epochs=4)[0])


def test_goes_on_from_its_checkpoint(run, digits, reference, tmp_path):
    for epochs in (2, 5, 6):
        training = Training(tmp_path, digits, epochs=epochs)
        text = run(training.command).expect(0, 30).out
    curve, alone = reference(epochs=6)
    assert_same_curve(training.losses(), curve)
    assert result_of(text)["loss"] == pytest.approx(alone["loss"], abs=1e-9)


def test_newest_checkpoint_wins_wherever_it_is(ranks, run, digits, reference, tmp_path):
    """Rank 0 comes back empty-handed (a new machine): it must not overwrite what rank 1 has."""
    old, new = Training(tmp_path, digits, name="old", epochs=1), Training(tmp_path, digits, name="new", epochs=3)
    run(old.command).expect(0, 30)
    run(new.command).expect(0, 30)
    files = [tmp_path / "none", new.checkpoint, old.checkpoint]
    processes = ranks(3, [["--epochs", "6", "--checkpoint", file] for file in files])
    for process in processes:
        process.expect(0, 60)
    assert "going on after epoch 3" in processes[0].out
    assert result_of(processes[0].out)["loss"] == pytest.approx(reference(epochs=6)[1]["loss"], abs=1e-4)


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:100] + b"\xff" + b[101:],
                                    lambda b: b + b"x"], ids=["short", "empty", "flipped", "long"])
def test_damaged_checkpoint_is_refused(run, digits, tmp_path, damage):
    training = Training(tmp_path, digits, epochs=1)
    run(training.command).expect(0, 30)
    training.checkpoint.write_bytes(damage(training.checkpoint.read_bytes()))
    one_line(run(training.command).expect(1, 10), str(training.checkpoint))


def test_killed_while_saving_leaves_a_whole_checkpoint(run, digits, tmp_path):
    """Killed at many moments, the next start always finds a checkpoint that it can go on from."""
    training = Training(tmp_path, digits, epochs=100_000)
    for _ in range(8):
        before = training.epochs_done()
        process = run(training.command)
        wait_until(lambda: training.epochs_done() > before + 1 or not process.running, "epochs go by", 20)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(5) == 137, process.describe()
    last = Training(tmp_path, digits, epochs=training.epochs_done() + 1)
    run(last.command).expect(0, 30)


@pytest.mark.parametrize("words, named", [
    (["--epochs", "many"], "--epochs"), (["--epochs"], "--epochs"), (["--rate", "-1"], "--rate"),
    (["--no-such"], "--no-such"), (["--momentum=1"], "--momentum"), (["--batch=0"], "--batch")])
def test_bad_flags(run, digits, words, named):
    one_line(run([digits, *words]).expect(2, 10), named)


def test_missing_and_broken_data(run, digits, tmp_path):
    one_line(run([digits, "--data", tmp_path / "nothing"]).expect(1, 10), "nothing", "No such file")
    broken = tmp_path / "broken.csv"
    broken.write_text(DIGITS_DATA.read_text()[:1000] + "\nx,y\n")
    one_line(run([digits, "--data", broken]).expect(1, 10), "broken.csv", "line")


def test_half_an_environment_is_refused(run, digits):
    process = run([digits], env={"RANK": "0", "WORLD_SIZE": "2"}).wait(10)
    assert process in (1, 2)
