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
from manyheads.diagnosis.observed_reply import observe_reply
from manyheads.diagnosis.pairs_of_mutants import _doubts, explaining_pair

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


RIGHT, WRONG, CALL = torch.ones(3), torch.zeros(3), Call("doubled", (torch.ones(3),))


def reply(numbers: torch.Tensor, *mutated: str) -> Reply:
    return Reply((Output("tensor", numbers, (3,)),), mutated=mutated)


@pytest.mark.parametrize("second_ids", [["mutated", "scale"], ["scale", "mutated"]])
def test_numbers_and_fields_of_two_mistakes_in_any_order_of_the_bank(second_ids) -> None:
    fields = {"reply_fields": ("outputs", "mutated"), "oracle_uses": ()}
    check = PublicCheck(id="", title="", layer=1, hint="", points=1, calls=(0,), **fields)
    replies = [*map(fingerprint_of, (reply(RIGHT), reply(WRONG), reply(RIGHT, "args.0")))]
    mutants = (RecordedMutant("scale", (1,)), *(RecordedMutant(id_, (2,)) for id_ in second_ids))
    recording = FaultDictionary("", "", (check,), (CALL,), ((RIGHT,),), [replies], mutants, {})
    wrong = {0: observe_reply(CALL, replies[0], (RIGHT,), reply(WRONG, "args.0"))}
    candidates = explaining_pair(Response(recording, wrong, wrong, {0}), lambda response: [])
    assert [candidate.id for candidate in candidates] == ["scale", "mutated"]
