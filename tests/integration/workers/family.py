"""A worker whose descendants try to outlive it.

  family.py BEHAVIOUR… [--fail-once=FILE] [--finish]

child: a plain child. setsid: a child in a session of its own. double-fork: a daemon (session left, parent gone).
hidden: a daemon that also wiped its environment. grandchildren: a child that has children. short-lived: orphans that end at once, to be reaped by whoever adopts them.
All sleep; each says "sleeps BEHAVIOUR". --fail-once: round 0 notes the pids in FILE and rank 1 fails; round 1 counts
those of them that still live, into FILE.seen. --finish: the worker itself exits 0.
"""
import os
import sys
import time

arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))


def say(text):
    os.write(1, f"{text}\n".encode())


def sleep_for_long():
    while True:
        time.sleep(60)


def note():
    if "fail-once" in options:
        with open(options["fail-once"], "a", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")


def forked(action):
    if os.fork() == 0:
        action()
        os._exit(0)


def leaf(behaviour):
    note()
    say(f"sleeps {behaviour}")
    sleep_for_long()


def own_session(behaviour):
    os.setsid()
    leaf(behaviour)


def daemon(behaviour):
    os.setsid()
    forked(lambda: leaf(behaviour))


def generations(behaviour):
    forked(lambda: own_session(behaviour))
    note()
    sleep_for_long()


def hidden(behaviour):
    os.setsid()
    forked(lambda: (say(f"sleeps {behaviour} as pid {os.getpid()}"), os.execve("/bin/sleep", ["sleep", "600"], {})))


def orphans(behaviour):
    for _ in range(20):
        forked(lambda: forked(lambda: time.sleep(0.05)))
    say(f"sleeps {behaviour}")


ACTIONS = {"child": leaf, "setsid": own_session, "double-fork": daemon, "grandchildren": generations,
           "hidden": hidden, "short-lived": orphans}


def living(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_lines(path, count):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if os.path.exists(path) and len(open(path, encoding="ascii").read().split()) >= count:
            return
        time.sleep(0.01)
    sys.exit(f"{path} never had {count} lines")


if "fail-once" in options and os.environ["TORCHELASTIC_RESTART_COUNT"] == "1":
    with open(options["fail-once"], encoding="ascii") as noted:
        left = sum(living(pid) for pid in noted.read().split())
    with open(options["fail-once"] + ".seen", "a", encoding="ascii") as seen:
        seen.write(f"{left}\n")
    sys.exit(0)

for chosen in arguments:
    forked(lambda chosen=chosen: ACTIONS[chosen](chosen))
if "fail-once" in options and os.environ["RANK"] == "1":
    # Both ranks' leaves, and the child that has children: one line each.
    wait_for_lines(options["fail-once"], 2 * (len(arguments) + ("grandchildren" in arguments)))
    sys.exit(3)
if "finish" in options:
    time.sleep(0.5)  # the helper is in its own session by then
    sys.exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        sleep_for_long()
