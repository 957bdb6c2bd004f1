"""Who got what by which rule, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    """Yield every adjustment of a result; what is so for all of it once."""
    whole = labels.assignment(result.assignment)
    yield from (Decided(result.student, whole, told(each)) for each in result.adjustments)
    for exercise in result.exercises:
        label = labels.exercise(exercise.id)
        yield from (Decided(result.student, label, told(each)) for each in own(exercise, result))


def sentences(result: Result, labels: Labels = IDS) -> Iterator[str]:
    """Yield the same as sentences, without unknown times: of these there may be as many as students.

    Who is late by the platform's word is few, and somebody has to decide about them.
    """
    late = result.handed_in is not None and result.handed_in.late
    unknown = {told(each) for each in result.adjustments if each.rule == "unknown time" and not late}
    yield from (f"{each.what}: {each.told}" for each in decided(result, labels) if each.told not in unknown)


def changed(exercise: ExerciseResult) -> bool:
    """Return whether a rule changed its points."""
    return any(each.before != each.after for each in exercise.adjustments)


def own(exercise: ExerciseResult, result: Result) -> list[Adjustment]:
    """Return the adjustments of an exercise that are not the whole assignment's, as being late is."""
    said = {each.words for each in result.adjustments}
    return [each for each in exercise.adjustments if each.words not in said and each.rule != "late"]


def told(each: Adjustment) -> str:
    """Return the words, and the points before and after where they differ."""
    return each.words if each.before == each.after else f"{each.words} ({each.before:g} → {each.after:g})"


def at_unknown_times(results: Sequence[Result]) -> list[str]:
    """Whose submissions were handed in nobody knows when, where that matters."""
    return [r.student for r in results if any(each.rule == "unknown time" for each in r.adjustments)]
