"""Messages between judge and worker: encoding, decoding, and refusal of malformed tensors."""

import io
import json
import math
import struct
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.box.worker import wire
from manyheads.box.worker.messages import Call

DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Draw a tensor of any dtype and shape; it may be strided or permuted."""
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    gap = draw(st.integers(1, 2))
    numbers = torch.arange(-2, gap * math.prod(shape) - 2).to(draw(st.sampled_from(DTYPES)))
    return numbers.reshape(*shape, gap)[..., 0].permute(draw(st.permutations(range(len(shape)))))


class Trickle(io.BytesIO):
    """A file that returns only a few bytes at each read."""

    def __init__(self, data: bytes, bytes_at_once: int) -> None:
        super().__init__(data)
        self.bytes_at_once = bytes_at_once

    def readinto(self, into: memoryview, /) -> int:
        return super().readinto(into[: self.bytes_at_once])


def received_in_pieces(data: bytes, bytes_at_once: int) -> object:
    return wire.receive(io.BufferedReader(Trickle(data, bytes_at_once)))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(tensors(), max_size=4), st.sampled_from([1, 5, 1 << 20]), st.floats(0, 0.999))
def test_tensors_arrive_unchanged_and_an_incomplete_message_is_none(
    sent, bytes_at_once, received_share
):
    data = wire.encode(Call("f", tuple(sent)))
    for message in (wire.decode(data), received_in_pieces(data, bytes_at_once)):
        assert isinstance(message, Call)
        for tensor, received in zip(sent, message.args, strict=True):
            assert isinstance(received, Tensor)
            assert received.dtype == tensor.dtype
            assert torch.equal(received, tensor)
            assert received.data_ptr() % received.itemsize == 0
            received.zero_()
    assert received_in_pieces(data[: int(received_share * len(data))], bytes_at_once) is None


def test_a_message_omits_fields_with_default_values() -> None:
    assert wire.to_body(Call("double", kwargs={}), []) == {"$": "Call", "subject": "double"}
    equal_to_its_default: Any = 0  # which is False
    body = wire.to_body(Call("double", second=equal_to_its_default), [])
    assert body == {"$": "Call", "subject": "double", "second": 0}


X = torch.ones(3, dtype=torch.float64)


def test_encoded_tensors_are_aligned() -> None:
    for length in range(8):
        assert len(wire.encode(Call("f" * length, (X,)))) % X.itemsize == 0


class HostileTensor(Tensor):
    """A subclass whose methods must not be called."""

    def detach(self) -> Tensor:
        raise AssertionError("its code was called")


def test_a_subclass_of_tensor_is_sent_without_its_code() -> None:
    message = wire.decode(wire.encode(Call("f", (X.as_subclass(HostileTensor),))))
    assert isinstance(message, Call)
    (received,) = message.args
    assert type(received) is Tensor
    assert torch.equal(received, X)


def make_payload(shape: list[int], byte_count: int) -> bytearray:
    """Return a payload of one float32 tensor whose header has this shape and length."""
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, byte_count]}
    header = json.dumps({"__metadata__": {"body": "null"}, "t0": entry}).encode()
    return bytearray(struct.pack("<Q", len(header)) + header + bytes(byte_count))


@pytest.mark.parametrize(
    ("shape", "byte_count"),
    [([1] * 64, 4), ([0] * 64, 0), ([(1 << 40) - 1, 0], 0), ([], 4)],
    ids=["64 axes", "64 empty axes", "a long axis", "no axis"],
)
def test_a_tensor_has_the_shape_in_the_header(shape: list[int], byte_count: int) -> None:
    body, (tensor,) = wire.unpack(make_payload(shape, byte_count))
    assert (body, list(tensor.shape)) == (None, shape)


@pytest.mark.parametrize(
    ("shape", "byte_count"),
    [
        pytest.param([1] * 65, 4, id="too many axes"),
        pytest.param([1 << 40, 0], 0, id="a long axis"),
        pytest.param([-1, -1], 4, id="a negative size"),
        pytest.param([2], 4, id="too few bytes"),
        pytest.param([1], 8, id="too many bytes"),
    ],
)
def test_a_tensor_of_an_impossible_size_is_refused(shape: list[int], byte_count: int) -> None:
    with pytest.raises(ValueError, match="shape"):
        wire.unpack(make_payload(shape, byte_count))
