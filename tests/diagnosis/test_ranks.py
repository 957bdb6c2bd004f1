"""A function that is right for one number of axes alone: told by the same numbers with other leading axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Call
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import LocalRecordingRunner
from manyheads.checks.transcript import Exchange
from manyheads.diagnosis.ranks import rank_of, works_for_another_rank


def products(q: Tensor, k: Tensor) -> Tensor:
    """The reference of these tests: (..., T, C) and (..., S, C) -> (..., T, S)."""
    return q @ k.mT


REFERENCE = LocalRunner({"products": products})
DRAWN = torch.Generator().manual_seed(0)
CALLS = [
    Call("products", tuple(torch.randn(*lead, n, 5, generator=DRAWN, dtype=torch.float64) for n in (3, 4)))
    for lead in ((), (2,), (2, 6))
]


def two_axes(q: Tensor, k: Tensor) -> Tensor:
    T, C = q.shape
    return q.reshape(T, C) @ k.mT


def three_axes(q: Tensor, k: Tensor) -> Tensor:
    return torch.bmm(q, k.mT)


def any_refused(q: Tensor, k: Tensor) -> Tensor:
    if q.dim() > 2:
        raise ValueError("at most two axes")
    return q @ k.mT


@pytest.mark.parametrize(
    ("attempt", "calls", "expected"),
    [
        pytest.param(two_axes, CALLS, True, id="two axes"),
        pytest.param(two_axes, CALLS[1:], True, id="two axes, and no check asks for two"),
        pytest.param(three_axes, CALLS, True, id="three axes"),
        pytest.param(three_axes, CALLS[2:], True, id="three axes, and no check asks for three"),
        pytest.param(lambda q, k: torch.einsum("b...qc,b...kc->b...qk", q, k), CALLS, True, id="one axis at least"),
        pytest.param(lambda q, k: (q[None, None] @ k.mT)[0] if q.dim() < 3 else q @ k.mT, CALLS, True, id="one too many"),
        pytest.param(products, CALLS, False, id="any number"),
        pytest.param(lambda q, k: 2 * q @ k.mT, CALLS, False, id="any number, and wrong values"),
        pytest.param(lambda q, k: 2 * torch.bmm(q, k.mT), CALLS, False, id="three axes, and wrong values"),
        pytest.param(lambda q, k: q @ k, CALLS, False, id="an exception for all of them"),
        pytest.param(any_refused, CALLS, False, id="a refusal"),
    ],
)  # fmt: skip
def test_a_number_of_axes(attempt: Callable[..., Tensor], calls: list[Call], expected: bool) -> None:
    subject = LocalRecordingRunner({"products": attempt})
    exchanges = [Exchange("check", call, subject.execute(call)) for call in calls]
    assert works_for_another_rank(subject, REFERENCE, exchanges) is expected


def test_who_fails_for_a_gradient_alone_has_no_number_of_axes_written_in() -> None:
    subject = LocalRecordingRunner({"products": lambda q, k: (q @ k.mT).exp().mul_(1.0).log()})
    calls = [dataclasses.replace(call, cotangent=torch.ones(*call.args[0].shape[:-1], 4).double()) for call in CALLS]
    exchanges = [Exchange("check", call, subject.execute(call)) for call in calls]
    assert all(exchange.reply.raised for exchange in exchanges)
    assert not works_for_another_rank(subject, REFERENCE, exchanges)


def test_the_rank_of_a_call_is_that_of_its_largest_tensor() -> None:
    assert [rank_of(call) for call in CALLS] == [2, 3, 4]
    assert rank_of(Call("products", (3,), {"mask": torch.ones(2)})) == 1
    assert rank_of(Call("products", (3,))) == 0
