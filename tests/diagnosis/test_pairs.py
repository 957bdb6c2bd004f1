"""A pair of mutants is named only if each of the two shows itself: where the attempt is right,
neither may be wrong.
"""

from collections.abc import Set
from dataclasses import dataclass

import pytest
import torch

from manyheads.box.worker.messages import Call, Output, Reply
from manyheads.diagnosis.fault_dictionary import (
    FaultDictionary,
    PublicCheck,
    RecordedMutant,
    Response,
)
from manyheads.diagnosis.fingerprint import fingerprint_of
from manyheads.diagnosis.observed_reply import observed
from manyheads.diagnosis.pairs import _doubts, explaining_pair

FIRST, SECOND = 0, 1


@dataclass(frozen=True)
class Answers:
    """What `_doubts` reads of a row: the calls that are asked, those that the attempt gets wrong,
    and those that a mutant does.
    """

    calls: Set[int]
    syndrome: Set[int]
    changed: dict[int, Set[int]]

    def is_uninformative(self, mutant: int, call: int) -> bool:
        return False

    def survives(self, mutant: int, call: int) -> bool:
        return call not in self.changed[mutant]

    def explains(self, mutant: int, call: int) -> bool:
        return call in self.changed[mutant]


@pytest.mark.parametrize(
    ("first", "second", "doubts"),
    [
        pytest.param({1, 3}, {2, 3}, 0, id="each is wrong where the attempt is"),
        pytest.param({0, 1}, {2, 3}, None, id="one is wrong where the attempt is right"),
        pytest.param({0, 1}, {0, 2}, None, id="both are, and undo each other there"),
    ],
)
def test_neither_of_two_may_be_wrong_where_the_attempt_is_right(first, second, doubts) -> None:
    row = Answers(calls={0, 1, 2, 3}, syndrome={1, 2, 3}, changed={FIRST: first, SECOND: second})
    assert _doubts(row, (FIRST, SECOND))[0] == doubts


X, Y = torch.ones(3), torch.full((3,), 2.0)


def reply(numbers: torch.Tensor, mutated: tuple[str, ...] = ()) -> Reply:
    return Reply(outputs=(Output("tensor", numbers, (3,), "torch.float32"),), mutated=mutated)


REFERENCE, WRONG_NUMBERS, CHANGED = reply(X), reply(Y), reply(X, ("args.0",))
CALL = Call("doubled", (X,))


@pytest.mark.parametrize(
    "mutants",
    [
        pytest.param([("scale", 1), ("mutated", 2), ("scale", 2)], id="another one first"),
        pytest.param([("scale", 1), ("scale", 2), ("mutated", 2)], id="the same one first"),
    ],
)
def test_numbers_and_fields_of_two_misconceptions_whatever_the_order_of_the_bank(mutants) -> None:
    check = PublicCheck(
        id="check",
        title="",
        layer=1,
        hint="",
        points=1,
        calls=(0,),
        reply_fields=("outputs", "mutated"),
        oracle_uses=(),
    )
    recording = FaultDictionary(
        exercise="any",
        stub="",
        checks=(check,),
        calls=(CALL,),
        expected=((X,),),
        replies=[tuple(map(fingerprint_of, (REFERENCE, WRONG_NUMBERS, CHANGED)))],
        mutants=tuple(RecordedMutant(id_, (index,)) for id_, index in mutants),
        words={},
    )
    expected = recording.expected_reply(0)
    replies = {0: observed(CALL, expected, (X,), reply(Y, ("args.0",)))}
    response = Response(recording, written=replies, syndrome=replies, calls={0})
    candidates = explaining_pair(response, lambda response: [])
    assert [candidate.id for candidate in candidates] == ["scale", "mutated"]
