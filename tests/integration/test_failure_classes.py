"""Failures that are not answered by a restart, and what schedulers read from the exit code."""
import json

from harness.launching import agent, launch_on


def shell(script):
    return ["--no-python", "/bin/sh", "-c", script]


def test_a_crash_loop_ends_early_and_says_so(run, ddlaunch, tmp_path):
    result = tmp_path / "result"
    script = 'test "$RANK" = 0 || exec sleep 60; echo "no such config" >&2; exit 3'
    process = run(agent(ddlaunch, shell(script), "--max-restarts=9", f"--result-file={result}")).expect(67, 30)
    assert process.err.count("restart 1 of 9") == 1 and "restart 2 of 9" not in process.err, process.describe()
    last = process.err.rstrip().splitlines()[-1]
    assert "crash loop" in last and "rank 0" in last and "--crash-loop-window 0" in last, process.describe()
    told = json.loads(result.read_text())
    assert (told["exit_code"], told["origin"], told["restart_count"]) == (67, "launcher", 1)


def test_workers_that_die_differently_are_no_crash_loop(run, ddlaunch):
    script = 'test "$TORCHELASTIC_RESTART_COUNT" = 2 || exit $((3 + TORCHELASTIC_RESTART_COUNT))'
    run(agent(ddlaunch, shell(script), "--max-restarts=2", workers_here=1)).expect(0, 30)


def test_codes_that_are_never_restarted(cluster, ddlaunch):
    script = 'test "$RANK" = 1 || exec sleep 60; exit 12'
    for process in launch_on(cluster(2), ddlaunch, shell(script), "--max-restarts=9",
                             "--no-restart-exit-codes=3,10-20"):
        process.expect(67, 30)
        assert "restart 1" not in process.err, process.describe()
        assert "code 12 is not restarted (--no-restart-exit-codes)" in process.err, process.describe()


def test_a_budget_per_time_is_named(run, ddlaunch):
    script = 'exit $((3 + TORCHELASTIC_RESTART_COUNT))'
    process = run(agent(ddlaunch, shell(script), "--max-restarts=2/1h", workers_here=1)).expect(5, 30)
    assert "restart 2 of 2 within 1 h" in process.err, process.describe()
