"""Any bytes at all: `read_reply` gives a valid Reply or raises BadReply; reading an attempt gives
text, or one plain sentence.
"""

import contextlib
import json
import re
import struct
import tempfile
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from manyheads.box.replies import BadReply, read_reply
from manyheads.box.replies import split as split_replies
from manyheads.box.worker.messages import (
    Call,
    Entry,
    FollowUp,
    ModuleFacts,
    Operations,
    Output,
    Raised,
    Reply,
    Returned,
)
from manyheads.box.worker.result_form import OPAQUE, Form, misfit
from manyheads.box.worker.wire import LENGTH, encode
from manyheads.checks.answer import answers_of
from manyheads.checks.hidden_check import CheckFailed
from manyheads.judge.attempt_runner import validate_reply
from manyheads.submission import Source, read_attempt
from tests.make import edit_text

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.bin"))
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
ELEMENTS = 1 << 23  # more than any seed below holds
NUMBERS = torch.arange(6.0).reshape(2, 3)
FACTS = ModuleFacts(
    {"w": Entry((2, 3), "float32", "cpu")}, {}, False, False, ("b",), {"n_head": 2, "scale": 0.5}
)
SEEDS = {
    "nothing": Reply(),
    "one tensor": Reply(outputs=(Output("tensor", NUMBERS, "float32", "cpu", (2, 3)),)),
    "gradients": Reply(gradients={"args.0": NUMBERS.double(), "w": None}),
    "an exception": Reply(
        raised=Raised("ValueError", ("ValueError", "Exception"), "no", "call", 3)
    ),
    "a module": Reply(
        modules=(FACTS,),
        mutated=("args.0",),
        operations=Operations(True, (6,), shapes=((2, 3),), kernels=("mm",)),
    ),
    "parts of two steps": Reply(
        outputs=(
            *(Output("tensor", NUMBERS, "float32", "cpu", (2, 3)), Output(OPAQUE)),
            *(Output(misfit(0, "list of 9")), Output(misfit(1, "without y"))),
        ),
        mutated=("then.0.args.0",),
        operations=Operations(
            False, (6, 12), shapes=((), (0, 3), (1,) * 10), kernels=("_softmax", "bmm")
        ),
    ),
    "a bool and an empty tensor": Reply(
        outputs=(
            Output("tensor", torch.ones(3, dtype=torch.bool), "bool", "cpu", (3,)),
            Output("tensor", torch.empty(0, 4), "float32", "cpu", (0, 4)),
        )
    ),
}


