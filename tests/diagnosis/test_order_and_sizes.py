"""Arguments in another order, and sizes that stay as they are: told from the calls alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch
from manyheads.diagnosis.explain_parts import takes_another_order
from torch import Tensor

from manyheads.box.worker.messages import Build, Call
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.transcript import Exchange
from manyheads.diagnosis.fixed_sizes import has_fixed_size


def scaled(x: Tensor, by: Tensor) -> Tensor:
    """The reference of these tests: (..., T) and () -> (..., T)."""
    return x * by


REFERENCE = LocalRunner({"scaled": scaled})
CALLS = [
    Call("scaled", (torch.arange(1.0, size + 1).double().expand(*lead, size), torch.tensor(2.0)))
    for size, lead in ((3, ()), (5, ()), (7, (2,)), (8, (2,)))
]


def exchanges_with(attempt: Callable[..., object]) -> tuple[LocalRunner, list[Exchange]]:
    subject = LocalRunner({"scaled": attempt})
    return subject, [Exchange("check", call, subject.execute(call)) for call in CALLS]


@pytest.mark.parametrize(("attempt", "expected"), [
    pytest.param(lambda by, x: (x - 1) * by + by.sum() if by.dim() else x * by, True, id="the other order"),
    pytest.param(lambda x, by: x * by, False, id="nothing is wrong"),
    pytest.param(lambda x, by: x * by * 2, False, id="the right order and wrong values"),
    pytest.param(lambda y, factor: y * factor * 2, False, id="names that nobody knows"),
    pytest.param(lambda by, x: x * by * 3, False, id="the other order and wrong values"),
])  # fmt: skip
def test_the_order_of_arguments(attempt: Callable[..., object], expected: bool) -> None:
    subject, exchanges = exchanges_with(attempt)
    assert takes_another_order(subject, REFERENCE, exchanges) is expected


@pytest.mark.parametrize(("attempt", "expected"), [
    pytest.param(lambda x, by: (x * by)[..., :2], True, id="an axis that never changes"),
    pytest.param(lambda x, by: x * by, False, id="nothing is fixed"),
    pytest.param(lambda x, by: (x * by)[..., 1:], False, id="an axis that is wrong and changes"),
    pytest.param(lambda x, by: (x * by).sum(), False, id="an axis that is lost"),
    pytest.param(lambda x, by: x.no_such_thing, False, id="always an exception"),
])  # fmt: skip
def test_sizes_that_stay(attempt: Callable[..., object], expected: bool) -> None:
    _, exchanges = exchanges_with(attempt)
    assert has_fixed_size(REFERENCE, exchanges) is expected


class Less(torch.nn.Module):
    """(T,), (T,) -> (T,)."""

    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        return x - other


class OtherOrder(torch.nn.Module):
    def forward(self, other: Tensor, x: Tensor) -> Tensor:
        return x - other


class OtherOrderAndValues(torch.nn.Module):
    def forward(self, other: Tensor, x: Tensor) -> Tensor:
        return 2 * x - other


@pytest.mark.parametrize(("made", "expected"), [
    pytest.param(OtherOrder, True, id="the other order"),
    pytest.param(OtherOrderAndValues, False, id="the other order and wrong values"),
    pytest.param(Less, False, id="nothing is wrong"),
])  # fmt: skip
def test_the_order_of_a_modules_inputs(made: type, expected: bool) -> None:
    call = Call(Build("Less", ()), (torch.arange(3.0), torch.ones(3)))
    subject = LocalRunner({"Less": made})
    exchanges = [Exchange("check", call, subject.execute(call))]
    assert takes_another_order(subject, LocalRunner({"Less": Less}), exchanges) is expected


def namespace(text: str) -> Mapping[str, object]:
    names: dict[str, object] = {}
    exec(text, names)
    return names


def test_a_decorator_that_passes_positions_on_keeps_the_names() -> None:
    text = """
import functools
def twice(f):
    @functools.wraps(f)
    def wrapped(*args):
        return f(*args) * 2
    return wrapped
@twice
def scaled(x, by):
    return x * by
"""
    reply = LocalRunner(namespace(text)).execute(Call("scaled", (), {"by": torch.tensor(3.0), "x": torch.ones(2)}))
    assert reply.raised is None
    assert reply.outputs[0].tensor.tolist() == [6.0, 6.0]
