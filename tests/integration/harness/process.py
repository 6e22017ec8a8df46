"""One program under test: output in files, every wait with a deadline."""
import ctypes
import os
import signal
import subprocess

from .waiting import TIME_SCALE, wait_until

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    """For the child between fork and exec: a killed pytest takes its programs along."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """Started at once, in its own session. `folder` receives <name>.out and <name>.err."""

    def __init__(self, arguments, folder, name, environment, cwd=None):
        self.name = name
        self.paths = {stream: os.path.join(folder, f"{name}.{stream}") for stream in ("out", "err")}
        with open(self.paths["out"], "ab") as out, open(self.paths["err"], "ab") as err:
            self.popen = subprocess.Popen([str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                          env=environment, cwd=cwd, start_new_session=True,
                                          preexec_fn=die_with_parent)
        self.pid = self.popen.pid

    def _text(self, stream):
        with open(self.paths[stream], encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def out(self):
        return self._text("out")

    @property
    def err(self):
        return self._text("err")

    @property
    def running(self):
        return self.popen.poll() is None

    def signal(self, number):
        if self.running:
            self.popen.send_signal(number)

    def wait(self, seconds=30.0):
        """The exit status, as a shell gives it (128 + signal)."""
        try:
            status = self.popen.wait(seconds * TIME_SCALE)
        except subprocess.TimeoutExpired:
            text = f"{self.name} still runs after {seconds * TIME_SCALE:.0f} s\n{self.describe()}"
            raise AssertionError(text) from None
        return 128 - status if status < 0 else status

    def expect(self, status, seconds=30.0):
        """Waits and asserts the exit status; a failure shows the output."""
        actual = self.wait(seconds)
        assert actual == status, f"{self.name}: exit status {actual}, expected {status}\n{self.describe()}"
        return self

    def wait_for_text(self, text, seconds=10.0, stream="err"):
        wait_until(lambda: text in self._text(stream) or not self.running, f"{self.name} says {text!r}", seconds)
        assert text in self._text(stream), f"{self.name} ended without saying {text!r}\n{self.describe()}"

    def describe(self):
        return f"--- {self.name} stdout\n{self.out[-4000:]}\n--- {self.name} stderr\n{self.err[-6000:]}"
