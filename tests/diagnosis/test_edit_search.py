"""The search among edits: what is proved is told, and where it is not clear nothing is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from manyheads.diagnosis.edit_search import Bounds, OutOfTime, find_lines
from manyheads.diagnosis.edit_text import Edit


def edit(line: int, kind: str = "number", number: int = 0) -> Edit:
    return Edit(kind, 1, line, "", f"{kind} {line} {number}")


class Tried:
    """A trial that knows which texts look well and which pass, and when its time is over."""

    def __init__(self, right: Sequence[Edit], look_well: Sequence[Edit] = (), ends_after: int = 10**6) -> None:
        self.right, self.well = {e.after for e in right}, {e.after for e in (*right, *look_well)}
        self.looked: list[str] = []
        self.proved: list[str] = []
        self.ends_after = ends_after

    def look(self, texts: Sequence[str]) -> list[bool]:
        self.looked += texts
        if len(self.looked) > self.ends_after:
            raise OutOfTime
        return [text in self.well for text in texts]

    def passes(self, text: str) -> bool:
        self.proved.append(text)
        return text in self.right


EDITS = [edit(line) for line in range(1, 101)]


def lines(found: Sequence[Edit]) -> list[int]:
    return [each.line for each in found]


def test_one_line_that_mends_all_is_told() -> None:
    assert lines(find_lines(EDITS, Tried([EDITS[40]]), Bounds())) == [41]


def test_two_lines_are_told_in_their_order() -> None:
    assert lines(find_lines(EDITS[::-1], Tried([EDITS[40], EDITS[4]]), Bounds())) == [5, 41]


def test_of_three_lines_none_is_told() -> None:
    assert find_lines(EDITS, Tried([EDITS[4], EDITS[40], EDITS[50]]), Bounds()) == ()


def test_what_only_looks_well_is_not_told() -> None:
    tried = Tried([], look_well=[EDITS[3]])
    assert find_lines(EDITS, tried, Bounds()) == ()
    assert tried.proved == [EDITS[3].after]


def test_a_line_is_proved_once() -> None:
    twice = [edit(7, number=1), edit(7, number=2)]
    tried = Tried(twice)
    assert lines(find_lines(twice, tried, Bounds())) == [7]
    assert len(tried.proved) == 1


def test_after_the_first_proof_only_edits_of_its_kind_are_tried() -> None:
    first, other = edit(3, "sign"), edit(9, "swap")
    tried = Tried([first, other])
    assert lines(find_lines([first, *EDITS, other], tried, Bounds())) == [3]
    assert other.after not in tried.looked


def test_a_search_whose_time_is_over_tells_nothing_whatever_it_has_found() -> None:
    assert find_lines(EDITS, Tried([EDITS[0]], ends_after=50), Bounds()) == ()


def test_no_more_edits_are_tried_than_the_bound() -> None:
    tried = Tried([EDITS[40]])
    assert find_lines(EDITS, tried, Bounds(edits=40)) == ()
    assert len(tried.looked) == 40
    assert lines(find_lines(EDITS, Tried([EDITS[40]]), Bounds(edits=41))) == [41]


@pytest.mark.parametrize(("proofs", "told"), [(3, []), (4, [41])])
def test_no_more_edits_are_proved_than_the_bound(proofs: int, told: list[int]) -> None:
    tried = Tried([EDITS[40]], look_well=EDITS[:3])
    assert lines(find_lines(EDITS, tried, Bounds(proofs=proofs))) == told
    assert len(tried.proved) == proofs
