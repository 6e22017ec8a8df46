"""Hosts on one machine: network, host-name and mount namespaces, joined by bridges in a namespace of their own.

Nothing is visible outside: all interfaces live in namespaces that vanish with the processes that hold them, so any
number of test runs can work side by side, and a killed run leaves nothing (holders die with pytest).
"""
import os
import subprocess

from .process import Process, die_with_parent
from .procfs import MARK_VARIABLE
from .waiting import wait_until

NETWORKS = ("77", "78")  # eth0: 10.77.0.0/16 and fd77::/64, eth1: 10.78.0.0/16 and fd78::/64


def run_checked(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def why_not():
    """The reason why namespaces cannot be made here, or an empty text."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "nsenter", "unshare"):
        if not any(os.access(os.path.join(folder, tool), os.X_OK) for folder in os.get_exec_path()):
            return f"the program {tool} is missing (packages iproute2, util-linux)"
    tried = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], capture_output=True, text=True,
                           check=False)
    return "" if tried.returncode == 0 else f"namespaces are not permitted here: {tried.stderr.strip()}"


class Holder:
    """A sleeping process that keeps a set of namespaces alive."""

    def __init__(self, flags, environment):
        unmarked = {name: value for name, value in environment.items() if name != MARK_VARIABLE}  # not under test
        self.process = subprocess.Popen(["unshare", *flags, "sleep", "infinity"], env=unmarked,
                                        stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        self.pid = self.process.pid
        wait_until(lambda: self._sleeps(), "namespaces are made")

    def _sleeps(self):
        with open(f"/proc/{self.pid}/comm", encoding="ascii") as file:
            return file.read().strip() == "sleep"

    def inside(self, *command, mount=False):
        flags = ["--net", "--uts"] if os.path.exists(f"/proc/{self.pid}/ns/uts") else ["--net"]
        return ["nsenter", "--target", str(self.pid), *flags, *(["--mount"] if mount else []), "--", *command]

    def close(self):
        self.process.kill()
        self.process.wait()


class Host:
    """One machine of a cluster: h0, h1, … with its own addresses, name and hosts file."""

    def __init__(self, cluster, index):
        self.cluster = cluster
        self.index = index
        self.name = f"h{index}"
        self.ipv4 = f"10.77.0.{index + 1}"
        self.ipv6 = f"fd77::{index + 1}"
        self.second_ipv4 = f"10.78.0.{index + 1}"
        self._started = 0
        self._hosts_file = os.path.join(cluster.folder, f"{self.name}.hosts")
        self.holder = Holder(["--net", "--uts", "--mount"], cluster.environment)
        self._configure()

    def _configure(self):
        inside = self.holder.inside
        for number, network in enumerate(NETWORKS):
            cable = f"port{self.index}"
            run_checked(*self.cluster.switch.inside("ip", "link", "add", f"{cable}n{number}", "type", "veth", "peer",
                                                    "name", f"eth{number}", "netns", self.holder.pid))
            run_checked(*self.cluster.switch.inside("ip", "link", "set", f"{cable}n{number}", "master", f"br{number}",
                                                    "up"))
            run_checked(*inside("ip", "addr", "add", f"10.{network}.0.{self.index + 1}/16", "dev", f"eth{number}"))
            run_checked(*inside("ip", "-6", "addr", "add", f"fd{network}::{self.index + 1}/64", "dev", f"eth{number}",
                                "nodad"))
            run_checked(*inside("ip", "link", "set", f"eth{number}", "up"))
        run_checked(*inside("ip", "link", "set", "lo", "up"))
        run_checked(*inside("hostname", self.name))
        self.set_hosts(self.cluster.hosts_text(self.index))
        run_checked(*inside("mount", "--bind", self._hosts_file, "/etc/hosts", mount=True))

    def set_hosts(self, text):
        """Replaces the host's /etc/hosts at once (in place: the file is mounted)."""
        with open(self._hosts_file, "w", encoding="ascii") as file:
            file.write(text)

    def run(self, command, env=None, name=None):
        """Starts a program on this host and returns it."""
        self._started += 1
        variables = {**self.cluster.environment, **(env or {})}
        arguments = self.holder.inside(*[str(c) for c in command], mount=True)
        arguments.insert(1, f"--wd={self.cluster.folder}")
        return self.cluster.track(Process(arguments, self.cluster.folder, name or f"{self.name}.{self._started}",
                                          variables))

    def link(self, state):
        """Pulls (down) or plugs (up) the first cable at the switch's end."""
        run_checked(*self.cluster.switch.inside("ip", "link", "set", f"port{self.index}n0", state))


class Cluster:
    """`count` hosts. debian_style: each host's own name means 127.0.1.1 to itself, as Debian's installer sets it up."""

    def __init__(self, count, folder, environment, track, debian_style=False):
        self.folder = str(folder)
        self.environment = environment
        self.track = track
        self.count = count
        self.debian_style = debian_style
        self.hosts = []
        self.switch = Holder(["--net", "--uts"], environment)
        try:
            for number in range(len(NETWORKS)):
                run_checked(*self.switch.inside("ip", "link", "add", f"br{number}", "type", "bridge"))
                run_checked(*self.switch.inside("ip", "link", "set", f"br{number}", "up"))
            for index in range(count):
                self.hosts.append(Host(self, index))
        except BaseException:
            self.close()
            raise

    def hosts_text(self, own):
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        for index in range(self.count):
            address = "127.0.1.1" if self.debian_style and index == own else f"10.77.0.{index + 1}"
            lines += [f"{address} h{index}", f"10.78.0.{index + 1} h{index}-ib"]
            if self.debian_style:
                lines.append(f"10.77.0.{index + 1} h{index}.cluster h{index}-eth")
        return "\n".join(lines) + "\n"

    def __getitem__(self, index):
        return self.hosts[index]

    def __iter__(self):
        return iter(self.hosts)

    def close(self):
        for holder in [host.holder for host in self.hosts] + [self.switch]:
            holder.close()
