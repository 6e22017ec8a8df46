"""Training over several hosts: the result of one process, whatever the split and however the endpoint is written."""
import pytest

from harness.fixtures import Training, assert_same_curve, result_of
from harness.launching import PORT, launch_on
from harness.waiting import stays_true

EPOCHS = 30


def train(cluster, ddlaunch, training, workers, endpoint=None):
    agents = launch_on(cluster, ddlaunch, ["--no-python", *training.command], workers_per_host=workers,
                       endpoint=endpoint)
    for process in agents:
        process.expect(0, 90)
    return result_of("".join(process.out for process in agents))


@pytest.mark.parametrize("workers", [(4, 4), (3, 1)], ids=["4+4", "3+1"])
def test_loss_curve_is_that_of_one_process(cluster, ddlaunch, digits, reference, tmp_path, workers):
    hosts = cluster(2)
    training = Training(tmp_path, digits, epochs=EPOCHS)
    result = train(hosts, ddlaunch, training, workers)
    curve, alone = reference(epochs=EPOCHS)
    assert_same_curve(training.losses(), curve)
    assert result["ranks"] == sum(workers)
    assert result["accuracy"] >= 0.95
    assert result["loss"] == pytest.approx(alone["loss"], abs=1e-4)


@pytest.mark.parametrize("endpoint", [f"h0:{PORT}", f"10.77.0.1:{PORT}", f"[fd77::1]:{PORT}", f"h0-ib:{PORT}", "h0"],
                         ids=["name", "IPv4", "IPv6", "second interface", "default port"])
def test_endpoint_can_be_written_in_any_way(cluster, ddlaunch, digits, tmp_path, endpoint):
    training = Training(tmp_path, digits, epochs=2)
    result = train(cluster(2), ddlaunch, training, (2, 2), endpoint)
    assert result["ranks"] == 4


@pytest.mark.parametrize("endpoint", ["h0", "h0-ib", "h0-eth", "h0.cluster", "10.77.0.1"])
def test_own_name_that_means_loopback(cluster, ddlaunch, digits, tmp_path, endpoint):
    """Debian's installer maps the own host name to 127.0.1.1; the others map it to the real address."""
    hosts = cluster(2, debian_style=True)
    result = train(hosts, ddlaunch, Training(tmp_path, digits, epochs=2), (2, 2), f"{endpoint}:{PORT}")
    assert result["ranks"] == 4


def test_host_of_the_endpoint_may_start_last(cluster, ddlaunch, digits, tmp_path):
    hosts = cluster(2)
    training = Training(tmp_path, digits, epochs=2)
    command = [ddlaunch, "--nproc_per_node=2", "--nnodes=2", f"--rdzv_endpoint=h0:{PORT}", "--rdzv_backend=c10d",
               "--no-python", *training.command]
    late = hosts[1].run(command)
    stays_true(lambda: late.running, "a node without its coordinator keeps trying", 1.5)
    early = hosts[0].run(command)
    early.expect(0, 60)
    late.expect(0, 60)


def test_rank_0_is_where_the_endpoint_is(cluster, ddlaunch):
    hosts = cluster(3)
    program = ["--no-python", "/bin/sh", "-c", 'echo "rank $RANK group $GROUP_RANK on $(hostname) master $MASTER_ADDR"']
    agents = launch_on(hosts, ddlaunch, program, workers_per_host=[1, 2, 1], endpoint=f"h1:{PORT}")
    for process in agents:
        process.expect(0, 60)
    said = sorted("".join(process.out for process in agents).split("\n"))
    lines = [line for line in said if line.startswith("rank ")]
    assert len(lines) == 4
    assert [line.split()[5] for line in lines] == ["h1", "h1", "h0", "h2"]
    assert len({line.split()[7] for line in lines}) == 1


def test_static_backend(cluster, ddlaunch, digits, tmp_path):
    hosts = cluster(2)
    training = Training(tmp_path, digits, epochs=2)
    agents = [host.run([ddlaunch, "--nproc_per_node=2", "--nnodes=2", f"--node_rank={host.index}", "--master_addr=h0",
                        "--master_port=29511", "--no-python", *training.command]) for host in hosts]
    for process in agents:
        process.expect(0, 60)
    assert result_of(agents[0].out)["ranks"] == 4
