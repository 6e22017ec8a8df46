"""Rank 0 listens on MASTER_PORT itself and greets every other rank, as programs with a bootstrap of their own do."""
import os
import socket
import sys
import time

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
print("agent store:", os.environ.get("TORCHELASTIC_USE_AGENT_STORE"), flush=True)


def serve():
    family = socket.getaddrinfo(*address)[0][0]
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen()
    listener.settimeout(20)
    peers = [listener.accept()[0] for _ in range(size - 1)]
    print(f"served {size - 1} peers", flush=True)  # before the first peer can fail and end this process
    for peer in peers:
        peer.sendall(b"hello")


def greet():
    deadline = time.monotonic() + 20
    while True:
        try:
            assert socket.create_connection(address, 5).recv(5) == b"hello"
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


serve() if rank == 0 else greet()
if "--fail-first" in sys.argv and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if rank == 1:
        sys.exit(3)
    time.sleep(60)
