"""What is recorded of mutants is what every processor computes: nothing that chance or rounding decides."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from manyheads.authoring.fingerprints import _KnownReplies, _replies
from manyheads.box.worker.messages import Call
from manyheads.checks.implementation import LocalRunner
from manyheads.public.fingerprint import ReplyFingerprint, fingerprint_of

CALL = Call("f", (torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64),))


def recorded(f: object) -> ReplyFingerprint | None:
    names: Mapping[str, object] = {"f": f}
    known = _KnownReplies([fingerprint_of(LocalRunner({"f": lambda x: x}).execute(CALL))])
    (found,) = _replies(LocalRunner(names), [CALL], known)
    return found


def by_a_sum_that_cancels(x: Tensor) -> Tensor:
    return x / (x.sum() - 1)


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(by_a_sum_that_cancels, id="a division by what rounding leaves"),
        pytest.param(lambda x: x.masked_fill(x.sum() == x.sum().float(), torch.nan), id="NaN if a sum is round"),
        pytest.param(lambda x: (1e12 * x).sin(), id="numbers of an ordinary size"),
    ],
)
def test_what_rounding_decides_is_not_recorded(f: object) -> None:
    assert recorded(f) is None


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda x: x * 1e9, id="large numbers"),
        pytest.param(lambda x: x.masked_fill(x > 0.25, torch.nan), id="NaN where it always is"),
        pytest.param(lambda x: x.masked_fill(x > 0.25, -torch.inf), id="an infinity"),
    ],
)
def test_what_is_large_or_no_number_by_itself_is_recorded(f: object) -> None:
    assert recorded(f) is not None


def test_answers_that_differ_by_rounding_are_kept_once() -> None:
    replies = [
        fingerprint_of(LocalRunner({"f": lambda x, k=k: x * k}).execute(CALL)) for k in (1.0, 2.0, 2.0 + 1e-9, 3.0)
    ]
    known = _KnownReplies([replies[0]])
    answers = [known.add("id", [each]).answers for each in replies]
    assert answers == [(0,), (1,), (1,), (2,)]
    assert len(known.replies[0]) == 3


def test_what_is_left_of_numbers_that_cancel_is_zero() -> None:
    nothing, rest, little = (
        fingerprint_of(LocalRunner({"f": lambda x, k=k: x * k}).execute(CALL)) for k in (0, 3e-10, 1e-4)
    )
    assert rest.is_same(nothing)
    assert not little.is_same(nothing)


def test_of_a_call_in_float32_what_its_rounding_decides_is_not_recorded() -> None:
    call = dataclasses.replace(CALL, dtype="float32")
    runner = LocalRunner({"f": lambda x: (1e7 * x.float()).sin()})
    known = _KnownReplies([fingerprint_of(LocalRunner({"f": lambda x: x}).execute(call))])
    assert _replies(runner, [call], known) == (None,)
