"""Make the content of the class page for one assignment: tables of students and checks, and misconceptions by rank."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from ..box.names import Level
from ..result import CheckResult, Outcome, ProvedLine, Result
from .adjustments import Decided, decided
from .aggregate import GROUPS, ExerciseView, Ranked, class_view, group_of, ranked
from .class_rows import not_graded
from .labels import IDS, Labels


@dataclass(frozen=True)
class Group:
    """Attempts that show no misconception for one reason: each student, with the exercises."""

    title: str
    attempts: int
    students: tuple[tuple[str, tuple[str, ...]], ...]


def grouped(results: Sequence[Result]) -> Iterator[Group]:
    """Yield the groups that have anybody, in a fixed order."""
    found: dict[str, dict[str, list[str]]] = {}
    for result in results:
        for exercise in result.exercises:
            if group := group_of(exercise):
                found.setdefault(group, {}).setdefault(result.student, []).append(exercise.id)
    for title in GROUPS:
        if own := found.get(title):
            yield Group(title, sum(map(len, own.values())), tuple((name, tuple(ids)) for name, ids in own.items()))


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
    """Return the table of every exercise, in the course's order."""
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


BINS = 10  # bins of the histogram of totals; totals with all points are separate
GRAVE: tuple[Outcome, ...] = ("crashed", "timeout")


@dataclass(frozen=True)
class Overview:
    """One assignment over the class.

    mean, median: of the totals that there are; None where there is none.
    troubles: attempts that crashed or ran out of time, by student and exercise, each with its checks that did.
    lines: those that are proved to be wrong, by student and exercise.
    facts: conditions of grading, each with its values and how many submissions have them.
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
    groups: tuple[Group, ...]
    troubles: tuple[tuple[str, str, tuple[CheckResult, ...]], ...]
    lines: tuple[tuple[str, str, ProvedLine], ...]
    decided: tuple[Decided, ...]
    facts: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    not_graded: tuple[tuple[str, str], ...]
    strangers: tuple[str, ...]  # who is not on the roster: in no mean and no histogram
    weak: tuple[tuple[str, int], ...]  # isolation levels that are too low for grading, with the number of submissions


def overviews(results: Sequence[Result], labels: Labels = IDS, strangers: Collection[str] = ()) -> list[Overview]:
    """Return one for each assignment, in the course's order. strangers: who is not on the roster."""
    return [_overview(id_, own, labels, strangers) for id_, own in labels.by_assignment(results)]


def _overview(assignment: str, results: Sequence[Result], labels: Labels, strangers: Collection[str]) -> Overview:
    views = class_view(results, labels, strangers)
    levels = Counter(result.isolation for result in results)
    known = [result for result in results if result.student not in strangers]
    counting = [result for result in known if not result.is_excused] or known
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
        misconceptions=tuple(ranked((result.student, e) for result in results for e in result.exercises)),
        groups=tuple(grouped(results)),
        troubles=tuple(_troubles(results)),
        lines=tuple((r.student, e.id, line) for r in results for e in r.exercises for line in e.lines),
        decided=tuple(adjustment for result in results for adjustment in decided(result, labels)),
        facts=tuple(_facts(results)),
        not_graded=tuple((result.student, said) for result in results for said in not_graded(result, labels)),
        strangers=tuple(result.student for result in results if result.student in strangers),
        weak=tuple((level, count) for level, count in levels.items() if level != Level.NAMESPACES),
    )


def _totals(results: Sequence[Result]) -> Iterator[tuple[str, int]]:
    """Yield how many submissions have which share of the points, most points first; last those that have no total."""
    graded = [(result.score, result.max_score) for result in results if result.score is not None]
    shares = [score / most if most else 1.0 for score, most in graded]
    yield "all", sum(s >= 1 for s in shares)
    tenths = Counter(int(BINS * s) for s in shares if s < 1)
    for i in reversed(range(BINS)):
        yield f"{100 * i // BINS}–{100 * (i + 1) // BINS} %", tenths[i]
    if len(graded) < len(results):
        yield "not graded", len(results) - len(graded)


def _troubles(results: Sequence[Result]) -> Iterator[tuple[str, str, tuple[CheckResult, ...]]]:
    for result in results:
        for exercise in result.exercises:
            for outcome in GRAVE:
                if checks := tuple(c for c in exercise.checks if c.outcome == outcome):
                    yield result.student, exercise.id, checks


def _facts(results: Sequence[Result]) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
    facts = {"isolation": [r.isolation for r in results], "device": [r.device for r in results]}
    facts["seed"] = [str(r.seed) for r in results]
    for name in dict.fromkeys(name for r in results for name in r.versions):
        facts[name] = [r.versions.get(name, "not recorded") for r in results]
    yield from ((name, tuple(Counter(values).most_common())) for name, values in facts.items())
