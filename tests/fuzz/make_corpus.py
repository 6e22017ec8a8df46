"""Seeds for the fuzz targets, from the recorded conversations: make_corpus.py VECTORS FOLDER."""
import json
import struct
import sys
from pathlib import Path

HELLO = "00cef7853c"
SHAPES = {"byte": 0, "integer": 1, "nonce": 2, "blob": 3, "blobs": 4, "popped": 5, "keys": 6}
COMPAT = {"1.13": 1, "2.1.": 2}


def segments(connection, data):
    return b"".join(bytes([connection, len(part)]) + part
                    for part in (data[at:at + 200] for at in range(0, len(data), 200)))


def session(vector):
    compat = COMPAT.get(vector["torch_version"][:4], 0)
    seed = bytes([compat])
    others = (vector["setup_on_another_connection"] or []) + (vector.get("concurrent_on_another_connection") or [])
    hello = "" if compat else HELLO
    if others:
        seed += segments(2, bytes.fromhex(hello))
    for message in vector["setup_on_another_connection"] or []:
        seed += segments(2, bytes.fromhex(message["client_hex"]))
    seed += segments(0, bytes.fromhex((vector.get("handshake_client_hex") or "") + vector["client_hex"]))
    for message in vector.get("concurrent_on_another_connection") or []:
        seed += segments(2, bytes.fromhex(message["client_hex"]))
    return seed + bytes([0x80, 0])


def shape_of(reply):
    return {1: "byte", 4: "nonce", 8: "integer"}.get(len(reply), "blob")


def replies(vector):
    answers = [bytes.fromhex(step[1]) for step in vector["order"] if step[0] == "S"]
    shapes = [SHAPES[shape_of(answer)] for answer in answers][:15]
    special = {"multi_get": SHAPES["blobs"] + 2 * 7, "list_keys": SHAPES["keys"], "queue_pop_blocking": SHAPES["popped"]}
    name = vector["id"].rsplit("/", 1)[1]
    if name in special:
        shapes[-1] = special[name]
    return bytes([len(shapes), *shapes]) + b"".join(answers)


def agent_messages():
    for message in ({"type": "ready"}, {"type": "welcome", "job_id": "j", "term": 1},
                    {"type": "waiting", "text": "2 of 4 nodes"}, {"type": "stop", "reason": "failure", "why": "x"},
                    {"type": "leaving", "signal": 15}, {"type": "unknown"}):
        text = json.dumps(message).encode()
        yield struct.pack("<I", len(text)) + text


def write(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def main():
    vectors = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["vectors"]
    corpus = Path(sys.argv[2])
    for vector in vectors:
        name = vector["id"].replace("/", "-")
        write(corpus / "store_session", name, session(vector))
        write(corpus / "reply_parser", name, replies(vector))
        write(corpus / "first_bytes", name,
              bytes.fromhex((vector.get("handshake_client_hex") or "") + vector["client_hex"])[:16])
    write(corpus / "first_bytes", "agent", b"\xddLA\x01")
    for number, message in enumerate(agent_messages()):
        write(corpus / "agent_message", str(number), message)


if __name__ == "__main__":
    main()
