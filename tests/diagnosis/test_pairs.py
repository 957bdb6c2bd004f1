"""A pair of mutants is named only if each of the two shows itself: where the attempt is right,
neither may be wrong.
"""

from collections.abc import Set
from dataclasses import dataclass

import pytest

from manyheads.diagnosis.pairs import _doubts

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
