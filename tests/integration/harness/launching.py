"""Starting the launcher on one machine or on all hosts of a cluster, and common assertions about the outcome."""
from .procfs import marked, workers
from .waiting import wait_until

PORT = 29400


def agent(ddlaunch, program, *flags, nodes=1, workers_here=2, endpoint=None):
    """The launcher's command line; several nodes need an endpoint. Nothing but the program's words follow it."""
    command = [ddlaunch, f"--nproc_per_node={workers_here}"]
    if endpoint:
        command += [f"--nnodes={nodes}", f"--rdzv_endpoint={endpoint}", "--rdzv_backend=c10d"]
    else:
        command.append("--standalone")
    return [*command, *flags, *[str(word) for word in program]]


def launch_on(cluster, ddlaunch, program, *flags, workers_per_host=None, endpoint=None, env=None):
    """One agent on each host, with the given worker counts (default 2 each); returns their processes."""
    counts = workers_per_host or [2] * cluster.count
    target = endpoint or f"h0:{PORT}"
    return [host.run(agent(ddlaunch, program, *flags, nodes=cluster.count, workers_here=count, endpoint=target),
                     env=env, name=f"agent-{host.name}")
            for host, count in zip(cluster, counts)]


def wait_for_workers(mark, count, seconds=20.0):
    """{rank: pid} once all `count` workers run."""

    def all_there():
        found = workers(mark)
        return found if len(found) == count else None

    return wait_until(all_there, f"{count} workers run (processes: {marked(mark)})", seconds)


def no_trace(process):
    """No stack trace of any language in what the launcher said."""
    for word in ("Traceback (most recent call last)", "terminate called", "what():", "Sanitizer", "Aborted",
                 "Segmentation fault"):
        assert word not in process.err, process.describe()
