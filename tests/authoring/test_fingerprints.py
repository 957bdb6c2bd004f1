"""What is recorded of mutants is what every processor computes: nothing that chance or rounding decides."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from grader.authoring.fingerprints import _TraceBook, _traces
from grader.box.worker.messages import Call
from grader.judge.candidate import LocalPerformer
from grader.public.trace import Trace, trace_of

CALL = Call("f", (torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64),))


def recorded(f: object) -> Trace | None:
    names: Mapping[str, object] = {"f": f}
    (trace,) = _traces(LocalPerformer(names), [CALL])
    return trace


def by_a_sum_that_cancels(x: Tensor) -> Tensor:
    return x / (x.sum() - 1)


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(by_a_sum_that_cancels, id="a division by what rounding leaves"),
        pytest.param(lambda x: x.masked_fill(x.sum() == x.sum().float(), torch.nan), id="NaN if a sum is round"),
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
    traces = [trace_of(LocalPerformer({"f": lambda x, k=k: x * k}).perform(CALL)) for k in (1.0, 2.0, 2.0 + 1e-9, 3.0)]
    book = _TraceBook([traces[0]])
    answers = [book.enter("id", [trace]).answers for trace in traces]
    assert answers == [(0,), (1,), (1,), (2,)]
    assert len(book.traces[0]) == 3
