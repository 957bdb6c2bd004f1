"""The answer to a TraceCall as bytes: what is honest is read as it was sent, and nothing else is read at all."""

import copy
import random
from typing import Any

import pytest
import torch

from manyheads.box.replies import BadReply, read_traced
from manyheads.box.worker import wire
from manyheads.box.worker.answers import DEPTH, ELEMENTS, ORDER, SIDES, STEPS, Traced
from manyheads.box.worker.messages import Call, TraceCall
from manyheads.box.worker.tracing import trace

SOURCE = (
    "import torch\ndef f(x):\n    y = x.mT\n    for _ in range(3):\n        y = (y + 1) / 2.5\n    return y.sum(), y\n"
)


def sent(body: object, tensors: list[torch.Tensor]) -> bytes:
    return wire.pack(body, tensors)[wire.LENGTH.size :]


@pytest.fixture(scope="module")
def traced() -> Traced:
    namespace: dict[str, object] = {}
    exec(compile(SOURCE, "a.py", "exec"), namespace)
    return trace(namespace, TraceCall(Call("f", (torch.ones(2, 3),)), (2, 2), 2), "a.py")


@pytest.fixture(scope="module")
def honest(traced: Traced) -> tuple[Any, list[torch.Tensor]]:
    tensors: list[torch.Tensor] = []
    return wire.to_body(traced, tensors), tensors


def test_what_is_honest_is_read_as_it_was_sent(traced: Traced) -> None:
    read = read_traced(wire.encode(traced)[wire.LENGTH.size :])
    assert (read.order, read.dropped, len(read.steps)) == (traced.order, traced.dropped, len(traced.steps))
    for mine, theirs in zip(read.steps, traced.steps, strict=True):
        assert mine.name == theirs.name
        for part in ("lines", "sites", "inputs", "outputs"):
            assert getattr(mine, part) == getattr(theirs, part)
        assert [torch.equal(a, b) for a, b in zip(mine.crops, theirs.crops, strict=True)] == [True] * len(mine.crops)


@pytest.mark.parametrize(("path", "value"), [
    pytest.param(["order"], [99], id="a step that is not there"),
    pytest.param(["order"], [0] * (ORDER + 1), id="an order without end"),
    pytest.param(["order"], [-1], id="a step before the first"),
    pytest.param(["steps", 0, "name"], "n" * 61, id="a long name"),
    pytest.param(["steps", 0, "lines"], [], id="no line"),
    pytest.param(["steps", 0, "lines"], [1] * (DEPTH + 1), id="lines without end"),
    pytest.param(["steps", 0, "storage"], "stolen", id="a word that was not agreed"),
    pytest.param(["steps", 0, "numbers"], ["2"], id="a number that is text"),
    pytest.param(["steps", 0, "inputs", 0, "shape"], [1 << 62], id="a shape of 2^62"),
    pytest.param(["steps", 0, "inputs", 0, "extra"], 1, id="a field that was not agreed"),
    pytest.param(["steps", 0, "crops"], [{"$": "tensor", "index": 77}], id="a tensor that is not there"),
    pytest.param(["dropped"], None, id="nothing where a number belongs"),
    pytest.param(["reply"], None, id="no reply"),
    pytest.param(["$"], "Reply", id="another message"),
])  # fmt: skip
def test_what_was_not_agreed_is_not_read(honest, path, value):
    body, tensors = copy.deepcopy(honest[0]), honest[1]
    at = body
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    with pytest.raises(BadReply):
        read_traced(sent(body, tensors))


def test_more_than_was_agreed_is_not_read(honest: tuple[Any, list[torch.Tensor]]) -> None:
    many, wide, large = (copy.deepcopy(honest[0]) for _ in range(3))
    many["steps"] = many["steps"] * STEPS
    wide["steps"][0]["inputs"] *= SIDES + 1
    tensors = list(honest[1])
    tensors[large["steps"][0]["crops"][0]["index"]] = torch.zeros(ELEMENTS + 1)
    for body, held, says in (
        (many, honest[1], "steps"), (wide, honest[1], "inputs"), (large, tensors, "crops")
    ):  # fmt: skip
        with pytest.raises(BadReply, match=says):
            read_traced(sent(body, held))


def test_mutated_bytes_are_an_answer_or_a_bad_one(honest: tuple[Any, list[torch.Tensor]]) -> None:
    data = sent(*honest)
    chance = random.Random(8)
    refused = 0
    for _ in range(400):
        spoilt = bytearray(data)
        for _ in range(chance.randint(1, 8)):
            spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
        try:
            read_traced(bytes(spoilt[: chance.randint(0, len(spoilt))] if chance.random() < 0.2 else spoilt))
        except BadReply:
            refused += 1
    assert refused > 200
