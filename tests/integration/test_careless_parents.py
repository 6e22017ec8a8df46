"""A launcher that was started by a program which does not leave its children what they may expect."""
import os
import signal

import pytest

from harness.fixtures import PYTHON
from harness.launching import agent, no_trace, wait_for_workers
from harness.procfs import assert_nothing_left, children, read
from harness.waiting import wait_until


def started_by(statements, command):
    """`command`, executed by a Python that has run `statements` before."""
    script = f"import os, signal, sys; {statements}; os.execv(sys.argv[1], sys.argv[1:])"
    return [PYTHON, "-c", script, *command]


CLOSED = "[os.close(fd) for fd in (0, 1, 2)]"


def test_ignored_sigchld(run, ddlaunch, mark):
    """The kernel would reap the workers itself and throw their statuses away."""
    command = agent(ddlaunch, ["--no-python", "/bin/sh", "-c", "exit $((40 + RANK))"], workers_here=1)
    process = run(started_by("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", command))
    process.expect(40, 10)
    assert_nothing_left(mark)


@pytest.mark.parametrize("statements", [CLOSED, "os.close(0)", "os.close(1)", "os.close(2)"])
def test_closed_standard_descriptors(run, ddlaunch, mark, tmp_path, statements):
    """Sockets that got their numbers would be written to, or closed under the guard's hands."""
    script = f"echo out; echo err >&2; ls -l /proc/$$/fd >{tmp_path}/fds.$RANK; exit $((RANK * 3))"
    process = run(started_by(statements, agent(ddlaunch, ["--no-python", "/bin/sh", "-c", script])))
    process.expect(3, 10)
    no_trace(process)
    for rank in range(2):
        assert "socket:" not in (tmp_path / f"fds.{rank}").read_text()
    assert_nothing_left(mark)


def test_guard_without_standard_descriptors(run, ddlaunch, mark):
    family = "setsid sleep 60 & exec sleep 60"
    process = run(started_by(CLOSED, agent(ddlaunch, ["--no-python", "/bin/sh", "-c", family])))
    wait_for_workers(mark, 2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(5)
    assert_nothing_left(mark)


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_shell_that_closes_descriptors(run, ddlaunch, mark, closing):
    """The guard's own descriptors are put in order, too: it must not take its agent for dead and end the workers."""
    for _ in range(2):
        words = " ".join(str(word) for word in agent(ddlaunch, ["--no-python", "sleep", "1"]))
        process = run(["/bin/sh", "-c", f"exec {words} {closing}"])
        wait_for_workers(mark, 2)
        wait_until(lambda: sum(read(f"/proc/{pid}/comm").strip() == b"ddl-guard" for pid in children(process.pid)) == 1,
                   f"a guard is there\n{process.describe()}")
        process.expect(0, 10)
    assert_nothing_left(mark)


def test_nohup(run, ddlaunch, mark):
    """A hangup that was ignored from the start stays ignored; without nohup it stops the job."""
    command = agent(ddlaunch, ["--no-python", "sleep", "1"])
    process = run(started_by("signal.signal(signal.SIGHUP, signal.SIG_IGN)", command))
    wait_for_workers(mark, 2)
    process.signal(signal.SIGHUP)
    process.expect(0, 10)
    process = run(command)
    wait_for_workers(mark, 2)
    process.signal(signal.SIGHUP)
    process.expect(66, 10)
    assert_nothing_left(mark)
