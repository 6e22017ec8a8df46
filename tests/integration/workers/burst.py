"""Writes a megabyte to each stream in whole lines and ends without a pause."""
import os
import sys

for stream in (1, 2):
    rank = os.environ["RANK"]
    for block in range(100):
        lines = "".join(f"burst {rank} {block * 100 + i:05} {'x' * 90}\n" for i in range(100)).encode()
        # One write() of at most 4096 bytes is not torn by other writers of the same pipe.
        for start in range(0, 100, 20):
            part = b"".join(lines.splitlines(keepends=True)[start:start + 20])
            while part:
                part = part[os.write(stream, part):]
sys.stdout.flush()
os._exit(0)
