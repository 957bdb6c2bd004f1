"""The search among edits: what is proved is told, and where it is not clear nothing is."""

from collections.abc import Sequence

import pytest

from manyheads.lines.code_parts import Edit
from manyheads.lines.find_lines import Bounds, OutOfTime, find_lines


def edit(line: int, kind: str = "number", number: int = 0) -> Edit:
    return Edit(kind, 1, line, "", f"{kind} {line} {number}")


EDITS = [edit(line) for line in range(1, 101)]
TWICE = [edit(7, number=1), edit(7, number=2)]
SIGN, SWAP = edit(3, "sign"), edit(9, "swap")


class Tried:
    """Which texts look well and which pass; notes which were looked at and which were proved."""

    def __init__(self, right: Sequence[Edit], look_well: Sequence[Edit] = ()) -> None:
        self.right, self.well = {e.after for e in right}, {e.after for e in (*right, *look_well)}
        self.looked: list[str] = []
        self.proved: list[str] = []

    def look(self, texts: Sequence[str]) -> list[bool]:
        self.looked += texts
        return [text in self.well for text in texts]

    def passes(self, text: str) -> bool:
        self.proved.append(text)
        return text in self.right

    def lines(self, edits: Sequence[Edit], /, **bounds: int) -> list[int]:
        return [each.line for each in find_lines(edits, self.look, self.passes, Bounds(**bounds))]


@pytest.mark.parametrize(("edits", "right", "looks_well", "lines", "proofs"), [
    pytest.param(EDITS, [EDITS[40]], [], [41], 1, id="one line that mends all"),
    pytest.param(EDITS[::-1], [EDITS[40], EDITS[4]], [], [5, 41], 2, id="two lines, in their order"),
    pytest.param(EDITS, [EDITS[4], EDITS[40], EDITS[50]], [], [], 3, id="of three lines none"),
    pytest.param(EDITS, [], [EDITS[3]], [], 1, id="what only looks well is not told"),
    pytest.param(TWICE, TWICE, [], [7], 1, id="a line is proved once"),
    pytest.param([SIGN, *EDITS, SWAP], [SIGN, SWAP], [], [3], 1, id="after the first proof only edits of its kind"),
])  # fmt: skip
def test_lines_are_told_where_edits_of_them_are_proved(edits, right, looks_well, lines, proofs):
    tried = Tried(right, looks_well)
    assert tried.lines(edits) == lines
    assert len(tried.proved) == proofs
    assert SWAP.after not in tried.looked


def test_a_search_whose_time_is_over_raises_whatever_it_has_found() -> None:
    def look(texts: Sequence[str]) -> list[bool]:
        if EDITS[50].after in texts:
            raise OutOfTime
        return [text == EDITS[0].after for text in texts]

    with pytest.raises(OutOfTime):
        find_lines(EDITS, look, lambda _: True, Bounds())


@pytest.mark.parametrize(("edits", "told"), [(40, []), (41, [41])])
def test_no_more_edits_are_tried_than_the_bound(edits: int, told: list[int]) -> None:
    tried = Tried([EDITS[40]])
    assert tried.lines(EDITS, edits=edits) == told
    assert len(tried.looked) == edits


@pytest.mark.parametrize(("proofs", "told"), [(3, []), (4, [41])])
def test_no_more_edits_are_proved_than_the_bound(proofs: int, told: list[int]) -> None:
    tried = Tried([EDITS[40]], look_well=EDITS[:3])
    assert tried.lines(EDITS, proofs=proofs) == told
    assert len(tried.proved) == proofs
