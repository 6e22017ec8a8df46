"""Nothing outlives its reason: not the agent's death, not a failed worker's family, not a zombie."""
import os
import re
import signal
import subprocess

import pytest

from harness.fixtures import WORKERS
from harness.launching import agent, launch_on, wait_for_workers
from harness.procfs import assert_nothing_left, children, command, marked, pids, read, stat_fields, zombies_below
from harness.waiting import stays_true, wait_until


def family_program(*behaviours):
    """A worker with descendants that try to escape; each writes `<behaviour>` to stdout once it sleeps."""
    return ["--no-python", "/usr/bin/python3", WORKERS / "family.py", *behaviours]


ESCAPES = ["child", "setsid", "double-fork", "grandchildren"]


def need_pid_namespaces():
    tried = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, text=True,
                           check=False)
    if tried.returncode != 0:
        pytest.skip(f"pid namespaces are not permitted here: {tried.stderr.strip()}")


def all_sleep(process, workers, behaviours):
    wait_until(lambda: all(process.out.count(f"sleeps {b}") >= workers for b in behaviours),
               f"all descendants are there\n{process.describe()}", 20)


@pytest.mark.parametrize("behaviour", ESCAPES)
def test_killed_agent_leaves_nothing(run, ddlaunch, mark, behaviour):
    process = run(agent(ddlaunch, family_program(behaviour)))
    all_sleep(process, 2, [behaviour])
    os.kill(process.pid, signal.SIGKILL)
    process.wait(5)
    assert_nothing_left(mark, seconds=1)


def test_killed_agent_leaves_not_even_those_that_hid(cluster, ddlaunch, mark):
    """A daemon without our environment: only a cgroup finds it."""
    agents = launch_on(cluster(2), ddlaunch, family_program("hidden"), "--rdzv-conf=rejoin_timeout=1")
    for process in agents:
        all_sleep(process, 2, ["hidden"])
    hidden = [int(pid) for pid in re.findall(r"sleeps hidden as pid (\d+)", agents[0].out + agents[1].out)]
    grouped = all(b"/ddlaunch-" in read(f"/proc/{pid}/cgroup") for pid in hidden)
    for process in agents:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(5)
    if not grouped:
        for pid in hidden:
            os.kill(pid, signal.SIGKILL)
        pytest.skip("no writable cgroup version 2 hierarchy with cgroup.kill here")
    wait_until(lambda: all(b") Z " in read(f"/proc/{pid}/stat", b") Z ") for pid in hidden), "they are dead", 1)
    assert_nothing_left(mark, seconds=1)


def test_killed_agent_on_one_of_two_nodes(cluster, ddlaunch, mark):
    """The other node hears of it at once, and the job ends everywhere: nothing hangs."""
    agents = launch_on(cluster(2), ddlaunch, family_program(*ESCAPES), "--rdzv-conf=rejoin_timeout=1")
    all_sleep(agents[0], 2, ESCAPES)
    all_sleep(agents[1], 2, ESCAPES)
    os.kill(agents[1].pid, signal.SIGKILL)
    assert agents[0].wait(20) != 0
    assert "h1" in agents[0].err, agents[0].describe()
    assert_nothing_left(mark, seconds=1)


def test_guard_may_die_first(run, ddlaunch, mark):
    """Without its guard the agent still ends its workers on a polite stop."""
    process = run(agent(ddlaunch, family_program("child")))
    all_sleep(process, 2, ["child"])
    workers = set(wait_for_workers(mark, 2).values())
    for pid in [pid for pid in children(process.pid) if pid not in workers]:
        os.kill(pid, signal.SIGKILL)
    process.signal(signal.SIGTERM)
    assert process.wait(20) != 0
    assert_nothing_left(mark)


def guard_of(process):
    found = [pid for pid in children(process.pid) if read(f"/proc/{pid}/comm").strip() == b"ddl-guard"]
    return found[0] if found else None


