"""Who got what by which rule, as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..course.decisions import SHARE, UNKNOWN_TIME
from ..result import Adjustment, ExerciseResult, Result
from .labels import IDS, Labels


@dataclass(frozen=True)
class Decided:
    """One student's adjustment. what: the assignment or the exercise, as people read it.

    told: the rule, and the points before and after.
    """

    student: str
    what: str
    told: str


def decided(result: Result, labels: Labels = IDS) -> Iterator[Decided]:
    """Yield every adjustment of a result; what is so for all of it once: also a total, without the shares of it."""
    whole = labels.assignment(result.assignment)
    yield from (Decided(result.student, whole, told(adjustment)) for adjustment in result.adjustments)
    for exercise in result.exercises:
        label = labels.exercise(exercise.id)
        yield from (Decided(result.student, label, told(each)) for each in own(exercise, result) if each.words != SHARE)


def sentences(result: Result, labels: Labels = IDS) -> Iterator[str]:
    """Yield the same as sentences, without unknown times: of these there may be as many as students.

    Who is late by the platform's word is few, and somebody has to decide about them.
    """
    yield from (f"{each.what}: {each.told}" for each in decided(result, labels) if each.told != UNKNOWN_TIME)


def changed(exercise: ExerciseResult) -> bool:
    """Return whether a rule changed its points."""
    return any(adjustment.before != adjustment.after for adjustment in exercise.adjustments)


def own(exercise: ExerciseResult, result: Result) -> list[Adjustment]:
    """Return the adjustments of an exercise that are not the whole assignment's, as being late is."""
    said = {adjustment.words for adjustment in result.adjustments}
    return [each for each in exercise.adjustments if each.words not in said and each.rule != "late"]


def told(adjustment: Adjustment) -> str:
    """Return the words, and the points before and after where they differ."""
    return (
        adjustment.words
        if adjustment.before == adjustment.after
        else f"{adjustment.words} ({adjustment.before:g} → {adjustment.after:g})"
    )


def at_unknown_time(result: Result) -> bool:
    """Return whether it came at an unknown time, where that matters; not where a platform calls it late."""
    return any(adjustment.words == UNKNOWN_TIME for adjustment in result.adjustments)
