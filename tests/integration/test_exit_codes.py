"""How a job ends: whose exit code it is, on which nodes, and what is said about it."""
import json
import re

import pytest

from harness.fixtures import WORKERS
from harness.launching import agent, launch_on, no_trace

WORKER_ENDS = [("exit 0", 0), ("exit 7", 7), ("exit 1", 1), ("exit 2", 2), ("exit 255", 255), ("kill -KILL $$", 137),
               ("kill -SEGV $$", 139), ("kill -ABRT $$", 134), ("kill -TERM $$", 143)]


def shell(script):
    return ["--no-python", "/bin/sh", "-c", script]


def last_line(process):
    return process.err.rstrip().splitlines()[-1]


@pytest.mark.parametrize("script, status", WORKER_ENDS, ids=[script for script, _ in WORKER_ENDS])
def test_one_node(run, ddlaunch, script, status):
    others = "exit 0" if status == 0 else "sleep 60"
    process = run(agent(ddlaunch, shell(f'if [ "$RANK" = 1 ]; then {script}; else {others}; fi'), workers_here=3))
    process.expect(status, 20)
    no_trace(process)
    if status:
        assert "rank 1" in process.err, process.describe()
        assert re.search(rf"exit code {status}\b.*rank 1", last_line(process)), process.describe()


@pytest.mark.parametrize("script, status", [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
@pytest.mark.parametrize("rank", [0, 3])
def test_both_nodes_end_with_the_culprits_status(cluster, ddlaunch, script, status, rank):
    others = "exit 0" if status == 0 else "sleep 60"
    agents = launch_on(cluster(2), ddlaunch, shell(f'if [ "$RANK" = {rank} ]; then {script}; else {others}; fi'))
    for process in agents:
        process.expect(status, 30)
        if status:
            assert f"rank {rank}" in last_line(process), process.describe()


def test_a_node_that_is_done_waits_for_the_others(cluster, ddlaunch, tmp_path):
    flag = tmp_path / "go"
    script = f'[ "$GROUP_RANK" = 0 ] || {{ while [ ! -e {flag} ]; do sleep 0.05; done; exit 6; }}'
    first, second = launch_on(cluster(2), ddlaunch, shell(script))
    first.wait_for_text("", 1)
    assert first.running and second.running
    flag.touch()
    first.expect(6, 20)
    second.expect(6, 20)


def test_root_cause_is_the_first_death(run, ddlaunch, tmp_path):
    """Rank 2 dies first; rank 0 dies of it, and rank 1 of the launcher's TERM."""
    flag = tmp_path / "dead"
    script = (f'case $RANK in 2) echo "no such weights file" >&2; touch {flag}; exit 42;;'
              f' 0) while [ ! -e {flag} ]; do :; done; sleep 0.05; echo "connection closed by peer" >&2; exit 1;;'
              ' *) trap "exit 9" TERM; sleep 60 & wait;; esac')
    process = run(agent(ddlaunch, shell(script), workers_here=3)).expect(42, 20)
    assert "rank 2" in last_line(process)
    assert process.err.index("rank 2") < process.err.rfind("exit code 42")
    assert "rank 1 on" not in process.err, "a worker that the launcher stopped is no culprit\n" + process.describe()


def test_last_stderr_lines_are_in_the_report_of_every_node(cluster, ddlaunch):
    script = ('if [ "$RANK" = 3 ]; then for i in $(seq 1 50); do echo "line $i of the culprit" >&2; done; exit 5; fi;'
              ' sleep 60')
    first, second = launch_on(cluster(2), ddlaunch, shell(script))
    first.expect(5, 30)
    second.expect(5, 30)
    assert "line 50 of the culprit" in first.err and "line 31 of the culprit" in first.err, first.describe()
    assert "line 30 of the culprit" not in first.err, "20 lines are enough"
    assert second.err.count("line 50 of the culprit") == 2, "once as it was written, once in the report"


@pytest.mark.parametrize("content, expected", [
    ('{"message": {"message": "RuntimeError: bad shape", "extraInfo": {"py_callstack": "File train.py, line 3"}}}',
     "train.py, line 3"),
    ('{"message": "just a text"}', "just a text"),
    ('{"message": ', ""), ("", ""), ("\x00\x01 binary", ""), ("[1, 2", ""), ('{"message": 17}', ""),
])
def test_error_file_in_any_state(run, ddlaunch, tmp_path, content, expected):
    source = tmp_path / "content"
    source.write_text(content)
    script = f'if [ "$RANK" = 1 ]; then cp {source} "$TORCHELASTIC_ERROR_FILE"; exit 4; fi; sleep 60'
    process = run(agent(ddlaunch, shell(script))).expect(4, 20)
    assert expected in process.err, process.describe()
    no_trace(process)


def test_error_file_that_is_a_folder(run, ddlaunch):
    process = run(agent(ddlaunch, shell('mkdir "$TORCHELASTIC_ERROR_FILE"; exit 4'))).expect(4, 20)
    no_trace(process)


def test_hint_for_a_killed_worker(run, ddlaunch):
    process = run(agent(ddlaunch, shell('[ "$RANK" = 1 ] && kill -KILL $$; sleep 60'))).expect(137, 20)
    assert "SIGKILL" in process.err and "memory" in process.err, process.describe()


def test_result_file_says_who_decided(run, ddlaunch, tmp_path):
    result = tmp_path / "result"
    run(agent(ddlaunch, shell('[ "$RANK" = 1 ] && exit 7; sleep 60'), f"--result-file={result}")).expect(7, 20)
    assert json.loads(result.read_text())["exit_code"] == 7


def test_program_that_cannot_be_started(run, ddlaunch, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    process = run(agent(ddlaunch, ["--no-python", broken]))
    assert process.wait(20) not in (0, 68), process.describe()
    assert "broken" in process.err and "No such file" in process.err, process.describe()
    no_trace(process)


def test_output_is_complete(run, ddlaunch):
    """A burst of a megabyte before the end of each worker arrives whole, on both streams."""
    process = run(agent(ddlaunch, ["--no-python", "/usr/bin/python3", WORKERS / "burst.py"], workers_here=3))
    process.expect(0, 30)
    for stream in (process.out, process.err):
        lines = [line for line in stream.splitlines() if line.startswith("burst ")]
        assert len(lines) == 3 * 10_000
        assert set(map(len, lines)) == {len("burst 0 00000 ") + 90}, "no line is torn"
