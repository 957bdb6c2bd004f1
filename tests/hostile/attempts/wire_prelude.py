"""What every attempt that writes to the wire itself begins with (not a trick of its own)."""
import json
import os
import struct

RECEIVES, SENDS = 64, 65


def send(data):
    data = memoryview(data)
    while data:
        data = data[os.write(SENDS, data) :]


BODY = {
    "$": "Reply",
    "outputs": [],
    "gradients": {"$": "map", "items": {}},
    "raised": None,
    "mutated": [],
    "modules": [],
    "operations": None,
}


def frame(payload):
    return struct.pack(">Q", len(payload)) + payload


def tensor(shape, dtype="F64", size=None):
    """A header's entry and an output that refers to it."""
    count = 1
    for s in shape:
        count *= s
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, 8 * count if size is None else size]}


def output(shape, index=0, /, **changes):
    out = {
        "$": "Output",
        "kind": "tensor",
        "tensor": {"$": "tensor", "index": index},
        "dtype": "float64",
        "device": "cpu",
        "shape": list(shape),
    }
    return {**out, **changes}


def reply(header=None, data=b"", body=None, text=None):
    """A framed reply; `text` replaces the header's JSON."""
    whole = {"__metadata__": {"body": json.dumps(BODY if body is None else body)}, **(header or {})}
    text = json.dumps(whole).encode() if text is None else text
    return frame(struct.pack("<Q", len(text)) + text + data)


def read():
    """One message of the judge's, unread; None when it has hung up."""
    def exactly(count):
        data = b""
        while len(data) < count:
            chunk = os.read(RECEIVES, count - len(data))
            if not chunk:
                os._exit(0)
            data += chunk
        return data

    return exactly(struct.unpack(">Q", exactly(8))[0])


def answer_with(*answers):
    """Say that the import went well, then answer each call with all of these bytes."""
    send(reply())
    while True:
        read()
        for answer in answers:
            send(answer)
