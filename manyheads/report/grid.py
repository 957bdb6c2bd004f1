"""Tables of students and checks: who passed what, for each exercise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..result import CheckResult, Outcome, Result
from .labels import IDS, Labels


@dataclass(frozen=True)
class Column:
    """A check, how many students have it in their result, and how many of them passed it."""

    id: str
    title: str
    passed: int
    asked: int


@dataclass(frozen=True)
class Grid:
    """One exercise: a row for each student, an outcome for each check; None if a result does not have the check."""

    exercise: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[Outcome | None, ...]], ...]


def grids(results: Sequence[Result], labels: Labels = IDS) -> list[Grid]:
    """The table of every exercise, in the course's order."""
    rows: dict[str, dict[str, dict[str, CheckResult]]] = defaultdict(dict)  # exercise -> student -> check
    for result in results:
        for exercise in result.exercises:
            rows[exercise.id][result.student] = {check.id: check for check in exercise.checks}
    return [_grid(exercise, rows[exercise]) for exercise in labels.in_order([*rows])]


def _grid(exercise: str, students: dict[str, dict[str, CheckResult]]) -> Grid:
    titles = {check.id: check.title for checks in students.values() for check in checks.values()}
    return Grid(
        exercise=exercise,
        columns=tuple(_column(id_, title, students) for id_, title in titles.items()),
        rows=tuple(
            (student, tuple(checks[id_].outcome if id_ in checks else None for id_ in titles))
            for student, checks in students.items()
        ),
    )


def _column(id_: str, title: str, students: dict[str, dict[str, CheckResult]]) -> Column:
    outcomes = [checks[id_].outcome for checks in students.values() if id_ in checks]
    return Column(id_, title, outcomes.count("passed"), len(outcomes))
