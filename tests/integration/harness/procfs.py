"""Finding processes by what is in their environment: no process of a test can hide by leaving its session."""
import os
import signal

from .waiting import wait_until

RUN_VARIABLE = "DDLAUNCH_TEST_RUN"    # of the pytest process: <pid>-<start time>
MARK_VARIABLE = "DDLAUNCH_TEST_MARK"  # of one test


def read(path, default=b""):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return default


def stat_fields(pid):
    """Fields of /proc/<pid>/stat after the command's name: [0] state, [1] parent, [3] session, [19] start time."""
    return read(f"/proc/{pid}/stat").rpartition(b")")[2].decode().split()


def environment(pid):
    pairs = (entry.partition("=") for entry in read(f"/proc/{pid}/environ").decode(errors="replace").split("\0"))
    return {name: value for name, _, value in pairs if name}


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def marked(mark, variable=MARK_VARIABLE):
    """Living processes (zombies have no environment any more) that carry the mark."""
    needle = f"{variable}={mark}".encode()
    return [pid for pid in pids() if needle in read(f"/proc/{pid}/environ").split(b"\0")]


def command(pid):
    return read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def workers(mark, rank=None):
    """{rank: pid} of the workers themselves: marked, with a rank, leading their own session."""
    found = {}
    for pid in marked(mark):
        variables = environment(pid)
        fields = stat_fields(pid)
        if "RANK" in variables and len(fields) > 3 and int(fields[3]) == pid:
            found[int(variables["RANK"])] = pid
    return found if rank is None else found.get(rank)


def status_value(pid, name):
    """A line of /proc/<pid>/status, e.g. Threads or VmHWM, as its first number."""
    for line in read(f"/proc/{pid}/status").decode().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return None


def children(pid):
    return [other for other in pids() if stat_fields(other)[1:2] == [str(pid)]]


def zombies_below(pid):
    return [child for child in children(pid) if stat_fields(child)[0:1] == ["Z"]]


def kill_all(found):
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def kill_marked(mark, variable=MARK_VARIABLE):
    """Ends everything that carries the mark, forks that race with the sweep included."""

    def swept():
        found = marked(mark, variable)
        kill_all(found)
        return not found

    wait_until(swept, f"processes marked {mark} are killed")


def assert_nothing_left(mark, seconds=1.0):
    """Nothing that carries the mark is alive after `seconds`; says what is."""

    def left():
        return [f"{pid} ({command(pid)})" for pid in marked(mark)]

    try:
        wait_until(lambda: not left(), "", seconds)
    except AssertionError:
        remaining = left()
        assert not remaining, f"left running after {seconds} s: {', '.join(remaining)}"


def run_identity():
    return f"{os.getpid()}-{stat_fields(os.getpid())[19]}"


def kill_leftovers_of_dead_runs():
    """A pytest that was killed could not clean up; the next one does it for it."""
    for pid in pids():
        identity = environment(pid).get(RUN_VARIABLE)
        if not identity:
            continue
        owner, _, start = identity.partition("-")
        if stat_fields(owner)[19:20] != [start]:
            kill_all([pid])
