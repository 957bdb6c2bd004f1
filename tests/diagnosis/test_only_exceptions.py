"""Attempts whose every wrong answer is an exception: what they answer at other sizes decides between mistakes that raise alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from manyheads.diagnosis.table import table_without_recording
from torch import Tensor

from manyheads.box.worker.messages import Call
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import LocalRecordingRunner
from manyheads.checks.marks import Layer
from manyheads.checks.outcome import CheckOutcome
from manyheads.diagnosis import Bank, Mutant, diagnose

Attend = Callable[[Tensor, Tensor], Tensor]


def attend(
    scores: Attend = lambda q, k: q @ k.mT, mask: Attend = lambda q, k: torch.ones(q.shape[1], k.shape[1])
) -> Attend:
    """(B, T_q, C) and (B, T_k, C) -> (B, T_q, T_k): the scores below the diagonal."""
    return lambda q, k: scores(q, k) * mask(q, k).tril()


def square(q: Tensor, k: Tensor) -> Tensor:
    """A mask of queries by queries."""
    return torch.ones(q.shape[1], q.shape[1])


MUTANTS = {
    "mask_reversed": attend(mask=lambda q, k: 1 - torch.ones(q.shape[1], k.shape[1]).tril()),
    "mask_square": attend(mask=square),
    "wrong_side": attend(scores=lambda q, k: k @ q),
    "size_wrong_axis": attend(mask=lambda q, k: torch.ones(q.shape[1], q.shape[2])),
}
REFERENCE = LocalRunner({"attend": attend()})


@pytest.mark.parametrize(("attempt", "expected"), [
    pytest.param(lambda q, k: torch.where(square(q, k).tril().bool(), q @ k.mT, 0), ["mask_square"],
        id="what a mutant is"),
    pytest.param(attend(mask=lambda q, k: torch.ones(q.shape[1], len(q))), ["size_wrong_axis"],
        id="an axis no mutant reads"),
    pytest.param(MUTANTS["size_wrong_axis"], ["size_wrong_axis"], id="an axis that a mutant reads"),
    pytest.param(attend(scores=lambda q, k: q @ k), [], id="the same exception for another reason"),
    pytest.param(MUTANTS["wrong_side"], ["wrong_side"], id="a mutant that is right nowhere"),
])  # fmt: skip
def test_the_name_of_what_only_raises(attempt: Attend, expected: list[str]) -> None:
    subject = LocalRecordingRunner({"attend": attempt})
    calls = [
        Call("attend", (torch.randn(2, q, 7).double(), torch.randn(2, k, 7).double())) for q, k in ((3, 5), (4, 9))
    ]
    subject.check = "values"
    for call in calls:
        subject.execute(call)
    bank = Bank(None, tuple(Mutant(id_, {id_: 1}, {"attend": f}) for id_, f in MUTANTS.items()), {})
    exchanges, right = list(subject.transcript), LocalRecordingRunner(REFERENCE.namespace)
    right.check = "values"
    for call in calls:
        right.execute(call)
    table = table_without_recording(bank)
    failed = CheckOutcome("values", "attends", Layer.VALUES, 1.0, "", "failed", raised=exchanges[0].reply.raised)
    found = diagnose(bank, lambda: table, subject, REFERENCE, [failed], exchanges)
    assert [named.id for named in found.named] == expected
