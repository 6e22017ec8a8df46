"""A console that nobody reads (less, Ctrl-S, a full pipe) holds workers up, never the agent."""
import os
import signal
import threading
import time

from harness.launching import agent, wait_for_workers
from harness.procfs import assert_nothing_left
from harness.waiting import wait_until

LINES = 60_000  # about 1.3 MB: more than the pipes and the agent keep
FLOOD = f'import sys\nfor i in range({LINES}): sys.stderr.write(f"line number {{i:08}}\\n")\n'
DEAF_FLOOD = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nimport sys\nwhile True: sys.stderr.write('x' * 99 + '\\n')\n"
STORE = '''
import os, socket, struct, time


def ask(data, size):
    with socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 3) as s:
        s.settimeout(3)
        s.sendall(data)
        return s.recv(size)
'''


def python(source):
    return ["--no-python", "/usr/bin/python3", "-u", "-c", source]


def by_rank(zero, one):
    """Both sources in one program, told apart by RANK."""
    return f"import os\nexec({zero!r} if os.environ['RANK'] == '0' else {one!r})"


def unread(run, tmp_path, command):
    """The launcher with its stderr in a fifo; the reader's end is returned, and nobody reads it."""
    fifo = tmp_path / "console"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    process = run(["/bin/sh", "-c", 'console=$1; shift; exec "$@" 2>"$console"', "sh", str(fifo),
                   *map(str, command)])
    return process, reader


def cpu_stands_still(pid):
    """The flood has come to its end: neither agent nor worker makes progress."""
    def used():
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    before = used()
    time.sleep(0.3)
    return used() == before


def wait_for_standstill(mark, process, count):
    pids = wait_for_workers(mark, count)
    wait_until(lambda: cpu_stands_still(pids[0]) and cpu_stands_still(process.pid), "the flood stands", 20)


def test_term_ends_the_job_within_the_grace(run, ddlaunch, mark, tmp_path):
    process, reader = unread(run, tmp_path, agent(ddlaunch, python(DEAF_FLOOD), "--shutdown-timeout=1",
                                                  workers_here=1))
    wait_for_standstill(mark, process, 1)
    process.signal(signal.SIGTERM)
    assert process.wait(8) != 0
    assert_nothing_left(mark)
    os.close(reader)


def test_second_term_ends_it_at_once(run, ddlaunch, mark, tmp_path):
    process, reader = unread(run, tmp_path, agent(ddlaunch, python(DEAF_FLOOD), workers_here=1))
    wait_for_standstill(mark, process, 1)
    process.signal(signal.SIGTERM)
    time.sleep(0.3)
    assert process.running, "the grace of 30 s is not over"
    process.signal(signal.SIGTERM)
    assert process.wait(5) != 0
    assert_nothing_left(mark)
    os.close(reader)


def test_the_others_are_served_and_all_bytes_arrive_in_order(run, ddlaunch, mark, tmp_path):
    served = tmp_path / "served"
    go = tmp_path / "go"
    # The store's own protocol: a validated client adds 1 to a key.
    client = (STORE + f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
              "answer = ask(b'\\0' + struct.pack('<I', 0x3C85F7CE) + b'\\4' + struct.pack('<Q', 1) + b'k' + struct.pack('<q', 1), 8)\n"
              f"open({str(served)!r}, 'w').write(str(len(answer)))\n")
    process, reader = unread(run, tmp_path, agent(ddlaunch, python(by_rank(FLOOD, client))))
    wait_for_standstill(mark, process, 2)
    go.touch()
    wait_until(lambda: served.exists() and served.read_text() == "8", "the store answers", 10)
    seen = []
    os.set_blocking(reader, True)
    taker = threading.Thread(target=lambda: seen.extend(iter(lambda: os.read(reader, 65536), b"")))
    taker.start()
    assert process.wait(20) == 0
    taker.join(10)
    os.close(reader)
    lines = [line for line in b"".join(seen).split(b"\n") if line.startswith(b"line number")]
    assert lines == [b"line number %08d" % i for i in range(LINES)]
