"""Bad input: one clear line, exit 2, no trace of any language, nothing started. And --dry-run, which starts nothing."""
import pytest

from harness.launching import no_trace
from harness.procfs import assert_nothing_left

TRUE = ["--no-python", "/bin/true"]

# (words after the program's name, what the line must name)
BAD = [
    (["--nnodes=0", *TRUE], "--nnodes"),
    (["--nnodes=2:1", *TRUE], "--nnodes"),
    (["--nnodes=a", *TRUE], "--nnodes"),
    (["--nnodes=1:2:3", *TRUE], "--nnodes"),
    (["--nproc_per_node=0", *TRUE], "--nproc"),
    (["--nproc-per-node=-1", *TRUE], "--nproc"),
    (["--nproc-per-node=many", *TRUE], "--nproc"),
    (["--max_restarts=-1", *TRUE], "--max"),
    (["--max-restarts=x", *TRUE], "--max"),
    (["--max-restarts=3/soon", *TRUE], "30m"),
    (["--no-restart-exit-codes=0", *TRUE], "--no-restart-exit-codes"),
    (["--forward-signals=HUP", *TRUE], "--signals-to-handle SIGTERM,SIGINT,SIGQUIT"),
    (["--scale-up=soon", *TRUE], "at-checkpoint"),
    (["--no-such-flag", *TRUE], "--no-such-flag"),
    (["--max-restart-s=1", *TRUE], "--max-restarts"),
    (["--nprocpernode=1", *TRUE], "--nproc-per-node"),
    (["--standalone", "--nnodes=2", *TRUE], "--standalone"),
    (["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29400", *TRUE], "localhost"),
    (["--nnodes=2", "--rdzv-backend=c10d", *TRUE], "--rdzv-endpoint"),
    (["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h0:99999", *TRUE], "99999"),
    (["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h0:", *TRUE], "--rdzv-endpoint"),
    (["--nnodes=2", "--rdzv-endpoint=h0,h1,h0", *TRUE], "twice"),
    (["--nnodes=2", "--rdzv-backend=etcd", "--rdzv-endpoint=e1", *TRUE], "--rdzv-id"),
    (["--nnodes=2", "--rdzv-backend=zookeeper", "--rdzv-endpoint=h0", *TRUE], "zookeeper"),
    (["--rdzv-conf=join_timeout", *TRUE], "join_timeout"),
    (["--rdzv-conf=join_timeout=soon", *TRUE], "join_timeout"),
    (["--rdzv-conf=join_timout=5", *TRUE], "join_timeout"),
    (["--master-port=0x50", "--nnodes=2", "--node-rank=0", *TRUE], "--master-port"),
    (["--nnodes=2", "--node-rank=2", "--master-addr=10.0.0.1", *TRUE], "--node-rank"),
    (["-r", "9", *TRUE], "9"),
    (["-t", "0:1,x:2", *TRUE], '"x"'),
    (["--local-ranks-filter=0,a", *TRUE], "--local-ranks-filter"),
    (["--signals-to-handle=SIGNONE", *TRUE], "SIGNONE"),
    (["--shutdown-timeout=-3", *TRUE], "--shutdown-timeout"),
    (["--worker-store=nobody", *TRUE], "--worker-store"),
    (["--store-port=70000", *TRUE], "--store-port"),
    (["--events=/no/such/folder/events", *TRUE], "--events"),
    (["--result-file=/no/such/folder/result", *TRUE], "--result-file"),
    (["--nnodes=2", "--master-addr=192.0.2.1", *TRUE], "--node-rank (1)"),
    (["--no-python", "-m", "json"], "-m"),
    ([], "program"),
    (["--nproc_per_node=2"], "program"),
    (["--no-python", "/no/such/program"], "/no/such/program"),
    (["no_such_script.py"], "no_such_script.py"),
    (["--nproc_per_node"], "--nproc"),
]


