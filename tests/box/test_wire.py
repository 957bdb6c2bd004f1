"""A message arrives as it was sent, and nothing else is read at all."""

import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.box.replies import BadReply, read_traced
from manyheads.box.worker import wire
from manyheads.box.worker.messages import (
    DEPTH,
    ELEMENTS,
    MOST_AXES,
    ORDER,
    SIDES,
    SLICES,
    STEPS,
    Call,
    Slice,
    TraceCall,
    Traced,
)
from manyheads.box.worker.trace_operations import trace

TENSORS = {
    "numbers behind three bytes": (torch.tensor([True, False, True]), torch.arange(4.0).double()),
    "a number without axes": (torch.tensor(2.5),),
    "nothing": (torch.zeros(3, 0), torch.ones(2)),
    "as many axes as there may be": (torch.arange(2.0).view([1] * (MOST_AXES - 1) + [2]),),
    "half precision": (torch.arange(3).bfloat16(), torch.arange(3).half(), torch.ones(2)),
    "integers": (
        torch.tensor([[1, -2]]),
        torch.tensor([7], dtype=torch.uint8),
        torch.tensor([9], dtype=torch.int32),
    ),
    "another order of its memory": (torch.arange(6.0).view(2, 3).T,),
    "a single number that stands apart": (
        torch.arange(6.0)[::6],
        torch.arange(6.0).view(2, 3)[:1, ::3],
    ),
}


class Trickle(io.BytesIO):
    """A file from which a few bytes come at a time."""

    at_once = 1

    def readinto(self, into: memoryview, /) -> int:
        return super().readinto(into[: self.at_once])


def trickle(data: bytes, at_once: int) -> io.BufferedReader:
    raw = Trickle(data)
    raw.at_once = at_once
    return io.BufferedReader(raw)


@pytest.mark.parametrize("length", range(8))
def test_the_numbers_of_a_message_begin_at_a_multiple_of_eight_bytes(length: int) -> None:
    assert len(wire.header("x" * length, [torch.ones(2)])) % 8 == 0


def test_a_message_has_only_what_its_sender_has_set() -> None:
    assert wire.to_body(Call("double", kwargs={}), []) == {"$": "Call", "subject": "double"}
    equal_to_its_default: Any = 0  # which is False
    body = wire.to_body(Call("double", second=equal_to_its_default), [])
    assert body == {"$": "Call", "subject": "double", "second": 0}


def same(a: Tensor, b: object) -> bool:
    return isinstance(b, Tensor) and a.dtype == b.dtype and torch.equal(a, b)


@pytest.mark.parametrize("tensors", [pytest.param(t, id=name) for name, t in TENSORS.items()])
def test_tensors_arrive_with_their_dtypes_and_shapes(tensors: tuple[Tensor, ...]) -> None:
    received = wire.decode(wire.encode(Call("f", tensors)))
    assert isinstance(received, Call)
    assert all(map(same, tensors, received.args))
    assert not any(tensor.data_ptr() % tensor.itemsize for tensor in received.args)


def test_what_arrives_can_be_written_to_and_is_nobody_elses() -> None:
    data = wire.encode(Call("f", (torch.ones(2), torch.ones(2))))
    changed, untouched = wire.decode(data), wire.decode(data)
    assert isinstance(changed, Call)
    assert isinstance(untouched, Call)
    changed.args[0].add_(1)
    assert [t.tolist() for t in (*changed.args, *untouched.args)] == [
        [2, 2],
        [1, 1],
        [1, 1],
        [1, 1],
    ]


@pytest.mark.parametrize("at_once", [1, 5, 1 << 20])
def test_a_message_that_comes_in_pieces_is_whole_and_half_of_one_is_none(at_once: int) -> None:
    data = wire.encode(Call("f", (torch.arange(5.0),)))
    received = wire.receive(trickle(data, at_once))
    assert isinstance(received, Call)
    assert received.args[0].tolist() == [0, 1, 2, 3, 4]
    assert wire.receive(trickle(data[:-1], at_once)) is None
    assert wire.receive(trickle(b"", at_once)) is None


SLICE = {"$": "Slice", "axis": 0, "start": 0, "stop": 1}
SOURCE = (
    "import torch\ndef f(x):\n    y = x.mT\n    for _ in range(3):\n"
    "        y = (y + 1) / 2.5\n    return y.sum(), y\n"
)


def pack_body(body: object, tensors: list[torch.Tensor]) -> bytes:
    return wire.pack(body, tensors)[wire.LENGTH.size :]


@pytest.fixture(scope="module")
def example_trace() -> Traced:
    namespace: dict[str, object] = {}
    exec(compile(SOURCE, "a.py", "exec"), namespace)
    return trace(namespace, TraceCall(Call("f", (torch.ones(2, 3),)), (2, 2), 2), "a.py")


@pytest.fixture(scope="module")
def honest(example_trace: Traced) -> tuple[Any, list[torch.Tensor]]:
    tensors: list[torch.Tensor] = []
    return wire.to_body(example_trace, tensors), tensors