def test_killed_guard_is_replaced(run, ddlaunch, mark):
    """The new guard knows of workers that were started before it: even a wiped environment is found by its session."""
    script = "env -i sleep 60 & echo ready; wait"
    process = run(agent(ddlaunch, ["--no-python", "/bin/sh", "-c", script]))
    wait_until(lambda: process.out.count("ready") == 2, "workers run", 20)
    sessions = set(wait_for_workers(mark, 2).values())
    for count in (1, 2):
        first = guard_of(process)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: guard_of(process) not in (None, first), "another guard runs", 5)
        wait_until(lambda: process.err.count("a new one was started") == count, "it was said once", 5)
    assert not zombies_below(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(5)
    assert_nothing_left(mark, seconds=1)

    def members():
        return [pid for pid in pids() if stat_fields(pid)[3:4] and int(stat_fields(pid)[3]) in sessions
                and stat_fields(pid)[0] != "Z"]

    wait_until(lambda: not members(), "the sessions are empty", 1)


def test_job_ends_well_after_its_guard_was_killed(run, ddlaunch, mark):
    process = run(agent(ddlaunch, ["--no-python", "sleep", "1"]))
    wait_for_workers(mark, 2)
    os.kill(guard_of(process), signal.SIGKILL)
    process.expect(0, 10)
    assert_nothing_left(mark)


def test_private_directory_goes_with_a_killed_agent(run, ddlaunch, mark, tmp_path):
    """Error files outside a log directory: removed by the guard, and links in there are not followed."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    script = f'ln -s {tmp_path}/kept "$(dirname "$TORCHELASTIC_ERROR_FILE")/link.$RANK"; echo ready; exec sleep 60'
    process = run(agent(ddlaunch, ["--no-python", "/bin/sh", "-c", script]), env={"TMPDIR": "tmp"}, cwd=tmp_path)
    wait_until(lambda: process.out.count("ready") == 2, f"workers run {process.describe()}", 20)
    made = list((tmp_path / "tmp").glob("ddlaunch-*"))
    assert len(made) == 1 and (made[0].stat().st_mode & 0o777) == 0o700
    os.kill(process.pid, signal.SIGKILL)
    process.wait(5)
    assert_nothing_left(mark)
    wait_until(lambda: not made[0].exists(), "the guard removes it", 2)
    assert (tmp_path / "kept" / "file").exists()


def test_failed_workers_family_is_gone_before_the_next_round(run, ddlaunch, tmp_path, mark):
    program = [*family_program(*ESCAPES), f"--fail-once={tmp_path / 'pids'}"]
    process = run(agent(ddlaunch, program, "--max_restarts=1"))
    process.expect(0, 30)
    seen = (tmp_path / "pids.seen").read_text().split()
    assert seen == ["0", "0"], f"members of the old families alive when the new workers started: {seen}"
    assert_nothing_left(mark)


def test_family_of_a_finished_job(run, ddlaunch, mark):
    """Helpers of workers that exited 0 get a TERM when the job is over."""
    process = run(agent(ddlaunch, [*family_program("setsid"), "--finish"]))
    process.expect(0, 20)
    assert_nothing_left(mark)


def test_no_zombies_while_running(run, ddlaunch, mark):
    process = run(agent(ddlaunch, [*family_program("short-lived")]))
    all_sleep(process, 2, ["short-lived"])
    wait_until(lambda: not zombies_below(process.pid), "adopted processes are reaped", 3)
    process.signal(signal.SIGTERM)
    process.wait(10)
    assert_nothing_left(mark)


def test_as_the_first_process_of_a_container(run, ddlaunch, mark):
    """As pid 1 it reaps everybody's orphans and still gives the job's status."""
    need_pid_namespaces()
    inside = agent(ddlaunch, [*family_program("short-lived", "double-fork")])
    process = run(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *inside])
    all_sleep(process, 2, ["short-lived", "double-fork"])
    first = wait_until(lambda: next((pid for pid in children(process.pid)), None), "pid 1 of the namespace runs")
    assert "ddlaunch" in command(first)
    wait_until(lambda: not zombies_below(first), "orphans are reaped", 3)
    os.kill(first, signal.SIGTERM)
    assert process.wait(15) != 0
    assert_nothing_left(mark)


def test_exit_status_as_the_first_process(run, ddlaunch):
    need_pid_namespaces()
    inside = agent(ddlaunch, ["--no-python", "/bin/sh", "-c", 'test "$RANK" != 1 || exit 7; sleep 60'])
    run(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *inside]).expect(7, 20)


def test_workers_have_no_foreign_descriptors(run, ddlaunch):
    """Only 0, 1 and 2 get into a worker: no socket of the launcher, and stdin is empty."""
    script = 'ls /proc/self/fd | tr "\\n" " "; readlink /proc/$$/fd/0; echo'
    process = run(agent(ddlaunch, ["--no-python", "/bin/sh", "-c", script], workers_here=1)).expect(0)
    assert process.out.split() == ["0", "1", "2", "3", "/dev/null"]  # the fourth is ls reading the folder


def test_an_agent_that_loses_its_own_parent_goes_on(run, ddlaunch, mark, tmp_path):
    """nohup and batch systems: the shell that started it may go away."""
    inside = agent(ddlaunch, ["--no-python", "/bin/sh", "-c", f"sleep 1; touch {tmp_path}/done.$RANK"])
    words = " ".join(f"'{word}'" for word in inside)
    run(["/bin/sh", "-c", f"{words} & exit 0"]).expect(0, 5)
    wait_until(lambda: (tmp_path / "done.0").exists() and (tmp_path / "done.1").exists(), "the job went on", 15)
    wait_until(lambda: not marked(mark), "and ended", 5)


def test_other_processes_are_left_alone(run, ddlaunch, mark):
    """A process of the same user that only looks like a worker is not touched by the clean-up."""
    bystander = run(["/bin/sh", "-c", "exec sleep 30"], env={"RANK": "0", "DDLAUNCH_SPAWN_ID": "someone-else.0"})
    process = run(agent(ddlaunch, family_program("setsid")))
    all_sleep(process, 2, ["setsid"])
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: marked(mark) == [bystander.pid], "only the bystander is left", 3)
    stays_true(lambda: bystander.running, "the bystander lives", 0.3)
    assert bystander.pid in pids() and read(f"/proc/{bystander.pid}/comm").strip() == b"sleep"
