"""What a class has in common, from its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..result import Outcome, Result


@dataclass(frozen=True)
class Shared:
    """A misconception and how many of the class have it in an exercise, with the ids that give the same numbers."""

    id: str
    title: str
    students: int
    alternatives: tuple[str, ...]


@dataclass(frozen=True)
class ExerciseView:
    """One exercise over the whole class. `attempts` counts those who handed something in."""

    id: str
    attempts: int
    full: int
    mean: float
    max_score: float
    misconceptions: tuple[Shared, ...]
    unexplained: int  # attempts that fail a check and have no diagnosis
    outcomes: dict[Outcome, int]  # attempts with at least one check that ended so


def class_view(results: Sequence[Result]) -> list[ExerciseView]:
    """Every exercise, in the results' order."""
    ids = dict.fromkeys(exercise.id for result in results for exercise in result.exercises)
    return [_view(id_, results) for id_ in ids]


def _view(id_: str, results: Sequence[Result]) -> ExerciseView:
    every = [exercise for result in results for exercise in result.exercises if exercise.id == id_]
    handed_in = [e for e in every if any(c.outcome != "missing" for c in e.checks)]
    found = Counter(d.id for e in every for d in e.diagnosis)
    words = {d.id: d for e in every for d in e.diagnosis}
    failed = [e for e in handed_in if e.score < e.max_score]
    return ExerciseView(
        id=id_,
        attempts=len(handed_in),
        full=sum(e.score == e.max_score for e in every),
        mean=sum(e.score for e in every) / len(every),
        max_score=every[0].max_score,
        misconceptions=tuple(
            Shared(name, words[name].title, count, words[name].alternatives) for name, count in found.most_common()
        ),
        unexplained=sum(not e.diagnosis for e in failed),
        outcomes=dict(
            Counter(o for e in every for o in {c.outcome for c in e.checks} if o not in ("passed", "failed"))
        ),
    )