def test_what_is_honest_is_read_as_it_was_sent(example_trace: Traced) -> None:
    read = read_traced(wire.encode(example_trace)[wire.LENGTH.size :])
    assert (read.order, read.dropped, len(read.steps)) == (
        example_trace.order,
        example_trace.dropped,
        len(example_trace.steps),
    )
    for received, theirs in zip(read.steps, example_trace.steps, strict=True):
        assert received.name == theirs.name
        for field in ("lines", "sites", "inputs", "outputs", "slices"):
            assert getattr(received, field) == getattr(theirs, field)
        assert [torch.equal(a, b) for a, b in zip(received.crops, theirs.crops, strict=True)] == [
            True
        ] * len(received.crops)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(["order"], [99], id="a step that is not there"),
        pytest.param(["order"], [0] * (ORDER + 1), id="an order without end"),
        pytest.param(["order"], [-1], id="a step before the first"),
        pytest.param(["steps", 0, "name"], "n" * 61, id="a long name"),
        pytest.param(["steps", 0, "name"], "\ud800", id="half a surrogate pair"),
        pytest.param(["steps", 0, "lines"], [], id="no line"),
        pytest.param(["steps", 0, "lines"], [True], id="a truth value in place of a number"),
        pytest.param(["steps", 0, "lines"], [1] * (DEPTH + 1), id="lines without end"),
        pytest.param(["steps", 0, "storage"], "stolen", id="a word that was not agreed"),
        pytest.param(["steps", 0, "numbers"], ["2"], id="a number that is text"),
        pytest.param(["steps", 0, "inputs", 0, "shape"], [1 << 62], id="a shape of 2^62"),
        pytest.param(["steps", 0, "inputs", 0, "extra"], 1, id="a field that was not agreed"),
        pytest.param(
            ["steps", 0, "crops"], [{"$": "tensor", "index": 77}], id="a tensor that is not there"
        ),
        pytest.param(
            ["steps", 0, "slices"],
            [{**SLICE, "axis": -1}],
            id="a slice along an axis before the first",
        ),
        pytest.param(["steps", 0, "slices"], [SLICE] * (SLICES + 1), id="slices without end"),
        pytest.param(["dropped"], None, id="nothing where a number belongs"),
        pytest.param(["reply"], None, id="no reply"),
        *(
            pytest.param(["reply", "peak"], peak, id=f"a peak of {peak!r}")
            for peak in (-1, 1 << 40, 0.5, "0", True, [0])
        ),
        pytest.param(["$"], "Reply", id="another message"),
    ],
)
def test_what_was_not_agreed_is_not_read(honest, path, value):
    body, tensors = copy.deepcopy(honest[0]), honest[1]
    at = body
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(BadReply):
        read_traced(pack_body(body, tensors))


def test_as_many_slices_as_were_agreed_are_read(honest: tuple[Any, list[torch.Tensor]]) -> None:
    body = copy.deepcopy(honest[0])
    body["steps"][0]["slices"] = [SLICE] * SLICES
    assert read_traced(pack_body(body, honest[1])).steps[0].slices == (Slice(0, 0, 1),) * SLICES


def test_more_than_was_agreed_is_not_read(honest: tuple[Any, list[torch.Tensor]]) -> None:
    many, wide, large = (copy.deepcopy(honest[0]) for _ in range(3))
    many["steps"] = many["steps"] * STEPS
    wide["steps"][0]["inputs"] *= SIDES + 1
    tensors = list(honest[1])
    tensors[large["steps"][0]["crops"][0]["index"]] = torch.zeros(ELEMENTS + 1)
    for body, body_tensors, says in (
        (many, honest[1], "steps"),
        (wide, honest[1], "inputs"),
        (large, tensors, "crops"),
    ):
        with pytest.raises(BadReply, match=says):
            read_traced(pack_body(body, body_tensors))


@pytest.mark.parametrize("shape", [[1 << 40, 0], [0, -1], [0] * (MOST_AXES + 1)])
def test_a_shape_out_of_bounds_is_not_read_even_without_numbers(shape: list[int]) -> None:
    message = wire.encode((torch.zeros(0),))[wire.LENGTH.size :]
    length = int.from_bytes(message[:8], "little")
    header = message[8:].replace(b'"shape": [0]', b'"shape": ' + str(shape).encode())
    payload = (length + len(header) - len(message[8:])).to_bytes(8, "little") + header
    with pytest.raises(ValueError, match="out of bounds"):
        wire.unpack(bytearray(payload))


class WithOwnDetach(Tensor):
    """A tensor of an attempt."""

    def detach(self) -> Tensor:
        raise AssertionError("the attempt's code was called")


def test_a_tensor_of_an_attempts_class_is_sent_without_calling_its_code() -> None:
    bare = wire.bare(torch.ones(2).as_subclass(WithOwnDetach))
    assert type(bare) is Tensor
    assert bare.tolist() == [1, 1]
