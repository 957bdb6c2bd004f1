"""Give a student's own attempts as evidence: what `--json`, `course lsp` and other programs tell.

`check_evidence` and `status_evidence` print nothing. They run attempts in an open box, `open_own_box(meta=True)`, or open one
each time. A process that has threads opens it before them, for the box may fork.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..course import Course, Exercise
from ..course.secret import FOLDER
from ..evidence import Evidence, ExerciseEvidence
from ..report.result_evidence import evidence_of
from ..report.words import FunctionReport, attempt_words
from ..result import ExerciseResult
from ..submission import AttemptSource
from .last_check import NOTE, keep, last_result, was_stopped
from .own import check_one, is_started, missing_message, own_attempt

if TYPE_CHECKING:
    from ..box.level import Box


def print_evidence(command: Literal["check", "status"], told: Iterable[ExerciseEvidence]) -> None:
    """Print what a command found as one JSON object, and nothing else."""
    print(Evidence(command=command, exercises=tuple(told)).model_dump_json(indent=1))


def problem_lines(told: ExerciseEvidence, path: Path) -> Iterator[str]:
    """Yield a line for each thing that is wrong, as compilers do: path:line:column: error: sentence. Of a notebook, line 1."""
    for each in told.wrong:
        place = "1:1" if each.cell else f"{each.line}:{each.column}"
        yield f"{path}:{place}: error: {each.sentence}{each.hint and f' Hint: {each.hint}'}"
    if told.problem:
        yield f"{path}:1:1: error: {' '.join(told.problem.split())}"


def check_evidence(
    course: Course, exercise: Exercise, box: Box | None = None, *, fresh: bool = False
) -> ExerciseEvidence:
    """Return what `course check` tells of an exercise. What has not changed since its last check is not run, unless `fresh`."""
    source = own_attempt(course, exercise)
    if source.missing:
        return _told(course, exercise, source).model_copy(update={"problem": missing_message(course, exercise)})
    last = last_result(exercise, source)
    result = check_one(course, exercise, source, box) if fresh or last is None or was_stopped(last) else last
    keep(exercise, source, result)  # it was checked last
    if attempt_words(result).gives_hint:
        from ..student.hints import note_first

        note_first(result, course.root / FOLDER / NOTE)
    return _told(course, exercise, source, result)


def status_evidence(course: Course, exercise: Exercise, *, fresh: bool = False) -> ExerciseEvidence:
    """Return where the student stands with an exercise: its state, its points and its checks."""
    source = own_attempt(course, exercise)
    if not is_started(exercise, source):
        return _told(course, exercise, source)
    last = None if fresh else last_result(exercise, source)
    return _told(course, exercise, source, last or check_one(course, exercise, source))


def _told(
    course: Course, exercise: Exercise, source: AttemptSource, result: ExerciseResult | None = None
) -> ExerciseEvidence:
    """Return what is known of an exercise: its state and its points, and of what was checked the functions and the checks."""
    told = ExerciseEvidence(
        id=exercise.id,
        title=exercise.title,
        assignment=exercise.assignment.id,
        file=exercise.script.with_name(source.name).relative_to(course.root).as_posix(),
        state="missing" if source.missing else "in progress" if is_started(exercise, source) else "untouched",
        score=0.0,
        max_score=exercise.points,
        next=f"course check {exercise.id}",
    )
    if result is None:
        return told
    words, note = attempt_words(result), course.root / FOLDER / NOTE

    def shown(report: FunctionReport) -> int:
        from ..student.hints import level_of

        return max(level_of(result, report.named, note), 1)  # the first is told with the check

    functions, checks = evidence_of(result, source, shown)
    parts: dict[str, object] = {key: getattr(result, key) for key in ("unseen", "note", "printed")}
    parts |= {"functions": functions, "checks": checks, "score": result.score or 0.0}
    if result.is_done:
        parts |= {"state": "done", "next": ""}
    if following := f"course hint {exercise.id}" if words.gives_hint else words.first.next if words.first else "":
        parts["next"] = following
    return told.model_copy(update=parts)
