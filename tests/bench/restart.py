"""From the last worker reaped to the last new worker's exec, on one node and on two, from the stamps in --events.

  restart.py [--quick]      DDLAUNCH_BIN: the launcher; EXIT_ON_TERM_BIN: the worker (else built with cc).
The workers' own time to end is not part of it: they exit at once on SIGTERM. Two nodes are network namespaces (root).
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import ROOT, Row, clean_environment, finish, interval, launcher, quantile
from harness import namespaces, procfs
from harness.process import Process

FAIL_AFTER_MS = "20"
WORKERS = 2  # on each node


def worker_program(folder):
    built = Path(os.environ.get("EXIT_ON_TERM_BIN") or ROOT / "build" / "tests" / "bench" / "exit_on_term")
    if not os.access(built, os.X_OK):
        built = Path(folder) / "exit_on_term"
        subprocess.run(["cc", "-O2", "-o", str(built), str(Path(__file__).parent / "exit_on_term.c")], check=True)
    return str(built)


def stamps(files):
    """{generation: (first reaped, last reaped, last exec)} in ns, over all nodes."""
    reaped, started = {}, {}
    for path in files:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            table = {"worker_reaped": reaped, "worker_exec": started}.get(entry["event"])
            if table is not None:
                table.setdefault(entry["generation"], []).append(entry["t_ns"])
    return {generation: (min(reaped[generation]), max(reaped[generation]), max(started[generation]))
            for generation in sorted(started) if generation in reaped}


def latencies(files, restarts):
    rounds = list(stamps(files).values())
    if len(rounds) != restarts + 1:
        sys.exit(f"{restarts + 1} rounds expected in {files}, found {len(rounds)}")
    after_last = [(new[2] - old[1]) / 1e6 for old, new in zip(rounds, rounds[1:])]
    after_first = [(new[2] - old[0]) / 1e6 for old, new in zip(rounds, rounds[1:])]
    return after_last, after_first


def wait_for(processes):
    for process in processes:
        status = process.wait(120)
        if status != 1:  # the last failing worker's status, when the budget is used up
            sys.exit(f"exit status {status} instead of 1\n{process.describe()}")


def command(worker, restarts, events, *flags):
    return [launcher(), f"--nproc_per_node={WORKERS}", f"--max_restarts={restarts}", "--crash-loop-window=0",
            f"--events={events}", *flags, "--no-python", worker, FAIL_AFTER_MS]


def one_node(worker, restarts, folder, environment):
    events = Path(folder) / "one.events"
    wait_for([Process(command(worker, restarts, events, "--standalone"), folder, "one", environment)])
    return latencies([events], restarts)


def two_nodes(worker, restarts, folder, environment):
    files = [Path(folder) / f"h{index}.events" for index in range(2)]
    cluster = namespaces.Cluster(2, folder, environment, lambda process: process)
    try:
        wait_for([host.run(command(worker, restarts, path, "--nnodes=2", "--rdzv_backend=c10d",
                                   "--rdzv_endpoint=h0:29400"), name=f"agent-{host.name}")
                  for host, path in zip(cluster, files)])
    finally:
        procfs.kill_marked(environment[procfs.MARK_VARIABLE])
        cluster.close()
    return latencies(files, restarts)


def rows_of(name, samples, goal):
    median = Row(f"{name}, p50 of {len(samples)}", statistics.median(samples), *interval(statistics.median, samples),
                 goal, True, " ms")
    late = Row(f"{name}, p95", quantile(samples, 0.95), *interval(lambda s: quantile(s, 0.95), samples), goal, True,
               " ms")
    return [median, late]


def main():
    restarts = 10 if "--quick" in sys.argv else 50
    mark = f"bench-{procfs.run_identity()}"
    environment = clean_environment(**{procfs.MARK_VARIABLE: mark, procfs.RUN_VARIABLE: procfs.run_identity()})
    notes, rows = [], []
    with tempfile.TemporaryDirectory(prefix="ddlaunch-bench-") as folder:
        worker = worker_program(folder)
        cases = [("one node", one_node, 50)]
        reason = namespaces.why_not()
        if reason:
            notes.append(f"two nodes were not measured: {reason}")
        else:
            cases.append(("two nodes", two_nodes, 100))
        for name, measure, goal in cases:
            after_last, after_first = measure(worker, restarts, folder, environment)
            rows += rows_of(name, after_last, goal)
            notes.append(f"{name}: from the first death to the last new exec, p50 "
                         f"{statistics.median(after_first):.2f} ms")
        procfs.kill_marked(mark)
    finish(rows, notes)


if __name__ == "__main__":
    main()
