"""The worker environment of ddlaunch against that of a real torchrun, for the same command lines.

Every variable must be equal but those listed below, each with its reason. TORCH213_PYTHON names a Python with PyTorch
2.13 whose torchrun lies beside it; DDLAUNCH_BIN the launcher.
"""
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

PYTHON = os.environ.get("TORCH213_PYTHON", "")
ROOT = Path(__file__).resolve().parents[2]
DDLAUNCH = os.environ.get("DDLAUNCH_BIN", str(ROOT / "build" / "ddlaunch"))
LIMIT_S = 60

# Left out of the comparison.
DIFFERENT_ON_PURPOSE = {
    "DDLAUNCH_GENERATION": "ours",
    "DDLAUNCH_SPAWN_ID": "ours: marks the worker's family",
    "TORCHELASTIC_ERROR_FILE": "a path in a directory with a random name, on both sides",
}
# Left out where the command line doesn't fix them.
FREE_UNLESS_FIXED = {
    "MASTER_ADDR": "torchrun: the host's name or localhost; ddlaunch: the numeric address",
    "MASTER_PORT": "any free port, on both sides",
    "TORCHELASTIC_RUN_ID": "made up, on both sides",
}

DUMP = """\
import json, os, sys
text = json.dumps({"arguments": sys.argv[1:], "environment": dict(os.environ)})
open(os.path.join(os.environ["DUMP_TO"], os.environ["RANK"]), "w").write(text)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Case:
    def __init__(self, name, flags, program=("{dump}",), variables=None, fixed=(), workers=1):
        self.name, self.flags, self.program = name, flags, program
        self.variables, self.fixed, self.workers = variables or {}, fixed, workers


CASES = [
    Case("standalone", ["--standalone", "--nproc_per_node=2"], workers=2),
    Case("plain", [], ("{dump}", "--lr", "1", "--", "--nnodes", "5")),
    Case("role_and_restarts", ["--nproc-per-node", "2", "--role", "trainer", "--max_restarts=3"], workers=2),
    Case("c10d_with_id", ["--nnodes=1", "--rdzv-backend=c10d", "--rdzv_endpoint=localhost:0", "--rdzv_id=job7"],
         fixed=("TORCHELASTIC_RUN_ID",)),
    Case("elastic_range_of_one", ["--nnodes=1:1", "--rdzv_backend", "c10d", "--rdzv_endpoint", "127.0.0.1:0"]),
    Case("fixed_master", ["--nnodes", "1", "--node_rank", "0", "--master_addr", "127.0.0.1", "--master_port", "{port}",
                          "--nproc_per_node", "2"], workers=2, fixed=("MASTER_ADDR", "MASTER_PORT")),
    Case("variables", [], variables={"PET_NPROC_PER_NODE": "2", "PET_MAX_RESTARTS": "1", "PET_STANDALONE": "1"},
         workers=2),
    Case("inherited_threads", ["--nproc_per_node=2"], variables={"OMP_NUM_THREADS": "3"}, workers=2),
    Case("inherited_nccl", ["--standalone"], variables={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"}),
    Case("no_python_and_macro", ["--no_python", "--nproc_per_node=2"],
         ("{python}", "{dump}", "--id=${local_rank}", "${other}"), workers=2),
    Case("module", ["-m"], ("dump", "a b"), variables={"PYTHONPATH": "{folder}"}),
    Case("virtual_local_rank", ["--virtual-local-rank", "--nproc_per_node=2"],
         variables={"CUDA_VISIBLE_DEVICES": "4,5"}, workers=2),
    Case("signals", ["--signals-to-handle", "SIGTERM,SIGUSR1"]),
    Case("workers_host_the_store", ["--standalone"], variables={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}),
    Case("abbreviated", ["--standa", "--redirect", "0"]),
]


def run(launcher, case, folder, side):
    """rank -> {"arguments", "environment"} as the workers saw them."""
    target = folder / side
    target.mkdir()
    known = {"{dump}": str(folder / "dump.py"), "{python}": PYTHON, "{folder}": str(folder), "{port}": free_port()}
    case_port = folder / "port"  # the same for both sides
    if case_port.exists():
        known["{port}"] = case_port.read_text()
    case_port.write_text(known["{port}"])
    words = [known.get(word, word) for word in [*case.flags, *case.program]]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "PYTHON_EXEC": PYTHON}
    environment.update({name: known.get(value, value) for name, value in case.variables.items()})
    environment["DUMP_TO"] = str(folder / "dumped")
    dumped = folder / "dumped"
    dumped.mkdir()
    done = subprocess.run([*launcher, *words], env=environment, cwd=folder, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    dumped.rename(target / "dumped")
    return {int(file.name): json.loads(file.read_text()) for file in (target / "dumped").iterdir()}


def compared(environment, case):
    left_out = set(DIFFERENT_ON_PURPOSE) | (set(FREE_UNLESS_FIXED) - set(case.fixed))
    return {name: value for name, value in environment.items() if name not in left_out}


@pytest.mark.skipif(not PYTHON, reason="TORCH213_PYTHON is not set")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_environment(case, tmp_path):
    (tmp_path / "dump.py").write_text(DUMP)
    theirs = run([str(Path(PYTHON).parent / "torchrun")], case, tmp_path, "torchrun")
    ours = run([DDLAUNCH], case, tmp_path, "ddlaunch")
    assert sorted(theirs) == sorted(ours) == list(range(case.workers))
    for rank in ours:
        assert ours[rank]["arguments"] == theirs[rank]["arguments"]
        assert compared(ours[rank]["environment"], case) == compared(theirs[rank]["environment"], case)
        missing = set(theirs[rank]["environment"]) - set(ours[rank]["environment"])
        assert not missing, "variables that torchrun's workers have and ours lack"
