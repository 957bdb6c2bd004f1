"""Attempts that write to the wire, where the judge reads each byte as an enemy's. Each begins with what comes first."""
import fcntl, io, json, os, pickle, random, socket, struct, time

RECEIVES, SENDS = 64, 65

def send(data):
    data = memoryview(data)
    while data:
        data = data[os.write(SENDS, data) :]

BODY = {"$": "Reply", "outputs": [], "gradients": {"$": "map", "items": {}}, "raised": None, "mutated": []}
BODY |= {"modules": [], "operations": None}

def frame(payload):
    return struct.pack(">Q", len(payload)) + payload

def tensor(shape, dtype="F64", size=None):
    """A header's entry and an output that refers to it."""
    count = 1
    for s in shape:
        count *= s
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, 8 * count if size is None else size]}

def output(shape, index=0, /, **changes):
    out = {"$": "Output", "kind": "tensor", "tensor": {"$": "tensor", "index": index}}
    return {**out, "dtype": "float64", "device": "cpu", "shape": list(shape), **changes}

def reply(header=None, data=b"", body=None, text=None):
    """A framed reply; `text` replaces the header's JSON."""
    whole = {"__metadata__": {"body": json.dumps(BODY if body is None else body)}, **(header or {})}
    text = json.dumps(whole).encode() if text is None else text
    text += b" " * (-len(text) % 8)
    return frame(struct.pack("<Q", len(text)) + text + data)

def zeros(**changes):
    """Seven zeros, as the first check asks for seven numbers; and what else stands in the reply's body."""
    return reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])], **changes})

def raised(type, bases, message, line=1):
    """An exception in the call."""
    told = {"$": "Raised", "type": type, "bases": bases, "message": message, "stage": "call", "line": line}
    return reply(body={**BODY, "raised": told})

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

# bytes_one_by_one: Answers one byte at a time, a pause after each, so that a clock that starts anew with each byte
# never ends.
send(reply())
while True:
    read()
    for byte in zeros():
        send(bytes([byte]))
        time.sleep(0.05)

# early_reply: Answers before it is asked: the import and four calls at once.
send(reply() + zeros() * 4)
while True:
    read()

# hangs_up: Shuts the connection down, in each direction, and goes on living.
send(reply())
read()
os.closerange(RECEIVES, SENDS + 1)
time.sleep(3600)

# never_reads: Never reads what it is sent.
send(reply())
time.sleep(3600)

# numbers_that_are_not_numbers: Answers with NaN, infinities and integers of 4000 digits where counts stand.
operations = '{"$": "Operations", "fused": false, "made": [NaN], "mixed": false, "recorded": %s}' % ("9" * 4000)
body = json.dumps({**BODY, "operations": "HERE"}).replace('"HERE"', operations)
answer_with(reply(text=json.dumps({"__metadata__": {"body": body}}).encode()))

# passes_the_connection_on: Hands the connection to a daemon and dies: the daemon answers in its place.
if os.fork():
    os._exit(0)
try:
    os.setsid()
except OSError:
    pass
answer_with(zeros())

# pickle_that_runs_code: Answers with a pickle whose __reduce__ would write a file in whoever loads it.
class Payload:
    def __reduce__(self):
        return (os.system, ("touch /tmp/manyheads_hostile /dev/shm/manyheads_hostile",))

answer_with(frame(pickle.dumps(Payload())))

# truncated: Answers with the first half of a reply, then hangs up.
send(reply())
read()
send(zeros()[: len(zeros()) // 2])
os._exit(0)
