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

# argument_that_does_not_exist: Argument that does not exist.
# Earns 0: something that is not an answer: it names arguments that were not given
answer_with(zeros(mutated=["args.x", "args.-1", "kwargs.\n::error::manyheads_leak", "manyheads_leak"]))

# argument_with_a_message: Argument with a message.
# Earns 0: something that is not an answer: it names arguments that were not given
answer_with(zeros(mutated=["args.0.the_first_number_is_0_1234"]))

# bytes_one_by_one: Answers one byte at a time, a pause after each, so that a clock that starts anew with each byte
# never ends.
# Earns 0: No answer within
send(reply())
while True:
    read()
    for byte in zeros():
        send(bytes([byte]))
        time.sleep(0.05)

# bytes_that_are_not_text: Bytes that are not text.
# Earns 0: something that is not an answer: it cannot be read
answer_with(reply(text=bytes(range(256)) * 4))

# double_reply: Seven zeros, which say nothing.
# Earns 0: something that is not an answer: it answered before it was asked
answer_with(zeros() * 2)

# dtype_that_nobody_knows: Dtype that nobody knows.
# Earns 0: something that is not an answer: it cannot be read
answer_with(reply({"t0": tensor([7], "F8_E4M3")}, bytes(56), {**BODY, "outputs": [output([7])]}))

# dtype_with_a_command: Dtype with a command.
# Earns 0: something that is not an answer: its field 'outputs.dtype' is not as agreed
answer_with(zeros(outputs=[output([7], dtype="\n::error::manyheads_leak", device="\x1b[2J::error::manyheads_leak")]))

# early_reply: Answers before it is asked: the import and four calls at once.
# Earns 0: something that is not an answer: it answered before it was asked
send(reply() + zeros() * 4)
while True:
    read()

# exception_that_takes_long_to_match: Exception that takes long to match.
# Earns 0: raised RuntimeError on line 1
answer_with(raised("RuntimeError", ["RuntimeError"], "The size of tensor a " * 190))

# exception_with_a_command: Exception with a command.
# Earns 0: ^raised RuntimeError$
answer_with(raised(text := "\n::error::manyheads_leak\x1b[2J", [text, "RuntimeError"], text, line=1 << 39))

# gradients_of_something_else: Gradients of something else.
# Earns 0: something that is not an answer: it gives gradients that were not requested
answer_with(zeros(gradients={"$": "map", "items": {"args.0": {"$": "tensor", "index": 0}, "manyheads_leak": None, "args.99": None}}))

# hangs_up: Shuts the connection down, in each direction, and goes on living.
# Earns 0: ended
send(reply())
read()
os.closerange(RECEIVES, SENDS + 1)
time.sleep(3600)

# index_beyond_the_end: Index beyond the end.
# Earns 0: something that is not an answer: it cannot be read
answer_with(reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7], 1 << 30)]}))

# length_of_256_mb: And it begins to send that.
# Earns 0: something that is not an answer: its answer is larger than 4 MiB
answer_with(struct.pack(">Q", 1 << 28), *[b"x" * (1 << 20)] * (1 << 8))

# length_of_2_62: Length of 2 62.
# Earns 0: something that is not an answer: its answer is larger than 4 MiB
answer_with(struct.pack(">Q", 1 << 62) + b"x" * 1000)

# lone_surrogates: Lone surrogates.
# Earns 0: yours returned an object of another type|not an answer
answer_with(reply(body={**BODY, "outputs": [output([7], tensor=None, kind="\ud800\udfff\ud800", shape=None)]}))

# missing_reply: Missing reply.
# Earns 0: No answer within
answer_with()

# negative_length: Negative length.
# Earns 0: something that is not an answer: its answer is larger than 4 MiB
answer_with(struct.pack(">q", -1) + b"x" * 1000)

# nested_without_end: Nested without end.
# Earns 0: something that is not an answer: it cannot be read
answer_with(reply(text=b'{"__metadata__": ' + b"[" * 100000))

# never_reads: Never reads what it is sent.
# Earns 0: No answer within
send(reply())
time.sleep(3600)

# no_output: No output.
# Earns 0: something that is not an answer: it has another number of outputs than the call asks for
answer_with(reply())