def payload(reply: Reply) -> bytes:
    """The reply as the judge gets it, without its length."""
    return encode(reply)[LENGTH.size :]


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a valid payload, and its data."""
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def join_payload(header: object, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def assert_read_or_refused(data: bytes) -> None:
    """A Reply whose parts have their types and whose tensors are plain, or BadReply with a short
    plain reason.
    """
    try:
        reply = read_reply(data)
    except BadReply as error:
        message = str(error)
        assert 0 < len(message) <= 200
        assert message.isprintable()
        return
    tensors = [out.tensor for out in reply.outputs] + list(reply.gradients.values())
    for tensor in tensors:
        if tensor is not None:
            assert type(tensor) is torch.Tensor
            assert tensor.layout is torch.strided
            assert tensor.device.type == "cpu"
            assert tensor.numel() <= ELEMENTS
    for out in reply.outputs:
        assert isinstance(out.kind, str)
        assert out.tensor is None or tuple(out.tensor.shape) == out.shape
    assert all(isinstance(name, str) for name in (*reply.gradients, *reply.mutated))
    assert all(isinstance(facts, ModuleFacts) for facts in reply.modules)
    assert reply.raised is None or isinstance(reply.raised, Raised)
    assert reply.operations is None or isinstance(reply.operations, Operations)


@pytest.mark.parametrize("name", SEEDS)
def test_a_valid_reply_is_read_as_it_was_sent(name):
    sent, read = SEEDS[name], read_reply(payload(SEEDS[name]))
    for sent_output, theirs in zip(sent.outputs, read.outputs, strict=True):
        assert (sent_output.kind, sent_output.dtype, sent_output.shape) == (
            theirs.kind,
            theirs.dtype,
            theirs.shape,
        )
        assert (sent_output.tensor is None) == (theirs.tensor is None)
        if sent_output.tensor is not None:
            assert torch.equal(sent_output.tensor, theirs.tensor)  # type: ignore[arg-type]
    assert sent.gradients.keys() == read.gradients.keys()
    assert (sent.raised, sent.mutated, sent.modules, sent.operations) == (
        read.raised,
        read.mutated,
        read.modules,
        read.operations,
    )


def test_every_message_that_was_ever_interesting_is_read_or_refused():
    assert len(CORPUS) > 20
    for path in CORPUS:
        assert_read_or_refused(path.read_bytes())


@FUZZ
@given(st.binary(max_size=400), st.integers(0, 5))
@example(b"", 1)
@example(b"\xff" * 8, 1)
@example(struct.pack("<Q", 1 << 62) + b"{}", 1)
def test_arbitrary_bytes_as_one_reply_or_as_several(data, count):
    assert_read_or_refused(data)
    with contextlib.suppress(BadReply):
        assert len(split_replies(data, count)) == count


@FUZZ
@given(st.sampled_from(sorted(SEEDS)), st.data())
def test_flipped_inserted_and_deleted_bytes(name, data):
    mutated = bytearray(payload(SEEDS[name]))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(mutated) - 1))
        edit = data.draw(st.sampled_from(["flip", "set", "insert", "delete"]))
        if edit == "flip":
            mutated[at] ^= 1 << data.draw(st.integers(0, 7))
        elif edit == "set":
            mutated[at] = data.draw(st.integers(0, 255))
        elif edit == "insert":
            mutated[at:at] = data.draw(st.binary(min_size=1, max_size=8))
        elif len(mutated) > 1:
            del mutated[at]
    assert_read_or_refused(bytes(mutated))


@FUZZ
@given(st.sampled_from(sorted(SEEDS)), st.integers(0, 2000))
def test_truncated_messages_are_never_read(name, kept):
    message = payload(SEEDS[name])
    if kept < len(message):
        with pytest.raises(BadReply):
            read_reply(message[:kept])


@FUZZ
@given(
    st.lists(st.sampled_from(sorted(SEEDS)), max_size=4), st.integers(0, 5), st.binary(max_size=30)
)
def test_several_replies_are_as_many_as_were_asked_for_and_nothing_more(names, count, more):
    sent = b"".join(encode(SEEDS[name]) for name in names) + more
    if count == len(names) and not more:
        read = [read_reply(encoded).mutated for encoded in split_replies(sent, count)]
        assert read == [SEEDS[name].mutated for name in names]
    else:
        with pytest.raises(BadReply):
            split_replies(sent, count)


FORM = Form(
    "tuple", ("y", "rest"), (Form(), Form("dict", ("low", "state"), (Form(), Form("opaque"))))
)
ASKED = Call("f", (NUMBERS,), returns=FORM, then=(FollowUp((Returned(0, (1, 1)),)),), watch=True)
KIND = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["tensor", "NoneType", OPAQUE, "float", "sparse_coo float32 tensor", "tuple of 9", ""]
    ),
    st.builds(
        misfit,
        st.integers(-1, 120),
        st.sampled_from(["tensor", "nothing", "without low", "without \n", ""]),
    ),
    st.sampled_from(
        [
            "list of 57",
            "tuple of \u0669",
            "in place of \u0660: tensor",
            "in place of 0: tuple of \u0669",
        ]
    ),
)


@settings(FUZZ, max_examples=60)
@given(st.lists(st.tuples(KIND, st.booleans()), min_size=4, max_size=4))
@example([("sparse_31415 float32 tensor", False)] * 4)
def test_parts_of_any_kind_are_refused_or_told_in_words_of_ours(kinds):
    """What a check asks of each part gives a tensor, or a sentence without a word that the attempt
    chose.
    """
    described_outputs = []
    for kind, has_tensor in kinds:
        tensor, shape = (NUMBERS, (2, 3)) if has_tensor else (None, None)
        described_outputs.append(Output(kind, tensor, None, None, shape))
    outputs = (*described_outputs[:2], Output(OPAQUE), *described_outputs[2:], Output(OPAQUE))
    reply = read_reply(payload(Reply(outputs, operations=Operations(False))))
    if validate_reply(ASKED, reply):
        return
    answers = [answer for answer in answers_of(ASKED, reply) if answer.form.kind != "opaque"]
    messages = [
        failure_message(lambda answer=answer, attribute=attribute: getattr(answer, attribute))
        for answer in answers
        for attribute in ("dtype", "output")
    ]
    assert all(WORDS.fullmatch(message) for message in messages if message), messages


def failure_message(ask):
    """Why a check fails that asks for this; empty where it does not."""
    try:
        ask()
    except CheckFailed as failed:
        return str(failed)
    return ""


WORDS = re.compile(
    r"(a tensor|a pair \(y, rest\)|a dict with low and state|anything) was expected( of call [12]|"
    r" as (y|rest|rest\.low|rest\.state)( of call [12])?)?; yours (has no (low|state)|"
    r"returned (an object of another type|None: is a return missing at its end\?|"
    r"a part that nobody looks at|an? (tensor( alone)?|float|sparse_coo float32 tensor|(tuple|"
    r"list) of [0-9]( or more)?|dict|list|set|str|int)))"
)
LARGE = st.sampled_from(
    [0, 1, -1, 1 << 31, 1 << 40, (1 << 40) - 1, 1 << 62, (1 << 63) - 1, 1 << 64]
)
NUMBER = st.one_of(st.integers(-(1 << 70), 1 << 70), LARGE, st.floats(), st.booleans())
DTYPES = st.sampled_from(["F64", "F32", "I8", "BOOL", "F8_E4M3", ""])
JSON = st.recursive(
    st.one_of(
        st.none(),
        NUMBER,
        st.text(max_size=10),
        st.sampled_from(["$", "tensor", "map", "Reply", "args.0"]),
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)


@FUZZ
@given(st.lists(NUMBER, max_size=5), st.tuples(NUMBER, NUMBER), DTYPES)
@example([0, 1 << 62], (0, 0), "F64")
@example([0] + [(1 << 40) - 1] * 4, (0, 0), "F64")
@example([-6, -1], (0, 48), "F64")
@example([True, 6], (0, 48), "F64")
@example([6.0], (0, 48), "F64")
def test_any_shape_and_any_offsets(shape, offsets, dtype):
    header, data = split(payload(SEEDS["one tensor"]))
    header["t0"] = {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}
    assert_read_or_refused(join_payload(header, data))


@FUZZ
@given(st.sampled_from(sorted(SEEDS)), st.data())
def test_any_part_of_the_body_replaced(name, data):
    """One value, somewhere in the body, becomes any other JSON: the rest stays valid."""
    header, tensors = split(payload(SEEDS[name]))
    body = json.loads(header["__metadata__"]["body"])
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        items: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, list):
            items = enumerate(value)
        for key, inner in items:
            places.append((value, key))
            walk(inner)

    walk(body)
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(JSON)
    header["__metadata__"]["body"] = json.dumps(body)
    assert_read_or_refused(join_payload(header, tensors))


@FUZZ
@given(st.sampled_from(sorted(SEEDS)), st.dictionaries(st.text(max_size=6), JSON, max_size=3))
def test_any_entry_beside_the_agreed_ones_is_refused(name, more):
    header, tensors = split(payload(SEEDS[name]))
    extra = {key: value for key, value in more.items() if key not in header}
    if extra:
        with pytest.raises(BadReply):
            read_reply(join_payload({**header, **extra}, tensors))


def repeat_entry(old: str, new: str) -> bytes:
    """A reply of one tensor in whose header something stands twice."""
    header, tensors = split(payload(SEEDS["one tensor"]))
    text = edit_text(json.dumps(header), (old, new)).encode()
    return struct.pack("<Q", len(text)) + text + tensors


def many(tensors: int) -> bytes:
    header, _ = split(payload(SEEDS["nothing"]))
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    return join_payload({**header, **{f"t{i}": empty for i in range(tensors)}}, b"")


def nested_header(depth: int, in_body: bool) -> bytes:
    text = '{"a":' * depth + "1" + "}" * depth
    text = json.dumps({"__metadata__": {"body": text}}) if in_body else text
    return struct.pack("<Q", len(text)) + text.encode()


TWICE = "not written as agreed"
BAD = {
    "a tensor's name twice": (repeat_entry('"t0":', '"t0": null, "t0":'), TWICE),
    "a name of the body twice": (
        repeat_entry(r"\"outputs\":", r"\"outputs\": [], \"outputs\":"),
        TWICE,
    ),
    "a name of an output twice": (
        repeat_entry(r"\"kind\":", r"\"kind\": \"tensor\", \"kind\":"),
        TWICE,
    ),
    "one tensor more than is read": (many(513), ""),
    "very many tensors": (many(100_000), ""),
    "a header in a header, without end": (nested_header(100_000, in_body=False), ""),
    "a body in a body, a thousand times": (nested_header(1000, in_body=True), ""),
    "a body in a body, without end": (nested_header(100_000, in_body=True), ""),
}


@pytest.mark.parametrize(("data", "says"), BAD.values(), ids=BAD)
def test_what_is_not_as_agreed_is_refused(data, says):
    with pytest.raises(BadReply, match=says):
        read_reply(data)


STEM = "01_running_mean"
TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)  # half characters too
LINES = st.sampled_from(
    [
        "%%bash",
        "!ls",
        "x = !ls",
        "x = %time 1",
        "?int",
        "int?",
        "%matplotlib",
        "a = 1",
        "\\",
        "%",
        "'''",
        "\x0c",
        "%%",
    ]
)
CODE = st.one_of(TEXT, st.lists(LINES, max_size=6).map("\n".join))
FIELDS = {
    "cell_type": st.sampled_from(["code", "markdown", "raw", 1, None]),
    "source": st.one_of(
        CODE, st.lists(CODE, max_size=4), st.integers(), st.none(), st.lists(st.lists(st.none()))
    ),
    "metadata": st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
}
CELL = st.fixed_dictionaries({}, optional=FIELDS)
SINGLE = st.none() | st.booleans() | st.floats() | st.integers() | TEXT
ANY_JSON = st.recursive(SINGLE, lambda inner: st.lists(inner, max_size=4), max_leaves=6)
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\0\r!%?"), max_size=30)


def assert_text_or_sentence(attempt: Source) -> None:
    """Text that can be written, or one line that says why not; and a digest either way."""
    attempt.text.encode("utf-8")
    assert "\0" not in attempt.text
    assert len(attempt.digest) == 64
    assert not (attempt.problem and attempt.text)
    assert len(attempt.problem) <= 300
    assert not any(unicodedata.category(c)[0] == "C" for c in attempt.problem)


def read_file(name: str, data: bytes) -> Source:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        return read_attempt(Path(folder), STEM, None, 64)


@FUZZ
@given(st.binary(max_size=300), st.sampled_from([f"{STEM}.py", f"{STEM}.ipynb"]))
@example(b"\xef\xbb\xbf", f"{STEM}.py")
@example(b"\xff\xfe", f"{STEM}.py")
@example(b"\xed\xa0\x80", f"{STEM}.py")
@example(b"[" * 60_000, f"{STEM}.ipynb")
@example(b'{"cells":' * 6_000, f"{STEM}.ipynb")
@example(b"1" * 60_000, f"{STEM}.ipynb")
@example(b"NaN", f"{STEM}.ipynb")
def test_any_bytes(data, name):
    assert_text_or_sentence(read_file(name, data))


@FUZZ
@given(st.lists(CELL, max_size=5) | ANY_JSON)
@example([{"cell_type": "code", "source": "x = '\ud800'"}])
@example([{"cell_type": "code", "source": "x = '\0'"}])
@example([{"cell_type": "code", "source": ["%%bash\n", "rm -rf /"]}])
@example([{"cell_type": "code", "source": "-" * 50_000 + "1"}])
@example([{"cell_type": "code", "source": "a" + ".b" * 20_000}])
@example([{"cell_type": "code", "source": "(" * 20_000}])
def test_any_cells(cells):
    assert_text_or_sentence(read_file(f"{STEM}.ipynb", json.dumps({"cells": cells}).encode()))


@FUZZ
@given(st.lists(PLAIN, min_size=1, max_size=5))
def test_a_file_that_is_text_is_read_as_it_is(lines):
    text = "\n".join(lines)
    attempt = read_file(f"{STEM}.py", text.encode("utf-8"))
    assert attempt.problem == ""
    assert attempt.text == text.removeprefix("\ufeff")
