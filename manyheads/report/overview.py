"""The content of the class page for one assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from ..box.names import Level
from ..result import CheckResult, Outcome, Result
from .adjustments import Decided, decided
from .aggregate import ExerciseView, class_view
from .grid import Grid, grids
from .labels import IDS, Labels
from .misconceptions import Ranked, ranked
from .rows import not_graded

BINS = 10  # bins of the histogram of totals; totals with all points are separate
GRAVE: tuple[Outcome, ...] = ("crashed", "timeout")


@dataclass(frozen=True)
class Trouble:
    """An attempt that crashed or ran out of time, and the evidence of its first such check."""

    student: str
    exercise: str
    outcome: Outcome
    checks: int
    evidence: str


@dataclass(frozen=True)
class WrongLine:
    """A line that is proved to be wrong, and the edit that proves it."""

    student: str
    exercise: str
    place: str
    edit: str


@dataclass(frozen=True)
class Fact:
    """A condition of grading: its name, and each value with the number of submissions that have it."""

    name: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Overview:
    """One assignment over the class.

    mean, median: of the totals that there are; None where there is none.
    not_graded: who is not graded in what, and why.
    """

    assignment: str
    results: tuple[Result, ...]
    max_score: float
    mean: float | None
    median: float | None
    totals: tuple[tuple[str, int], ...]
    exercises: tuple[ExerciseView, ...]
    grids: tuple[Grid, ...]
    misconceptions: tuple[Ranked, ...]
    unexplained: int
    troubles: tuple[Trouble, ...]
    lines: tuple[WrongLine, ...]
    decided: tuple[Decided, ...]
    facts: tuple[Fact, ...]
    not_graded: tuple[tuple[str, str], ...]
    weak: tuple[tuple[str, int], ...]  # isolation levels that are too low for grading, with the number of submissions


def overviews(results: Sequence[Result], labels: Labels = IDS) -> list[Overview]:
    """One for each assignment, in the course's order."""
    return [_overview(id_, own, labels) for id_, own in labels.by_assignment(results)]


def _overview(assignment: str, results: Sequence[Result], labels: Labels) -> Overview:
    views = class_view(results, labels)
    levels = Counter(result.isolation for result in results)
    counting = [result for result in results if not result.is_excused] or results
    scores = [result.scaled_score for result in counting if result.scaled_score is not None]
    return Overview(
        assignment=assignment,
        results=tuple(results),
        max_score=max(result.possible for result in results),
        mean=mean(scores) if scores else None,
        median=median(scores) if scores else None,
        totals=tuple(_totals(counting)),
        exercises=tuple(views),
        grids=tuple(grids(results, labels)),
        misconceptions=tuple(ranked(results)),
        unexplained=sum(view.unexplained for view in views),
        troubles=tuple(_troubles(results)),
        lines=tuple(_lines(results)),
        decided=tuple(each for result in results for each in decided(result, labels)),
        facts=tuple(_facts(results)),
        not_graded=tuple((result.student, said) for result in results for said in not_graded(result, labels)),
        weak=tuple((level, count) for level, count in levels.items() if level != Level.NAMESPACES),
    )


def _totals(results: Sequence[Result]) -> Iterator[tuple[str, int]]:
    """How many submissions have which share of the points, most points first; last those that have no total."""
    graded = [(result.score, result.max_score) for result in results if result.score is not None]
    shares = [score / most if most else 1.0 for score, most in graded]
    yield "all", sum(s >= 1 for s in shares)
    tenths = Counter(int(BINS * s) for s in shares if s < 1)
    for i in reversed(range(BINS)):
        yield f"{100 * i // BINS}–{100 * (i + 1) // BINS} %", tenths[i]
    if len(graded) < len(results):
        yield "not graded", len(results) - len(graded)


def _troubles(results: Sequence[Result]) -> Iterator[Trouble]:
    for result in results:
        for exercise in result.exercises:
            for outcome in GRAVE:
                found: list[CheckResult] = [c for c in exercise.checks if c.outcome == outcome]
                if found:
                    yield Trouble(result.student, exercise.id, outcome, len(found), found[0].evidence)


def _lines(results: Sequence[Result]) -> Iterator[WrongLine]:
    for result in results:
        for exercise in result.exercises:
            for line in exercise.lines:
                yield WrongLine(result.student, exercise.id, line.place, line.edit)


def _facts(results: Sequence[Result]) -> Iterator[Fact]:
    def fact(name: str, values: list[str]) -> Fact:
        return Fact(name, tuple(Counter(values).most_common()))

    yield fact("isolation", [r.isolation for r in results])
    yield fact("device", [r.device for r in results])
    yield fact("seed", [str(r.seed) for r in results])
    for name in dict.fromkeys(name for r in results for name in r.versions):
        yield fact(name, [r.versions.get(name, "not recorded") for r in results])
