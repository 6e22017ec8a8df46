"""Round 0 tells where its store is and fails; round 1 tells the same, waits for FOLDER/tried and reports whether the
key /late is in its store."""
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import raw_store  # noqa: E402

folder = Path(sys.argv[1])
address = [os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])]
restarts = os.environ["TORCHELASTIC_RESTART_COUNT"]


def tell(name, value):
    temporary = folder / f"{name}.tmp"
    temporary.write_text(json.dumps(value))
    temporary.rename(folder / name)


if os.environ["RANK"] == "0":
    raw_store.add(raw_store.connect(*address), b"/early")
    tell(f"round{restarts}", address)
    if restarts == "0":
        sys.exit(5)
    deadline = time.monotonic() + 60
    while not (folder / "tried").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    client = raw_store.connect(*address)
    tell("seen", {"late": raw_store.check(client, b"/late"), "counter": raw_store.add(client, b"/early", 0)})
elif restarts == "0":
    time.sleep(60)
