"""A real etcd of three members on loopback (package etcd-server), with or without TLS."""
import base64
import json
import os
import signal
import socket
import ssl
import subprocess
import urllib.request

from .process import die_with_parent
from .waiting import wait_until

HEARTBEAT, ELECTION = 50, 250  # of etcd itself, in milliseconds
TTL = 2                        # seconds: the shortest lease that etcd grants with these


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Certificates:
    """An authority and one certificate for both sides, made by openssl."""

    def __init__(self, folder):
        self.authority, self.certificate, self.key = (folder / name for name in ("ca.pem", "node.pem", "node.key"))
        authority_key, request, names = (folder / name for name in ("ca.key", "node.csr", "names"))
        names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n")
        new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self._openssl(*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", authority_key, "-out",
                      self.authority)
        self._openssl(*new, "-subj", "/CN=node", "-keyout", self.key, "-out", request)
        self._openssl("x509", "-req", "-days", "2", "-in", request, "-CA", self.authority, "-CAkey", authority_key,
                      "-CAcreateserial", "-extfile", names, "-out", self.certificate)

    @staticmethod
    def _openssl(*arguments):
        subprocess.run(["openssl", *[str(a) for a in arguments]], check=True, capture_output=True, timeout=60)

    def context(self):
        context = ssl.create_default_context(cafile=self.authority)
        context.load_cert_chain(self.certificate, self.key)
        return context


class Etcd:
    """Started at once; ready when all members know a leader."""

    def __init__(self, folder, environment, certificates=None):
        self.certificates = certificates
        self.scheme = "https" if certificates else "http"
        ports = free_ports(6)
        self.ports = ports[:3]
        self.members = []
        peers = [f"http://127.0.0.1:{port}" for port in ports[3:]]
        cluster = ",".join(f"m{i}={peer}" for i, peer in enumerate(peers))
        for i, peer in enumerate(peers):
            client = f"{self.scheme}://127.0.0.1:{ports[i]}"
            command = ["etcd", "--name", f"m{i}", "--data-dir", folder / f"m{i}", "--listen-client-urls", client,
                       "--advertise-client-urls", client, "--listen-peer-urls", peer,
                       "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
                       "--heartbeat-interval", HEARTBEAT, "--election-timeout", ELECTION]
            if certificates:
                command += ["--cert-file", certificates.certificate, "--key-file", certificates.key,
                            "--trusted-ca-file", certificates.authority, "--client-cert-auth"]
            with open(folder / f"m{i}.log", "wb") as log:
                self.members.append(subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log,
                                                     stderr=log, env=environment, preexec_fn=die_with_parent))
        wait_until(lambda: all(self._is_healthy(i) for i in range(3)), "etcd has a leader", 30)

    def _is_healthy(self, member):
        try:
            return json.loads(self._ask(member, "/health"))["health"] == "true"
        except OSError:
            return False

    def _ask(self, member, path, body=None):
        context = self.certificates.context() if self.certificates else None
        url = f"{self.scheme}://127.0.0.1:{self.ports[member]}{path}"
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=5, context=context) as reply:
            return reply.read()

    def post(self, path, member=0, **body):
        return json.loads(self._ask(member, path, json.dumps(body).encode()))

    def servers(self, first=0):
        """What agents are told; each may begin with another member."""
        return ",".join(f"127.0.0.1:{self.ports[(first + i) % 3]}" for i in range(3))

    def keys(self, prefix):
        """{key: value} of all that begins with the prefix."""
        found = self.post("/v3/kv/range", key=encoded(prefix), range_end=encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1)))
        return {base64.b64decode(pair["key"]).decode(): base64.b64decode(pair.get("value", "")).decode()
                for pair in found.get("kvs", [])}

    def delete(self, key):
        self.post("/v3/kv/deleterange", key=encoded(key))

    def leading_member(self):
        status = [self.post("/v3/maintenance/status", member=i) for i in range(3)]
        return [one["header"]["member_id"] for one in status].index(status[0]["leader"])

    def enable_users(self, password):
        self.post("/v3/auth/user/add", name="root", password=password)
        self.post("/v3/auth/user/grant", user="root", role="root")
        self.post("/v3/auth/enable")

    def signal(self, number):
        for member in self.members:
            os.kill(member.pid, number)

    def kill(self, member):
        self.members[member].send_signal(signal.SIGKILL)

    def close(self):
        for member in self.members:
            member.kill()
            member.wait()
