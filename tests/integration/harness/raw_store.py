"""A few operations of the worker store's protocol (PyTorch 2.2 and later), spoken byte by byte on a socket."""
import socket
import struct

MAGIC = 0x3C85F7CE
VALIDATE, ADD, CHECK = 0, 4, 5


def _text(value):
    return struct.pack("<Q", len(value)) + value


def connect(host, port, seconds=5):
    client = socket.create_connection((host, port), timeout=seconds)
    client.sendall(bytes([VALIDATE]) + struct.pack("<I", MAGIC))
    return client


def add(client, key, amount=1):
    """The counter's new value; None when the server closed the connection instead."""
    client.sendall(bytes([ADD]) + _text(key) + struct.pack("<q", amount))
    reply = client.recv(8)
    return struct.unpack("<q", reply)[0] if len(reply) == 8 else None


def check(client, key):
    client.sendall(bytes([CHECK]) + struct.pack("<Q", 1) + _text(key))
    return client.recv(1) == b"\0"
