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


@pytest.mark.parametrize(("edits", "right", "looks_well", "bounds", "lines", "looks", "proofs"), [
    pytest.param(EDITS, [EDITS[40]], [], {}, [41], 100, 1, id="one line that mends all"),
    pytest.param(EDITS[::-1], [EDITS[40], EDITS[4]], [], {}, [5, 41], 100, 2, id="two lines, in their order"),
    pytest.param(EDITS, [EDITS[4], EDITS[40], EDITS[50]], [], {}, [], 64, 3, id="of three lines none"),
    pytest.param(EDITS, [], [EDITS[3]], {}, [], 100, 1, id="what only looks well is not told"),
    pytest.param(TWICE, TWICE, [], {}, [7], 2, 1, id="a line is proved once"),
    pytest.param([SIGN, *EDITS, SWAP], [SIGN, SWAP], [], {}, [3], 16, 1, id="after the first proof only edits of its kind"),
    pytest.param(EDITS, [EDITS[40]], [], {"edits": 40}, [], 40, 0, id="no more edits are tried than the bound"),
    pytest.param(EDITS, [EDITS[40]], [], {"edits": 41}, [41], 41, 1, id="the last edit within the bound"),
    pytest.param(EDITS, [EDITS[40]], EDITS[:3], {"proofs": 3}, [], 48, 3, id="no more edits are proved than the bound"),
    pytest.param(EDITS, [EDITS[40]], EDITS[:3], {"proofs": 4}, [41], 100, 4, id="the last proof within the bound"),
])  # fmt: skip
def test_lines_are_told_where_edits_of_them_are_proved(edits, right, looks_well, bounds, lines, looks, proofs):
    looked, proved = list[str](), list[str]()

    def look(texts: Sequence[str]) -> list[bool]:
        looked.extend(texts)
        return [text in {e.after for e in (*right, *looks_well)} for text in texts]

    def passes(text: str) -> bool:
        proved.append(text)
        return text in {e.after for e in right}

    assert [each.line for each in find_lines(edits, look, passes, Bounds(**bounds))] == lines
    assert (len(looked), len(proved)) == (looks, proofs)


def test_a_search_whose_time_is_over_raises_whatever_it_has_found() -> None:
    def look(texts: Sequence[str]) -> list[bool]:
        if EDITS[50].after in texts:
            raise OutOfTime
        return [text == EDITS[0].after for text in texts]

    with pytest.raises(OutOfTime):
        find_lines(EDITS, look, lambda _: True, Bounds())
