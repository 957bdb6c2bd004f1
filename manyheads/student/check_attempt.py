"""`course check`: an attempt's answers on public inputs, held against recorded ones."""

from __future__ import annotations

from collections.abc import Iterator

from ..course import CourseError, Exercise
from ..diagnosis.diagnosis import Diagnosis, named
from ..diagnosis.recording import Recording
from ..diagnosis.recording_file import UNREADABLE
from ..errors import restore
from ..judge.function_results import with_start
from ..judge.public_checks import Attempt, answer_public_calls, check_result
from ..result import ExerciseResult, Outcome


def check_attempt(
    recording: Recording, attempt: Attempt, source: str | None = None, exercise: Exercise | None = None
) -> ExerciseResult:
    """Return the result of an attempt's visible checks, with the misconceptions that its answers show, or that its text is empty.

    source: its text; None where that is not at hand.
    exercise: its row of course.yaml; None where only the recorded checks are known.
    """
    result, _ = check_and_diagnose(recording, attempt, source, exercise)
    return told_of(recording, result, exercise)


def check_and_diagnose(
    recording: Recording, attempt: Attempt, source: str | None = None, exercise: Exercise | None = None
) -> tuple[ExerciseResult, Diagnosis]:
    """Return the result, before `told_of` makes it whole, and what it names."""
    told = answer_public_calls(recording, attempt, source, exercise)
    result = ExerciseResult(
        id=recording.exercise,
        score=0,
        max_score=0,
        checks=told.checks,
        diagnosis=told.diagnosis.named,
        also=told.diagnosis.also,
        functions=told.functions,
    )
    return result, told.diagnosis


def told_of(recording: Recording, result: ExerciseResult, exercise: Exercise | None = None) -> ExerciseResult:
    """Return the result out of all the points of the exercise, with what only grading sees, and the exercise's hint for a start.

    A visible check that was not asked, because one before it failed, waits with its points.
    """
    checks = recording.checks
    asked = {check.id for check in result.checks}
    waiting = (check_result(check, "skipped", "") for check in recording.visible if check.id not in asked)
    every = (*result.checks, *waiting)
    shown = {check.id for check in every}
    visible = sum(check.max_score for check in every)
    whole = max(visible, sum(check.points for check in checks) if exercise is None else exercise.points)
    hint = exercise.hint if exercise else ""
    return result.model_copy(
        update={
            "checks": every,
            "score": sum(check.score for check in result.checks),
            "max_score": whole,
            "unseen": round(whole - visible, 9),
            "unseen_checks": tuple(
                check.title
                for check in checks
                if check.id not in shown and not _is_seen_otherwise(recording, check.id, result)
            ),
            "diagnosis": with_start(result.diagnosis, hint),
        }
    )


def _is_seen_otherwise(recording: Recording, check: str, result: ExerciseResult) -> bool:
    """Return whether a named misconception fails this check, whichever mutant of it is meant: then it is no news to a student."""
    if check not in recording.hidden:
        return False
    place = recording.hidden.index(check)
    rows = list(zip(recording.mutants, recording.kills, strict=True))
    fails = ({row[place] for mutant, row in rows if mutant.id == diagnosed.id} for diagnosed in result.diagnosis)
    return {"1"} in list(fails)


def unloadable(recording: Recording, outcome: Outcome, sentence: str, misconception: str = "") -> ExerciseResult:
    """Return the result of an attempt that cannot be imported, before `told_of` makes it whole."""
    checks = tuple(check_result(check, outcome, sentence) for check in recording.visible)
    diagnosis = (named(recording.words, misconception),) if misconception else ()
    return ExerciseResult(id=recording.exercise, score=0, max_score=0, checks=checks, diagnosis=diagnosis)


def refuse_what_does_not_fit(recording: Recording, path: object) -> None:
    """Raise CourseError where a part names what the file does not hold."""
    try:
        fit = all(_fits(recording))
    except UNREADABLE:  # a reply that cannot be made
        fit = False
    if not fit:
        raise CourseError(f"{path} was changed: its parts do not fit each other. {restore(path)}")


def _fits(recording: Recording) -> Iterator[bool]:
    """Yield whether each call has its answers, each check its calls, each mutant its replies, and each pair its mutants."""
    calls, replies, mutants, pairs = recording.calls, recording.replies, recording.mutants, recording.pairs
    yield len(calls) == len(recording.expected) == len(replies) and all(replies)
    yield all(isinstance(step.args, tuple) and isinstance(step.kwargs, dict) for call in calls for step in call.steps)
    yield all(0 <= index < len(calls) for check in recording.checks for index in check.asked)
    for mutant in mutants:
        yield len(mutant.answers) == len(replies)
        yield all(i is None or 0 <= i < len(known) for i, known in zip(mutant.answers, replies, strict=True))
    rows = len(pairs.first) if pairs.first.dim() == 1 else -1
    for part, most in ((pairs.first, len(mutants)), (pairs.second, len(mutants)), (pairs.probe, len(calls))):
        yield part.shape == (rows,) and all(0 <= i < most for i in part.tolist())
    yield pairs.answers.structure.shape == (rows,)
    yield all(part.dim() == 2 and len(part) == rows for part in (pairs.answers.numbers, pairs.answers.scales))
