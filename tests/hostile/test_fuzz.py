"""Arbitrary bytes as a reply or as an attempt's file.

A reply is read or refused with BadReply; a file is read as text or described as a problem.
"""

import contextlib
import json
import re
import struct
import tempfile
import types
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.box.replies import BadReply, read_reply, read_traced
from manyheads.box.replies import split as split_replies
from manyheads.box.worker.messages import (
    DEPTH,
    ELEMENTS,
    LARGEST,
    SIDES,
    SLICES,
    TENSOR_LIMIT,
    Between,
    Call,
    Entry,
    FollowUp,
    ModuleFacts,
    Operations,
    Output,
    Raised,
    Reply,
    Returned,
    Slice,
    Step,
    TensorInfo,
    Traced,
)
from manyheads.box.worker.result_form import OPAQUE, Form, misfit
from manyheads.box.worker.wire import encode, to_body
from manyheads.checks.answer import answers_of
from manyheads.checks.hidden_check import CheckFailed
from manyheads.judge.attempt_runner import validate_reply
from manyheads.submission import Source, read_attempt
from tests.make import edit_text, payload

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.bin"))
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
NUMBERS = torch.arange(6.0).reshape(2, 3)
TENSOR = Output("tensor", NUMBERS, "float32", "cpu", (2, 3))
RAISED = Raised("ValueError", ("ValueError", "Exception"), "no", "call", 3, 2)
ENTRY = Entry((2, 3), "float32", "cpu")
SHAPES = ((), (0, 3), (1,) * 10)
OPERATIONS = Operations(True, (6, 12), True, True, SHAPES, ("_softmax", "bmm"))
FACTS = ModuleFacts(
    {"w": ENTRY}, {"0": ENTRY}, True, True, ("b",), {"n_head": 2, "act": "gelu"}, {"0": ENTRY}
)
# Two messages in which every field is set, some as large as allowed.
FULL_REPLY = Reply(
    (TENSOR, Output("tensor", torch.empty(0, 4, dtype=torch.bool), "bool", "cpu", (0, 4))),
    {"args.0": NUMBERS.double(), "w": None},
    *(RAISED, ("args.0",), (FACTS,), OPERATIONS, (RAISED,), 4, (1,)),
)
INFO = TensorInfo((), "float32", True, 0.5)
STEP = Step(
    *("mul", (1,) * DEPTH, (1,) * DEPTH, (INFO,) * SIDES, (INFO,) * SIDES, 9, 9, "view"),
    *((2.5,), True, (NUMBERS,), (Slice(0, 0, 1),) * SLICES),
)
FULL_TRACED = Traced(replace(FULL_REPLY, modules=()), (STEP,), (0, 0), 1)
SEEDS = {
    "nothing": Reply(),
    "one tensor": Reply((TENSOR,)),
    "parts of two steps": Reply(
        (TENSOR, Output(OPAQUE), Output(misfit(0, "list of 9")), Output(misfit(1, "without y")))
    ),
    "a full reply": FULL_REPLY,
    "a full trace": FULL_TRACED,
}
NAMES = st.sampled_from(sorted(SEEDS))
Message = Reply | Traced


def read_as(seed: Message, data: bytes) -> Message:
    return read_reply(data) if isinstance(seed, Reply) else read_traced(data)


