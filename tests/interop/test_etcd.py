"""The election with a real etcd of three members, without a job: who leads, how soon after a fault, and who may not."""
import json
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from harness.etcd import TTL, Certificates, Etcd
from harness.fixtures import need, program
from harness.process import die_with_parent
from harness.waiting import TIME_SCALE, stays_true, wait_until


class Probe:
    """One candidate (etcd_probe.cpp). Its lines begin with the time of CLOCK_BOOTTIME."""

    def __init__(self, path, folder, environment, job, node, servers, *options):
        self.node = node
        self._out = folder / f"{job}-{node}.out"
        with open(self._out, "wb") as out:
            self.popen = subprocess.Popen([path, job, node, str(TTL), servers, *options], stdin=subprocess.PIPE,
                                          stdout=out, stderr=out, env=environment, preexec_fn=die_with_parent)

    def say(self, command):
        self.popen.stdin.write(command.encode() + b"\n")
        self.popen.stdin.flush()

    @property
    def text(self):
        return self._out.read_text()

    def lines(self, pattern):
        """[(time, match)] of the lines that match."""
        found = [(line.partition(" ")[0], re.search(pattern, line)) for line in self.text.splitlines()]
        return [(float(stamp), match) for stamp, match in found if match]

    def wait_for(self, pattern, seconds=10, count=1):
        wait_until(lambda: len(self.lines(pattern)) >= count, f"{self.node}: {pattern!r} in\n{self.text}", seconds)
        return self.lines(pattern)[count - 1]

    def signal(self, number):
        self.popen.send_signal(number)


@pytest.fixture(scope="module")
def shared_etcd(tmp_path_factory):
    need("etcd")
    made = Etcd(tmp_path_factory.mktemp("etcd"), None)
    yield made
    made.close()


