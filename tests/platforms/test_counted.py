"""What counts, cell by cell: nbgrader's total is the same share of all points as what counts is of the points possible."""

import pytest

from manyheads.platforms.nbgrader_writer import KnownCell, cell_scores, late_share
from manyheads.result import Adjustment, ExerciseResult, Result
from tests import make


def cell(name: str, points: float, *checks: str) -> KnownCell:
    about = {"grade": True, "solution": False, "points": points, "checksum": ""}
    return KnownCell(name, "", {"nbgrader": about, "manyheads": {"checks": checks}})


CELLS = [cell("shape", 1, "shape"), cell("values", 3, "split", "merge"), cell("visible", 0)]


def exercise(score: float, *adjustments: Adjustment, excused: bool = False) -> ExerciseResult:
    """1 of 1, 1 of 1, 0 of 2."""
    checks = make.check("shape", 1), make.check("split", 1), make.check("merge", 0, 2)
    return make.exercise("dance", *checks, score=score, adjustments=adjustments, excused=excused)


def result(own: ExerciseResult, score: float, most: float) -> Result:
    return make.result("ada", own, assignment="heads", score=score, max_score=most)


LATE = Adjustment(rule="late", words="late", before=2, after=1.6)
BY_HAND = Adjustment(rule="score", words="by hand", before=2, after=3)


@pytest.mark.parametrize(("own", "scores", "late"), [
    pytest.param(exercise(2), [1, 1, 0], 0, id="what was found"),
    pytest.param(exercise(1.6, LATE), [1, 1, 0], 0.2, id="late: before the penalty"),
    pytest.param(exercise(3, BY_HAND), [0.75, 2.25, 0], 0, id="by hand: shared by the cells' points"),
    pytest.param(exercise(1.6, LATE, excused=True), [0.5, 1.5, 0], 0, id="excused: the others' share"),
])  # fmt: skip
def test_cells_add_up_to_what_counts(own: ExerciseResult, scores: list[float], late: float) -> None:
    of = result(own, 5, 10) if own.excused else result(own, own.score, 4)
    assert cell_scores(own, of, CELLS) == pytest.approx(scores)
    assert late_share(own) == pytest.approx(late)
    whole = exercise(2, excused=True)  # its cells stay as found
    assert cell_scores(whole, result(whole, 0, 0), CELLS) == [1, 1, 0]
