"""A student's feedback as Markdown: the words of the page, for places that show text."""

from __future__ import annotations

from ..report.adjustments import own, told
from ..report.labels import IDS, Labels
from ..report.markdown import results_section, text_block
from ..result import ExerciseResult, Result, with_total


def feedback_markdown(result: Result, labels: Labels = IDS) -> str:
    """The whole submission."""
    decided = [*map(told, result.adjustments)]
    for exercise in result.exercises:
        label = labels.exercise(exercise.id)
        decided += [f"{label}: {told(each)}" for each in own(exercise, result)]
        decided += [f"{label}: {exercise.note}"] if exercise.note else []
    parts = [results_section(labels.assignment(result.assignment), [result], labels=labels)]
    return "\n\n".join([*parts, text_block("\n".join(decided))] if decided else parts) + "\n"


def one_exercise(result: Result, id_: str) -> Result:
    """The result with this exercise alone, and what is decided of the whole assignment."""
    found: tuple[ExerciseResult, ...] = tuple(each for each in result.exercises if each.id == id_)
    return with_total(result, found)
