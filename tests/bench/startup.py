"""What a launch costs: whole processes side by side, in turn, so that a slow moment of the machine hits all alike.

  startup.py [--quick]      TORCH213_PYTHON: a Python with PyTorch 2.13, for torchrun. DDLAUNCH_BIN: the launcher.
"""
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

from measuring import Row, clean_environment, finish, interval, launcher, ratio_of_medians
from harness import procfs
from harness.waiting import wait_until

TRUE = "/bin/true"
SHELL = ["/bin/sh", "-c", "true & true & wait"]
MEMORY_GOAL = 15.0  # MB, agent and guard together


def spawn(command, environment):
    """posix_spawn, so that the cost of starting a process from a large Python does not blur the result."""
    actions = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    return os.posix_spawn(command[0], command, environment, file_actions=actions)


def seconds_of(command, environment):
    begun = time.perf_counter()
    _, status = os.waitpid(spawn(command, environment), 0)
    taken = time.perf_counter() - begun
    if status != 0:
        sys.exit(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
    return taken


def side_by_side(first, second, rounds, environment):
    seconds_of(first, environment)  # warm caches
    seconds_of(second, environment)
    pairs = [(seconds_of(first, environment), seconds_of(second, environment)) for _ in range(rounds)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def describe(name, times):
    return f"{name}: median {statistics.median(times) * 1000:.2f} ms of {len(times)} runs"


def against_shell(ours, rounds, environment, notes):
    own, shell = side_by_side(ours, SHELL, rounds, environment)
    notes += [describe("ddlaunch", own), describe("sh", shell)]
    return Row("ddlaunch / sh", ratio_of_medians(own, shell), *interval(ratio_of_medians, own, shell), 3, True, "x")


def against_slower(name, theirs, ours, rounds, goal, environment, notes):
    their_times, own = side_by_side(theirs, ours, rounds, environment)
    notes.append(describe(name, their_times))
    return Row(f"{name} / ddlaunch", ratio_of_medians(their_times, own),
               *interval(ratio_of_medians, their_times, own), goal, False, "x")


def peak_megabytes(environment):
    """VmHWM of the agent and its helper processes while two workers run, no tee."""
    mark = f"bench-{procfs.run_identity()}"
    process = subprocess.Popen([launcher(), "--standalone", "--nproc_per_node=2", "--no-python", "/bin/sleep", "60"],
                               env={**environment, procfs.MARK_VARIABLE: mark}, stderr=subprocess.DEVNULL)
    try:
        found = wait_until(lambda: len(procfs.workers(mark)) == 2 and procfs.workers(mark), "two workers run")
        helpers = [pid for pid in procfs.children(process.pid) if pid not in found.values()]
        return sum(procfs.status_value(pid, "VmHWM") for pid in [process.pid, *helpers]) * 1024 / 1e6
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        procfs.kill_marked(mark)


def main():
    quick = "--quick" in sys.argv
    environment = clean_environment()
    ours = [launcher(), "--standalone", "--nproc_per_node=2", "--no-python", TRUE]
    notes, rows = [], []
    rows.append(against_shell(ours, 30 if quick else 300, environment, notes))

    python = os.environ.get("TORCH213_PYTHON")
    if python:
        torchrun = [python, "-m", "torch.distributed.run", *ours[1:]]
        rows.append(against_slower("torchrun", torchrun, ours, 3 if quick else 10, 100, environment, notes))
    else:
        notes.append("not compared with torchrun: TORCH213_PYTHON is not set")
    mpirun = shutil.which("mpirun")
    if mpirun:
        command = [mpirun, "-np", "2", "--allow-run-as-root", "--oversubscribe", TRUE]
        rows.append(against_slower("mpirun", command, ours, 5 if quick else 30, 5, environment, notes))
    else:
        notes.append("not compared with mpirun: it is not installed (package openmpi-bin)")

    peaks = [peak_megabytes(environment) for _ in range(3 if quick else 10)]
    rows.append(Row("peak memory", max(peaks), min(peaks), max(peaks), MEMORY_GOAL, True, " MB"))
    finish(rows, notes)


if __name__ == "__main__":
    main()
