"""A message arrives as it was sent, whatever its tensors are and however its bytes come in."""

import io

import pytest
import torch
from torch import Tensor

from manyheads.box.worker import wire
from manyheads.box.worker.messages import Call

TENSORS = {
    "numbers behind three bytes": (torch.tensor([True, False, True]), torch.arange(4.0).double()),
    "a number without axes": (torch.tensor(2.5),),
    "nothing": (torch.zeros(3, 0), torch.ones(2)),
    "half precision": (torch.arange(3).bfloat16(), torch.arange(3).half(), torch.ones(2)),
    "integers": (torch.tensor([[1, -2]]), torch.tensor([7], dtype=torch.uint8), torch.tensor([9], dtype=torch.int32)),
    "another order of its memory": (torch.arange(6.0).view(2, 3).T,),
    "a single number that stands apart": (torch.arange(6.0)[::6], torch.arange(6.0).view(2, 3)[:1, ::3]),
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
    one, other = wire.decode(data), wire.decode(data)
    assert isinstance(one, Call)
    assert isinstance(other, Call)
    one.args[0].add_(1)
    assert [t.tolist() for t in (*one.args, *other.args)] == [[2, 2], [1, 1], [1, 1], [1, 1]]


@pytest.mark.parametrize("at_once", [1, 5, 1 << 20])
def test_a_message_that_comes_in_pieces_is_whole_and_half_of_one_is_none(at_once: int) -> None:
    data = wire.encode(Call("f", (torch.arange(5.0),)))
    received = wire.receive(trickle(data, at_once))
    assert isinstance(received, Call)
    assert received.args[0].tolist() == [0, 1, 2, 3, 4]
    assert wire.receive(trickle(data[:-1], at_once)) is None
    assert wire.receive(trickle(b"", at_once)) is None