@pytest.mark.parametrize("words, named", BAD, ids=[" ".join(words) or "nothing" for words, _ in BAD])
def test_one_line_and_status_2(run, ddlaunch, mark, words, named):
    process = run([ddlaunch, *words]).expect(2, 10)
    lines = process.err.strip().splitlines()
    assert len(lines) == 1, process.describe()
    assert named in lines[0], process.describe()
    assert process.out == ""
    no_trace(process)
    assert_nothing_left(mark)


@pytest.mark.parametrize("name, value", [("PET_NNODES", "x"), ("PET_STANDALONE", "maybe"), ("PET_MAX_RESTARTS", "abc"),
                                         ("PET_NPROC_PER_NODE", "0")])
def test_bad_default_from_the_environment(run, ddlaunch, name, value):
    process = run([ddlaunch, *TRUE], env={name: value}).expect(2, 10)
    assert name in process.err and value in process.err, process.describe()
    assert len(process.err.strip().splitlines()) == 1, process.describe()


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_boolean_default_from_the_environment(run, ddlaunch, value):
    run([ddlaunch, *TRUE], env={"PET_STANDALONE": value, "PET_NPROC_PER_NODE": "2"}).expect(0, 10)


def test_harmless_flags_are_one_line(run, ddlaunch):
    """What scripts for torchrun carry along without an effect here is accepted, and said once."""
    words = ["--monitor_interval=1", "--start_method=fork", "--node_rank=0", *TRUE]
    process = run([ddlaunch, *words]).expect(0, 10)
    lines = [line for line in process.err.splitlines() if line]
    assert len(lines) == 1 and "--monitor" in lines[0] and "--start-method" in lines[0], process.describe()
    assert run([ddlaunch, "-q", *words]).expect(0, 10).err == ""
    assert run([ddlaunch, "--strict", *words]).wait(10) == 2


def test_dry_run_shows_everything_and_starts_nothing(run, ddlaunch, tmp_path, mark):
    process = run([ddlaunch, "--dry-run", "--nproc_per_node=2", "--max_restarts=3", "--no-python", "/bin/touch",
                   tmp_path / "started"])
    process.expect(0, 10)
    assert not (tmp_path / "started").exists()
    for word in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_MAX_RESTARTS",
                 "DDLAUNCH_GENERATION", "/bin/touch"):
        assert word in process.out, process.describe()
    assert_nothing_left(mark)


def test_dry_run_names_the_source_of_each_value(run, ddlaunch):
    process = run([ddlaunch, "--dry-run", "--max-restarts=3", *TRUE]).expect(0, 10)
    lines = [line.strip() for line in process.out.splitlines()]
    assert any(line.startswith("TORCHELASTIC_MAX_RESTARTS=3") and "--max-restarts" in line for line in lines), lines
    variables = lines[next(i for i, line in enumerate(lines) if line.startswith("worker 0")) + 1:]
    assert all(line.endswith(")") and "(" in line for line in variables if line), variables


def test_dry_run_needs_no_peers(run, ddlaunch):
    run([ddlaunch, "--dry-run", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=nowhere.invalid:29400",
         *TRUE]).expect(0, 5)


def test_version_and_help(run, ddlaunch):
    assert "0.1" in run([ddlaunch, "--version"]).expect(0, 5).out
    text = run([ddlaunch, "--help"]).expect(0, 5).out
    for flag in ("--nnodes", "--nproc-per-node", "--rdzv-endpoint", "--max-restarts", "--dry-run"):
        assert flag in text


def test_words_after_the_program_are_its_own(run, ddlaunch):
    words = ["--nnodes", "5", "--", "-x", "--standalone"]
    process = run([ddlaunch, "--no-python", "/bin/echo", *words]).expect(0, 10)
    assert process.out.strip() == " ".join(words)


def test_local_rank_macro(run, ddlaunch):
    process = run([ddlaunch, "--nproc_per_node=3", "--no-python", "/bin/echo", "part-${local_rank}.bin"]).expect(0, 10)
    assert sorted(process.out.split()) == ["part-0.bin", "part-1.bin", "part-2.bin"]
