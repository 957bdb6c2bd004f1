"""Statistics of a class, from its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from ..result import Diagnosed, ExerciseResult, Outcome, Result
from ..submission.standing import LOAD_ERROR
from ..submission.unwritten import UNTOUCHED
from .labels import IDS, Labels

SHARES = ("none", "up to ¼", "up to ½", "up to ¾", "below full", "full")  # shares of the points, as classes of scores


# Diagnoses of attempts in which there is nothing to misunderstand: groups of their own beside the misconceptions.
NOT_GRADED_GROUP, NOT_BEGUN, NOT_IMPORTED = "not graded", "not begun", "cannot be imported"
UNEXPLAINED = "wrong in a way that no misconception explains"
GROUPS = (NOT_BEGUN, NOT_IMPORTED, UNEXPLAINED, NOT_GRADED_GROUP)  # in this order
_GROUPS = {UNTOUCHED: NOT_BEGUN, LOAD_ERROR: NOT_IMPORTED}


def misconceptions_of(exercise: ExerciseResult) -> tuple[Diagnosed, ...]:
    """Return what the student misunderstood, as far as it is named."""
    return tuple(diagnosed for diagnosed in exercise.diagnosis if diagnosed.id not in _GROUPS)


def group_of(exercise: ExerciseResult) -> str:
    """Return why an attempt that was handed in shows no misconception; "" where it shows one, or is right."""
    if not exercise.is_graded:
        return NOT_GRADED_GROUP
    if misconceptions_of(exercise) or all(check.outcome in ("passed", "missing") for check in exercise.checks):
        return ""
    return next((_GROUPS[each.id] for each in exercise.diagnosis), UNEXPLAINED)


@dataclass(frozen=True)
class MisconceptionCount:
    """A misconception, and how many students have it in an exercise.

    alternatives: titles of others with the same values, each with the number of attempts in which it has them.
    """

    id: str
    title: str
    students: int
    alternatives: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class ExerciseView:
    """One exercise over the whole class, without points that there are not.

    attempts: how many students handed something in. mean: of those who are graded, None where nobody is.
    """

    id: str
    attempts: int
    full: int
    mean: float | None
    max_score: float
    spread: tuple[int, ...]  # the number of students in each of SHARES
    misconceptions: tuple[MisconceptionCount, ...]
    groups: dict[str, int]  # the number of attempts in each of GROUPS that has any
    outcomes: dict[Outcome, int]  # the number of attempts with at least one check of this outcome
    not_graded: int = 0

    @property
    def unexplained(self) -> int:
        """The number of attempts that fail a check and have no diagnosis."""
        return self.groups.get(UNEXPLAINED, 0)


def class_view(results: Sequence[Result], labels: Labels = IDS) -> list[ExerciseView]:
    """Return the view of every exercise, in the course's order."""
    ids = labels.in_order([exercise.id for result in results for exercise in result.exercises])
    return [_view(id_, results) for id_ in ids]


def other_titles(diagnosed: Diagnosed) -> tuple[str, ...]:
    """Return the titles of the alternatives; of one that has none, its id in words."""
    if len(diagnosed.alternative_titles) == len(diagnosed.alternatives):
        return diagnosed.alternative_titles
    return tuple(id_.replace("_", " ") for id_ in diagnosed.alternatives)


def share(score: float, of: float) -> int:
    """Return the index in SHARES of a score."""
    if score >= of:
        return 5
    return ceil(4 * score / of)


def _view(id_: str, results: Sequence[Result]) -> ExerciseView:
    here = [exercise for result in results for exercise in result.exercises if exercise.id == id_]
    counting = [exercise for exercise in here if not exercise.excused] or here
    every = [exercise for exercise in counting if exercise.is_graded]
    scores = [exercise.score for exercise in every if exercise.score is not None]
    handed_in = [e for e in counting if any(c.outcome != "missing" for c in e.checks)]
    named = [d for e in every for d in misconceptions_of(e)]
    found = Counter(group_of(e) for e in handed_in)
    counts = Counter(d.id for d in named)
    titles = {d.id: d.title for d in named}
    same = {name: Counter(other for d in named if d.id == name for other in other_titles(d)) for name in counts}
    spread = Counter(share(e.score, e.max_score) for e in every if e.score is not None)
    return ExerciseView(
        id=id_,
        attempts=len(handed_in),
        full=sum(e.score == e.max_score for e in every),
        mean=sum(scores) / len(scores) if scores else None,
        max_score=here[0].max_score,
        spread=tuple(spread[i] for i in range(len(SHARES))),
        misconceptions=tuple(
            MisconceptionCount(name, titles[name], count, tuple(same[name].most_common()))
            for name, count in counts.most_common()
        ),
        groups={group: found[group] for group in GROUPS if found[group]},
        outcomes=dict(
            Counter(o for e in every for o in {c.outcome for c in e.checks} if o not in ("passed", "failed"))
        ),
        not_graded=len(counting) - len(every),
    )
