"""Fixtures for tests of the real launcher; the folders' conftest.py files import them all.

Programs come from the environment (set by CTest): DDLAUNCH_BIN, DIGITS_BIN, TEST_WORKER_BIN; by hand they are looked
for in build/. A test whose program is missing is skipped with the reason; CI counts a skip as a failure.
"""
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from . import namespaces, procfs
from .environment import clean_environment
from .process import Process

ROOT = Path(__file__).resolve().parents[3]
WORKERS = ROOT / "tests" / "integration" / "workers"
DIGITS_DATA = ROOT / "examples" / "digits" / "digits.csv"
DDP_SCRIPT = ROOT / "examples" / "digits" / "train_ddp.py"
PYTHON = "/usr/bin/python3"

def register_markers(config):
    config.addinivalue_line("markers", "release_only: measures the release build; means nothing with sanitizers")


def program(variable, default):
    path = Path(os.environ.get(variable) or ROOT / default)
    if not os.access(path, os.X_OK):
        pytest.skip(f"{path} is not built (set {variable})")
    return str(path)


@pytest.fixture(scope="session")
def ddlaunch():
    """Path of the launcher under test."""
    return program("DDLAUNCH_BIN", "build/ddlaunch")


@pytest.fixture(scope="session")
def digits():
    return program("DIGITS_BIN", "build/examples/digits/digits")


@pytest.fixture(scope="session", autouse=True)
def no_leftovers():
    procfs.kill_leftovers_of_dead_runs()


@pytest.fixture
def mark(request):
    """Text that every process of this test carries in its environment."""
    return f"{procfs.run_identity()}-{abs(hash(request.node.nodeid)):x}"


@pytest.fixture
def environment(mark):
    """A clean environment for programs under test."""
    return {**clean_environment(), procfs.MARK_VARIABLE: mark, procfs.RUN_VARIABLE: procfs.run_identity(), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def track(mark):
    """Remembers processes; afterwards ends them and all that carries the test's mark."""
    processes = []

    def remember(process):
        processes.append(process)
        return process

    yield remember
    procfs.kill_marked(mark)
    for process in processes:
        process.popen.wait()


@pytest.fixture
def run(tmp_path, environment, track):
    """run(command, env=…, name=…): starts a program on this machine and returns its Process."""
    count = iter(range(1000))

    def start(command, env=None, name=None, cwd=None):
        return track(Process(command, tmp_path, name or f"p{next(count)}", {**environment, **(env or {})},
                             cwd or tmp_path))

    return start


@pytest.fixture
def cluster(tmp_path, environment, track, request):
    """cluster(n): n hosts h0, h1, … joined by a network."""
    reason = namespaces.why_not()
    if reason:
        pytest.skip(reason)
    made = []

    def make(count, **options):
        made.append(namespaces.Cluster(count, tmp_path, environment, track, **options))
        return made[-1]

    yield make
    procfs.kill_marked(environment[procfs.MARK_VARIABLE])
    for one in made:
        one.close()


class Training:
    """Files and command line of one digits run: `digits` is the C++ program or a list that starts another one."""

    def __init__(self, folder, digits, name="run", **options):
        self.checkpoint = Path(folder) / f"{name}.checkpoint"
        self.loss_log = Path(folder) / f"{name}.loss"
        start = digits if isinstance(digits, list) else [digits]
        self.command = [*start, "--data", DIGITS_DATA, "--checkpoint", self.checkpoint, "--loss-log", self.loss_log]
        for option, value in options.items():
            self.command += ["--" + option.replace("_", "-"), str(value)]

    def losses(self):
        """{epoch: loss}; an epoch that was trained twice (a crash before its checkpoint) must come out the same."""
        curve = {}
        lines = self.loss_log.read_text().splitlines() if self.loss_log.exists() else []
        for line in lines:
            entry = json.loads(line)
            earlier = curve.setdefault(entry["epoch"], entry["loss"])
            assert abs(earlier - entry["loss"]) < 1e-4, f"epoch {entry['epoch']}: {earlier} and then {entry['loss']}"
        return curve

    def epochs_done(self):
        return max(self.losses(), default=0)


def result_of(text):
    """The numbers of the program's last line: accuracy=… loss=… ranks=…"""
    lines = [line for line in text.splitlines() if "accuracy=" in line]
    assert len(lines) == 1, f"one result line expected: {text[-2000:]}"
    words = lines[0][lines[0].index("accuracy="):].split()
    return {name: float(value) for name, _, value in (word.partition("=") for word in words)}


def assert_same_curve(actual, expected):
    assert actual.keys() == expected.keys()
    worst = max(abs(actual[epoch] - expected[epoch]) for epoch in expected)
    assert worst <= 1e-4, f"loss curves differ by {worst}"


class Reference:
    """What one process by itself reaches with the given options; computed once for each set of options."""

    def __init__(self, folder, start):
        self._folder = folder
        self._start = start
        self._known = {}

    def __call__(self, **options):
        key = tuple(sorted(options.items()))
        if key not in self._known:
            training = Training(self._folder, self._start, name=f"reference{len(self._known)}", **options)
            done = subprocess.run([str(c) for c in training.command], capture_output=True, text=True,
                                  env=clean_environment(), timeout=300, check=True)
            self._known[key] = (training.losses(), result_of(done.stdout))
        return self._known[key]


@pytest.fixture(scope="session")
def reference(digits, tmp_path_factory):
    """reference(epochs=…): ({epoch: loss}, result) of the C++ program in a single process."""
    return Reference(tmp_path_factory.mktemp("reference"), digits)


@pytest.fixture(params=[signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def stop_signal(request):
    return request.param


def need(tool):
    if shutil.which(tool) is None:
        pytest.skip(f"the program {tool} is missing")
