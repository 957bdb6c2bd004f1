"""What dates and decisions make of an exercise that the grader itself could not judge."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from manyheads.course.decisions import Decisions
from manyheads.course.final import final
from manyheads.result import Result, with_total

from .conftest import result

Decide = Callable[[str], Decisions]
IN_TIME, LATE = "2026-12-01 17:00+01:00", "2026-12-03 12:00+01:00"


def ungraded(handed_in: str = IN_TIME) -> Result:
    """6 of 6, and one exercise of 4 whose check `values` could not be run; `shape` gave 1."""
    found = result(handed_in=handed_in)
    mean, median = found.exercises
    values = mean.checks[1].model_copy(update={"outcome": "skipped", "score": 0.0})
    return with_total(found, (mean.model_copy(update={"score": None, "checks": (mean.checks[0], values)}), median))


def scores(counted: Result) -> tuple[float | None, ...]:
    return (counted.score, *(each.score for each in counted.exercises))


def test_nothing_decided_leaves_it_without_points_and_without_a_total(decide: Decide) -> None:
    assert scores(final(ungraded(), decide(""))) == (None, None, 6)


def test_being_late_costs_what_there_is_and_makes_no_total(decide: Decide) -> None:
    counted = final(ungraded(LATE), decide(""))
    assert scores(counted) == (None, None, 4.8)
    assert [(each.words, each.before, each.after) for each in counted.adjustments] == [
        ("2 days late: −20% (10% a day, at most 50%)", 0, 0)
    ]


@pytest.mark.parametrize(("row", "found"), [
    pytest.param("exercise: mean, score: 3", (9, 3, 6), id="a score by hand gives it points"),
    pytest.param("exercise: mean, excused: true", (6, None, 6), id="an excuse leaves a total of the rest"),
    pytest.param("assignment: averages, excused: true", (0, None, 6), id="an excuse for all of it"),
])  # fmt: skip
def test_a_decision(decide: Decide, row: str, found: tuple[float | None, ...]) -> None:
    counted = final(ungraded(), decide(f"- {{student: ada, {row}}}\n"))
    assert scores(counted) == found
    assert all(
        0 not in (each.before, each.after) or each.before == each.after for each in counted.exercises[0].adjustments
    )