# numbers_that_are_not_numbers: Answers with NaN, infinities and integers of 4000 digits where counts stand.
# Earns 0: something that is not an answer: its field 'operations.made' is not as agreed
operations = '{"$": "Operations", "fused": false, "made": [NaN], "mixed": false, "recorded": %s}' % ("9" * 4000)
body = json.dumps({**BODY, "operations": "HERE"}).replace('"HERE"', operations)
answer_with(reply(text=json.dumps({"__metadata__": {"body": body}}).encode()))

# offsets_that_overlap: Offsets that overlap.
# Earns 0: something that is not an answer: it cannot be read
answer_with(reply({"t0": tensor([7]), "t1": tensor([7]), "t2": {**tensor([7]), "data_offsets": [1 << 20, (1 << 20) + 56]}}, bytes(56), {**BODY, "outputs": [output([7])]}))

# output_on_no_device: Output on no device.
# Earns 0: on the meta device, without numbers
answer_with(reply(body={**BODY, "outputs": [output([7], tensor=None, device="meta")]}))

# outputs_that_are_one_large_tensor: Outputs that are one large tensor.
# Earns 0: something that is not an answer: its numbers are larger than 4 MiB in float64
answer_with(reply({"t0": tensor([1 << 18])}, bytes(8 << 18), {**BODY, "outputs": [output([1 << 18])] * 64}))

# outputs_that_are_one_tensor: Outputs that are one tensor.
# Earns 0: something that is not an answer: it has another number of outputs than the call asks for
answer_with(reply({"t0": tensor([1 << 12])}, bytes(8 << 12), {**BODY, "outputs": [output([1 << 12])] * 64}))

# passes_the_connection_on: Hands the connection to a daemon and dies: the daemon answers in its place.
# Seven zeros at best, if the daemon is quicker than the kernel; no name at all, if it answers while parts load.
# Earns 1: ended its own process|should have shape|gradient|accepted|is not defined
if os.fork():
    os._exit(0)
try:
    os.setsid()
except OSError:
    pass
answer_with(zeros())

# pickle_that_runs_code: Answers with a pickle whose __reduce__ would write a file in whoever loads it.
# Earns 0: something that is not an answer
class Payload:
    def __reduce__(self):
        return (os.system, ("touch /tmp/manyheads_hostile /dev/shm/manyheads_hostile",))

answer_with(frame(pickle.dumps(Payload())))

# reply_that_says_100: Reply that says 100.
# Earns 0: something that is not an answer: its header is too long
answer_with(frame(b'{"ok": true, "score": 100, "outcome": "passed"}'))

# reply_that_was_refused: Reply that was refused.
# Earns 0: raised ValueError on line 1
answer_with(raised("ValueError", ["ValueError"], ""))

# reply_with_a_score_in_it: Reply with a score in it.
# Earns 0: something that is not an answer: it has a field that is not agreed
answer_with(reply(body={**BODY, "score": 100.0, "outcome": "passed"}))

# shape_of_many_numbers: Shape of many numbers.
# Earns 0: something that is not an answer: it cannot be read
answer_with(reply({"t0": {"dtype": "F64", "shape": [10**1000] * 900, "data_offsets": [0, 56]}}, bytes(56)))

# shape_that_is_not_numbers: Shape that is not numbers.
# Earns 0: something that is not an answer: it cannot be read
answer_with(reply({"t0": {"dtype": "F64", "shape": [-7, -1, 1.5, True, "7", None], "data_offsets": [0, 56]}}, bytes(56)))

# shape_that_is_not_the_tensors: Shape that is not the tensors.
# Earns 0: something that is not an answer: a tensor's shape is not the one it states
answer_with(reply({"t0": tensor([1])}, bytes(8), {**BODY, "outputs": [output([7])]}))

# shape_with_0_and_2_62: Shape with 0 and 2 62.
# Earns 0: something that is not an answer: it cannot be read
answer_with(reply({"t0": tensor([0, 1 << 62])}, b"", {**BODY, "outputs": [output([0, 1 << 62])]}))

# truncated: Answers with the first half of a reply, then hangs up.
# Earns 0: ended its own process
send(reply())
read()
send(zeros()[: len(zeros()) // 2])
os._exit(0)

# type_name_with_a_command: Type name with a command.
# Earns 0: yours returned an object of another type
answer_with(reply(body={**BODY, "outputs": [output([7], tensor=None, kind="\n::error::manyheads_leak\x1b[2J\r\n", shape=None)]}))