def split_payload(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the JSON header of a valid payload, and the bytes of its tensors."""
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def join_payload(header: object, data: bytes, body: object = None) -> bytes:
    """Return a payload with this header and these tensor bytes; `body` replaces the header's."""
    if body is not None:
        header = {**header, "__metadata__": {"body": json.dumps(body)}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def assert_read_or_refused(data: bytes, seed: Message = FULL_REPLY) -> None:
    """Check that the bytes are refused with a short reason, or survive writing and reading."""
    reason = ""
    try:
        message = read_as(seed, data)
    except BadReply as error:
        reason = str(error) or " "
    if reason:
        assert len(reason.strip()) in range(1, 200)
        assert reason.isprintable()
    else:
        encoded = payload(message)
        assert payload(read_as(seed, encoded)) == encoded


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)
def test_a_valid_message_survives_writing_and_reading(seed):
    sent_tensors, read_tensors = list[Tensor](), list[Tensor]()
    assert to_body(read_as(seed, payload(seed)), read_tensors) == to_body(seed, sent_tensors)
    assert all(map(torch.equal, read_tensors, sent_tensors))


def test_every_message_of_the_corpus_is_read_or_refused():
    assert len(CORPUS) > 20
    for path in CORPUS:
        assert_read_or_refused(path.read_bytes())


def out_of_bounds(bound: object, value: Any) -> list[object]:
    """Return values of the same type that the bound of the annotation forbids."""
    if not isinstance(bound, Between):  # a set of values, or a pattern
        return [True if value is False else "a secret"]
    too_small, too_large = bound.minimum - 1, bound.maximum + 1
    if isinstance(value, int):
        return [too_small, too_large]
    if isinstance(value, str):
        return ["n" * too_large]
    if isinstance(value, list):
        return [(value or [1])[:1] * too_large, [] if too_small == 0 else [*value, None]]
    if value["$"] == "tensor":
        return [{**value, "index": 77}]
    (item, *_) = value["items"].values()
    return [{"$": "map", "items": {str(i): item for i in range(too_large)}}]


# A container, one of its keys or indices, and a value: after container[key] = value, the message
# must be refused.
Violation = tuple[Any, Any, object]


def type_violations(hint: Any, holder: Any, key: Any) -> Iterator[Violation]:
    """Yield the violations of an annotation, for `holder[key]` and everything inside it."""
    value, origin, arguments = holder[key], get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        yield from violations_of_union(set(arguments) - {type(None)}, holder, key)
        return
    yield holder, key, [value]
    if origin is Annotated:
        yield from ((holder, key, bad) for bad in out_of_bounds(arguments[1], value))
        yield from type_violations(arguments[0], holder, key)
    elif origin is tuple:
        for index in range(len(value)):
            yield from type_violations(arguments[0], value, index)
    elif origin is Mapping:
        yield from violations_of_mapping(*arguments, value)
    elif is_dataclass(hint):
        yield from violations_of_record(hint, holder, key)
    elif hint in OF_ANOTHER_TYPE:
        yield holder, key, OF_ANOTHER_TYPE[hint]


def violations_of_union(members: set[Any], holder: Any, key: Any) -> Iterator[Violation]:
    """Yield the violations for an optional value, or for a value of one of several types."""
    if len(members) == 1:
        yield from type_violations(members.pop(), holder, key)
    else:  # an attribute of a module, which is a number or a text
        yield from ((holder, key, bad) for bad in (LARGEST + 1, "n" * 201, None))


def violations_of_mapping(key_hint: Any, item_hint: Any, value: Any) -> Iterator[Violation]:
    """Yield keys out of bounds and forbidden items of a mapping.

    Args:
        key_hint: the annotation of the keys, Annotated[type, bound].
        item_hint: the annotation of the items.
        value: the encoded mapping, {"$": "map", "items": {key: item}}.
    """
    items = value["items"]
    first_key, first_item = next(iter(items.items()))
    bound = get_args(key_hint)[1]
    for bad_key in out_of_bounds(bound, first_key):
        yield value, "items", {bad_key: first_item}
    for key in items:
        yield from type_violations(item_hint, items, key)


def violations_of_record(hint: Any, holder: Any, key: Any) -> Iterator[Violation]:
    """Yield the violations for a dataclass: an unknown field, another type, missing fields, and
    fields with a forbidden value.
    """
    value = holder[key]
    yield holder, key, {**value, "extra": 1}
    yield holder, key, {**value, "$": "Call"}  # the name of the type
    for field in fields(hint):
        if field.default is field.default_factory is MISSING:  # the field is required
            yield holder, key, {name: value[name] for name in value if name != field.name}
    for name, field_hint in get_type_hints(hint, include_extras=True).items():
        if value.get(name) is not None:
            yield from type_violations(field_hint, value, name)


OF_ANOTHER_TYPE: dict[object, object] = {int: True, bool: 0, float: 1, str: "\ud800"}


@pytest.mark.parametrize("seed", [FULL_REPLY, FULL_TRACED], ids=["a reply", "a trace"])
def test_values_that_an_annotation_forbids_are_refused(seed):
    header, tensors = split_payload(payload(seed))
    root = {"body": json.loads(header["__metadata__"]["body"])}
    forbidden = list(type_violations(type(seed), root, "body"))
    assert len(forbidden) > 100
    for holder, key, bad in forbidden:
        valid = holder[key]
        holder[key] = bad
        with pytest.raises(BadReply):
            read_as(seed, join_payload(header, tensors, root["body"]))
        holder[key] = valid
    assert read_as(seed, join_payload(header, tensors, root["body"]))


def unbounded(hint: Any, name: str) -> Iterator[str]:
    """Yield the name of each number, text or container in an annotation that has no bound."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        origin, arguments = get_origin(arguments[0]), get_args(arguments[0])
    elif hint in (int, str) or origin in (tuple, Mapping):
        yield name
    for argument in arguments:
        yield from unbounded(argument, name)
    if is_dataclass(hint):
        for field, field_hint in get_type_hints(hint, include_extras=True).items():
            yield from unbounded(field_hint, f"{name}.{field}")


@pytest.mark.parametrize("message_type", [Reply, Traced])
def test_every_number_text_and_length_of_a_message_is_bounded(message_type):
    assert [*unbounded(message_type, message_type.__name__)] == []


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(replace(FULL_TRACED, order=(1,)), id="an order that names a missing step"),
        pytest.param(
            replace(FULL_TRACED, steps=(replace(STEP, crops=(torch.zeros(ELEMENTS + 1),)),)),
            id="a crop that is too large",
        ),
        pytest.param(
            Reply((replace(TENSOR, shape=(3, 2)),)), id="a shape that is not the tensor's"
        ),
        pytest.param(
            Reply(modules=(replace(FACTS, buffers={"1": ENTRY}),)), id="buffers counted from 1"
        ),
        pytest.param(
            Reply(modules=(replace(FACTS, plain={"00": ENTRY}),)), id="a number with a leading zero"
        ),
    ],
)
def test_a_message_that_contradicts_itself_is_refused(message):
    with pytest.raises(BadReply):
        read_as(message, payload(message))


@FUZZ
@given(st.binary(max_size=400), st.integers(0, 5))
@example(b"", 1)
@example(b"\xff" * 8, 1)
@example(struct.pack("<Q", 1 << 62) + b"{}", 1)
def test_arbitrary_bytes_are_read_or_refused(data, count):
    assert_read_or_refused(data)
    with contextlib.suppress(BadReply):
        assert len(split_replies(data, count)) == count


@FUZZ
@given(NAMES, st.data())
def test_damaged_messages_are_read_or_refused(name, data):
    sent = payload(SEEDS[name])
    edited = bytearray(sent)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(edited) - 1))
        removed = data.draw(st.integers(0, 1))
        edited[at : at + removed] = data.draw(st.binary(min_size=1, max_size=8))
        edited[at] ^= 1 << data.draw(st.integers(0, 7))
    assert_read_or_refused(bytes(edited), SEEDS[name])
    with pytest.raises(BadReply):
        read_as(SEEDS[name], sent[: data.draw(st.integers(0, len(sent) - 1))])


@FUZZ
@given(st.lists(NAMES, max_size=4), st.integers(0, 5), st.binary(max_size=30))
def test_too_few_or_too_many_replies_are_refused(names, count, more):
    sent = b"".join(encode(SEEDS[name]) for name in names) + more
    is_agreed = count == len(names) and not more
    with contextlib.nullcontext() if is_agreed else pytest.raises(BadReply):
        assert split_replies(sent, count) == [payload(SEEDS[name]) for name in names]


LARGE = st.sampled_from(
    [0, 1, -1, 1 << 31, 1 << 40, (1 << 40) - 1, 1 << 62, (1 << 63) - 1, 1 << 64]
)
NUMBER = st.one_of(st.integers(-(1 << 70), 1 << 70), LARGE, st.floats(), st.booleans())
DTYPES = st.sampled_from(["F64", "F32", "I8", "BOOL", "F8_E4M3", ""])
WORDS_OF_A_BODY = st.sampled_from(["$", "tensor", "map", "Reply", "args.0"])
JSON = st.recursive(
    st.none() | NUMBER | st.text(max_size=10) | WORDS_OF_A_BODY,
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
def test_a_reply_with_any_shape_and_offsets_is_read_or_refused(shape, offsets, dtype):
    header, data = split_payload(payload(SEEDS["one tensor"]))
    header["t0"] = {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}
    assert_read_or_refused(join_payload(header, data))


def values_within(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each value in a body as its container and its key or index there."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, dict | list):
            yield from values_within(inner)


@FUZZ
@given(NAMES, st.dictionaries(st.text(max_size=6), JSON, min_size=1, max_size=3), st.data())
def test_a_reply_with_a_changed_body_is_read_or_refused(name, more, data):
    header, tensors = split_payload(payload(SEEDS[name]))
    if not more.keys() & header.keys():
        with pytest.raises(BadReply):
            read_as(SEEDS[name], join_payload({**header, **more}, tensors))
    body = json.loads(header["__metadata__"]["body"])
    holder, key = data.draw(st.sampled_from([*values_within(body)]))
    holder[key] = data.draw(JSON)
    assert_read_or_refused(join_payload(header, tensors, body), SEEDS[name])


def repeat_entry(old: str, new: str) -> bytes:
    """Return a reply of one tensor after an edit of its header that repeats an entry."""
    header, tensors = split_payload(payload(SEEDS["one tensor"]))
    text = edit_text(json.dumps(header), (old, new)).encode()
    return struct.pack("<Q", len(text)) + text + tensors


def reply_with_tensors(tensors: int) -> bytes:
    header, _ = split_payload(payload(SEEDS["nothing"]))
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    return join_payload({**header, **{f"t{i}": empty for i in range(tensors)}}, b"")


def nested_header(depth: int, in_body: bool) -> bytes:
    """Return a payload whose header, or the body in it, is JSON nested this deep."""
    text = '{"a":' * depth + "1" + "}" * depth
    text = json.dumps({"__metadata__": {"body": text}}) if in_body else text
    return struct.pack("<Q", len(text)) + text.encode()


INVALID_REPLIES = {
    "a tensor's name twice": repeat_entry('"t0":', '"t0": null, "t0":'),
    "a name of the body twice": repeat_entry(r"\"outputs\":", r"\"outputs\": [], \"outputs\":"),
    "one tensor more than is read": reply_with_tensors(TENSOR_LIMIT + 1),
    "very many tensors": reply_with_tensors(100_000),
    "100,000 nested headers": nested_header(100_000, in_body=False),
    "1,000 nested bodies": nested_header(1000, in_body=True),
    "100,000 nested bodies": nested_header(100_000, in_body=True),
}


@pytest.mark.parametrize("data", INVALID_REPLIES.values(), ids=INVALID_REPLIES)
def test_malformed_replies_are_refused(data):
    with pytest.raises(BadReply):
        read_reply(data)


FORM = Form("tuple", ("y", "rest"), (Form(), Form("tuple", ("low", ""), (Form(), Form("opaque")))))
CALL = Call("f", (NUMBERS,), returns=FORM, then=(FollowUp((Returned(0, (1, 1)),)),), watch=True)
KINDS = st.one_of(
    st.text(max_size=20),
    st.builds(
        misfit,
        st.integers(-1, 120),
        st.sampled_from(["tensor", "nothing", "without low", "without \n", ""]),
    ),
    st.sampled_from(
        [
            *("tensor", "NoneType", OPAQUE, "float", "sparse_coo float32 tensor", "tuple of 9", ""),
            *("list of 57", "tuple of \u0669", "in place of \u0660: tensor"),
            "in place of 0: tuple of \u0669",
        ]
    ),
)


@settings(FUZZ, max_examples=60)
@given(st.lists(st.tuples(KINDS, st.booleans()), min_size=4, max_size=4))
@example([("sparse_31415 float32 tensor", False)] * 4)
def test_outputs_of_any_kind_are_refused_or_described_in_our_words(kinds):
    """A check gets a tensor, or fails with a message made only of our own words."""
    outputs = [
        Output(kind, NUMBERS, None, None, (2, 3)) if has_tensor else Output(kind)
        for kind, has_tensor in kinds
    ]
    sent = Reply((*outputs[:2], Output(OPAQUE), *outputs[2:], Output(OPAQUE)))
    reply = read_reply(payload(replace(sent, operations=Operations(False))))
    if validate_reply(CALL, reply):
        return
    for answer in answers_of(CALL, reply):
        for attribute in ("dtype", "output") * (answer.form.kind != "opaque"):
            message = ""
            try:
                getattr(answer, attribute)
            except CheckFailed as failed:
                message = str(failed)
            if message:
                assert OUR_WORDS.fullmatch(message), message


OUR_WORDS = re.compile(
    r"(a tensor( of numbers)?|a pair( \(y, rest\))?|anything) was expected"
    r"( as (y|rest|low|rest\.low))?( of call [12])?; yours (has no low|"
    r"returned (an object of another type|None: is a return missing at its end\?|"
    r"a part that nobody looks at|a tensor of other things, or of rows of different lengths|"
    r"an? (tensor( alone)?|float|sparse_coo float32 tensor|(tuple|list) of [0-9]( or more)?)))"
)
STEM = "01_running_mean"
TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)  # half characters too
LINES = st.sampled_from(
    [
        *("%%bash", "!ls", "x = !ls", "x = %time 1", "?int", "int?", "%matplotlib", "a = 1"),
        *("\\", "%", "'''", "\x0c", "%%"),
    ]
)
CODE = TEXT | st.lists(LINES, max_size=6).map("\n".join)
LISTS_OF_NONE = st.lists(st.lists(st.none()))
CELL = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw", 1, None]),
        "source": CODE | st.lists(CODE, max_size=4) | st.integers() | st.none() | LISTS_OF_NONE,
        "metadata": st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
    },
)
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\0\r!%?"), max_size=30)


def read_file(name: str, data: bytes) -> Source:
    """Read an attempt, and check that it has either a valid text or a problem of one line."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        attempt = read_attempt(Path(folder), STEM, None, 64)
    attempt.text.encode("utf-8")
    assert "\0" not in attempt.text
    assert len(attempt.digest) == 64
    assert not (attempt.problem and attempt.text)
    assert len(attempt.problem) <= 300
    assert not any(unicodedata.category(c)[0] == "C" for c in attempt.problem)
    return attempt


@FUZZ
@given(st.binary(max_size=300), st.sampled_from([f"{STEM}.py", f"{STEM}.ipynb"]))
@example(b"\xef\xbb\xbf", f"{STEM}.py")
@example(b"\xff\xfe", f"{STEM}.py")
@example(b"\xed\xa0\x80", f"{STEM}.py")
@example(b"[" * 60_000, f"{STEM}.ipynb")
@example(b'{"cells":' * 6_000, f"{STEM}.ipynb")
@example(b"1" * 60_000, f"{STEM}.ipynb")
@example(b"NaN", f"{STEM}.ipynb")
def test_a_file_of_any_bytes_is_read_or_described_as_a_problem(data, name):
    read_file(name, data)


@FUZZ
@given(st.lists(CELL, max_size=5) | JSON | TEXT)
@example([{"cell_type": "code", "source": "x = '\ud800'"}])
@example([{"cell_type": "code", "source": "x = '\0'"}])
@example([{"cell_type": "code", "source": ["%%bash\n", "rm -rf /"]}])
@example([{"cell_type": "code", "source": "-" * 50_000 + "1"}])
@example([{"cell_type": "code", "source": "a" + ".b" * 20_000}])
@example([{"cell_type": "code", "source": "(" * 20_000}])
def test_a_notebook_of_any_cells_is_read_or_described_as_a_problem(cells):
    read_file(f"{STEM}.ipynb", json.dumps({"cells": cells}).encode())


@FUZZ
@given(st.lists(PLAIN, min_size=1, max_size=5))
def test_a_text_file_is_read_unchanged(lines):
    text = "\n".join(lines)
    attempt = read_file(f"{STEM}.py", text.encode("utf-8"))
    assert (attempt.problem, attempt.text) == ("", text.removeprefix("\ufeff"))