@pytest.fixture
def own_etcd(tmp_path, environment):
    need("etcd")
    made = []

    def make(**options):
        made.append(Etcd(tmp_path, environment, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def start(tmp_path, environment, request):
    """start(etcd, node, options…): a candidate; those of one test are of one job."""
    path = program("ETCD_PROBE_BIN", "build/tests/interop/etcd_probe")
    module = program("ETCD_MODULE", "build/ddlaunch-etcd.so")
    variables = {**environment, "DDLAUNCH_MODULE_DIR": str(Path(module).parent)}
    started = []

    def one(etcd, node, *options, first=0):
        started.append(Probe(path, tmp_path, variables, request.node.name, node, etcd.servers(first), *options))
        return started[-1]

    yield one
    for probe in started:
        probe.popen.kill()
        probe.popen.wait()


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def three(start, etcd):
    """(the leader, the others), each at another member of etcd, with one round agreed on."""
    probes = [start(etcd, f"n{i}", first=i) for i in range(3)]
    for probe in probes:
        probe.wait_for("elected|follow")
    leaders = [probe for probe in probes if probe.lines("elected")]
    assert len(leaders) == 1, [probe.text for probe in probes]
    leaders[0].say("commit 1")
    leaders[0].wait_for("round 1 written")
    return leaders[0], [probe for probe in probes if probe is not leaders[0]]


def new_leader(others, seconds):
    wait_until(lambda: any(probe.lines("elected") for probe in others),
               "a new leader: " + "\n".join(probe.text for probe in others), seconds)
    found = [probe for probe in others if probe.lines("elected")]
    assert len(found) == 1
    return found[0]


def term_of(probe, pattern):
    return int(probe.lines(pattern + r" term=(\d+)")[-1][1].group(1))


def test_one_leads_and_the_others_know_where(shared_etcd, start):
    leader, others = three(start, shared_etcd)
    for other in others:
        _, line = other.wait_for(r"follow term=(\d+) node=(\w+) at=(\S+)")
        assert line.groups() == (str(term_of(leader, "elected")), leader.node, "192.0.2.1:4711")
    stays_true(lambda: len(leader.lines("elected|lost")) == 1, "the leader leads", 1.5 * TTL)


def test_leader_killed_and_its_lease_ended_by_a_majority(shared_etcd, start, capsys):
    leader, others = three(start, shared_etcd)
    leader.signal(signal.SIGKILL)
    killed = now()
    for other in others:
        other.say("gone 3")
    successor = new_leader(others, 2)
    when, line = successor.lines(r"elected .* last=(\S+)")[0]
    with capsys.disabled():
        print(f"\n    leader killed, lease ended: {1000 * (when - killed):.0f} ms to the next")
    assert line.group(1) == "1/3", "it knows the last round"
    assert term_of(successor, "elected") > term_of(leader, "elected")
    assert when - killed < 0.3 * TIME_SCALE
    other = next(probe for probe in others if probe is not successor)
    other.wait_for(f"follow term={term_of(successor, 'elected')} node={successor.node}")


def test_half_of_the_members_end_no_lease(shared_etcd, start):
    leader, others = three(start, shared_etcd)
    for other in others:
        other.say("gone 4")
    stays_true(lambda: not leader.lines("lost"), "two of four do not suffice", 1)
    others[0].say("reached")
    others[0].say("gone 4")
    stays_true(lambda: not leader.lines("lost"), "nobody votes twice", 0.5)
    others[1].say("reached")
    wait_until(lambda: len([key for key in shared_etcd.keys("/ddlaunch/test_half_of_the_members_end_no_lease/")
                            if "/ended/" in key]) == 1, "a vote is taken back")


def test_paused_leader_is_replaced_and_learns_it(shared_etcd, start, capsys):
    leader, others = three(start, shared_etcd)
    leader.signal(signal.SIGSTOP)
    paused = now()
    leader.say("commit 9")
    successor = new_leader(others, TTL + 3)
    when = successor.lines("elected")[0][0]
    with capsys.disabled():
        print(f"\n    leader paused, lease of {TTL} s: {1000 * (when - paused):.0f} ms to the next")
    assert when - paused < (TTL + 1.5) * TIME_SCALE
    leader.signal(signal.SIGCONT)
    leader.wait_for("lost")
    leader.wait_for("round 9 refused")
    leader.wait_for(f"follow term={term_of(successor, 'elected')}")


def test_stale_leader_cannot_write_a_round(shared_etcd, start):
    """It is paused for less than its lease, so it still believes in it when it goes on."""
    leader, others = three(start, shared_etcd)
    folder = "/ddlaunch/test_stale_leader_cannot_write_a_round/"
    leader.signal(signal.SIGSTOP)
    leader.say("commit 9")
    shared_etcd.delete(folder + "leader")
    successor = new_leader(others, 1)
    leader.signal(signal.SIGCONT)
    leader.wait_for("round 9 refused")
    leader.wait_for("lost")
    assert json.loads(shared_etcd.keys(folder)[folder + "round"])["counter"] == 1
    successor.say("commit 2")
    successor.wait_for("round 2 written")


def test_leaving_leaves_nothing(shared_etcd, start):
    leader, others = three(start, shared_etcd)
    leader.say("leave")
    assert leader.popen.wait(5) == 0
    successor = new_leader(others, 1)
    assert " last=none" in successor.text, "the job was over"
    for probe in others:
        probe.say("leave")
        assert probe.popen.wait(5) == 0
    assert shared_etcd.keys("/ddlaunch/test_leaving_leaves_nothing/") == {}


def test_standing_down_lets_another_lead(shared_etcd, start):
    leader, others = three(start, shared_etcd)
    leader.say("stand-down")
    successor = new_leader(others, 1)
    assert " last=1/3" in successor.text
    leader.wait_for(f"follow term={term_of(successor, 'elected')}")
    assert len(leader.lines("elected")) == 1


def test_member_killed_with_the_leader(own_etcd, start, capsys):
    etcd = own_etcd()
    leader, others = three(start, etcd)
    etcd.kill(etcd.leading_member())
    leader.signal(signal.SIGKILL)
    killed = now()
    successor = new_leader(others, 2 * TTL + 4)
    when = successor.lines("elected")[0][0]
    with capsys.disabled():
        print(f"\n    leader and etcd's leading member killed: {1000 * (when - killed):.0f} ms to the next")
    assert when - killed < (2 * TTL + 1) * TIME_SCALE
    assert " last=1/3" in successor.text
    stays_true(lambda: not successor.lines("lost"), "two members suffice", TTL)


def test_silent_etcd_is_waited_for(own_etcd, start):
    etcd = own_etcd()
    leader, others = three(start, etcd)
    etcd.signal(signal.SIGSTOP)
    leader.wait_for("lost its lease in etcd could not be renewed in time", 2 * TTL + 1)
    leader.wait_for("say etcd at .* trying again")
    assert not any(probe.lines("elected") for probe in others)
    etcd.signal(signal.SIGCONT)
    wait_until(lambda: sum(len(probe.lines("elected")) for probe in [leader, *others]) == 2, "a leader again", 10)
    leader.wait_for("say etcd at .* answers again")
    assert all(probe.popen.poll() is None for probe in [leader, *others])


def test_users_and_tokens(own_etcd, start):
    etcd = own_etcd()
    etcd.enable_users("pass word")
    leader = start(etcd, "n0", "user=root", "password=pass word")
    leader.wait_for("elected")
    stranger = start(etcd, "n1", "user=root", "password=wrong")
    nobody = start(etcd, "n2")
    stranger.wait_for("say .* user root: .*authentication failed")
    nobody.wait_for("say .* user name is empty")
    token = etcd.post("/v3/auth/authenticate", name="root", password="pass word")["token"]
    assert token
    leader.say("commit 1")
    leader.wait_for("round 1 written")


def restart_users(etcd):
    """Turning users off and on makes every token invalid."""
    token = etcd.post("/v3/auth/authenticate", name="root", password="x")["token"]
    url = f"http://127.0.0.1:{etcd.ports[0]}/v3/auth/disable"
    urllib.request.urlopen(urllib.request.Request(url, b"{}", {"Authorization": token}), timeout=5).close()
    etcd.post("/v3/auth/enable")


def test_token_that_became_invalid(own_etcd, start):
    etcd = own_etcd()
    etcd.enable_users("x")
    leader = start(etcd, "n0", "user=root", "password=x")
    leader.wait_for("elected")
    restart_users(etcd)
    stays_true(lambda: not leader.lines("lost"), "it signs in anew", 2 * TTL)
    leader.say("commit 1")
    leader.wait_for("round 1 written")
    assert "say" not in leader.text


def test_tls(own_etcd, start, tmp_path):
    need("openssl")
    certificates = Certificates(tmp_path)
    etcd = own_etcd(certificates=certificates)
    options = (f"cacert={certificates.authority}", f"cert={certificates.certificate}", f"key={certificates.key}")
    leader = start(etcd, "n0", *options)
    leader.wait_for("elected")
    start(etcd, "n1", *options, first=1).wait_for("follow .* node=n0")
    start(etcd, "n2", options[0]).wait_for("say .* trying again")  # without a certificate of its own
