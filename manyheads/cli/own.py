"""What the commands about a student's own attempts share: which exercise is meant, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import typer

from ..course import Course, CourseError, Exercise
from ..report.labels import label_of
from ..report.result_evidence import Evidence, ExerciseEvidence, evidence_of
from ..report.words import attempt_words
from ..result import ExerciseResult
from ..student.hints import level_of, note_first
from ..student.own_attempt import Checks, Own, checked_last, from_here, read_own, recorded_path
from .options import Console, exercise_named, open_console
from .progress import waiting

if TYPE_CHECKING:
    from ..student.follow import Followed


def checks_on(course: Course, console: Console, *, fresh: bool = False, looks: bool = False) -> Checks:
    """Return the checks of a student's own attempts, with what is waited for shown on the console."""
    checks = Checks(course, fresh=fresh, looks=looks)
    checks.waiting = lambda exercise: waiting(console, f"checking {label_of(exercise)}")
    return checks


def own_meant(course: Course, name: str | None, command: str) -> Own:
    """Return the attempt at the exercise of this name, or without one at that which was checked last. Raises CourseError."""
    exercise = exercise_named(course, name, command) if name else checked_last(course)
    if exercise is None:
        following = f"course {command} {course.exercises[0].id}"
        raise CourseError(f"{command} which exercise? None was checked here yet. Next: {following}")
    return read_own(course, exercise)


def refuse_unstarted(own: Own, command: str) -> None:
    """Print a message and exit with status 1 if the student has not written anything that can run."""
    if lines := own.why_unstarted(command):
        open_console().tell(*lines)
        raise typer.Exit(1)


def follow_own(
    course: Course, name: str | None, function: str | None, command: str, crop: tuple[int, ...] | None = None
) -> tuple[Own, Followed]:
    """Trace the attempt in exercises/ in a process of its own. Raises CourseFault; exits if it is not started.

    crop: how many numbers of each output are kept; None: all that pictures need.
    """
    own = own_meant(course, name, command)
    refuse_unstarted(own, command)
    from ..box.forked import open_own_box

    with open_own_box() as box:  # before this process runs a torch operation, because the box may fork it
        from ..diagnosis.recording_file import read
        from ..student.choose_example import examples_named
        from ..student.follow import TABLES, TIMES, follow
        from ..student.sentence import sentence_examples

        chosen = examples_named(own.exercise, read(recorded_path(own.exercise)), function, f"course {command}")
        if crop is None and function is None:
            chosen += sentence_examples(own.exercise)
        kept = (TABLES, TIMES) if crop is None else (crop, 1)
        return own, follow(box, course.limits.for_worker(), own.source, chosen, *kept)


def check_told(checks: Checks, exercise: Exercise) -> ExerciseEvidence:
    """Return what `course check` tells of an exercise."""
    own = read_own(checks.course, exercise)
    result = None if own.source.missing else checks.result(own)
    if result is not None:
        note_first(result, checks.course.root)
    return own_told(own, result)


def own_told(own: Own, result: ExerciseResult | None) -> ExerciseEvidence:
    """Return what is known of it as data: its state and its points, and of what was checked the functions and the checks."""
    exercise, source, next_ = own.exercise, own.source, f"course check {own.exercise.id}"
    state = "missing" if source.missing else "in progress" if own.is_started else "untouched"
    known: dict[str, Any] = {"problem": source.problem}
    if result is not None:
        words = attempt_words(result)
        state, next_ = ("done", "") if result.is_done else (state, next_)
        next_ = f"course hint {exercise.id}" if words.gives_hint else (words.first and words.first.next) or next_
        # The first hint is told with the check.
        told = evidence_of(result, source, lambda each: max(level_of(result, each.named, own.course.root), 1))
        known = {"functions": told[0], "checks": told[1], "unseen": result.unseen, "note": result.note}
    return ExerciseEvidence(
        id=exercise.id,
        title=exercise.title,
        assignment=exercise.assignment.id,
        file=exercise.script.with_name(source.name).relative_to(own.course.root).as_posix(),
        max_score=exercise.points,
        **{"state": state, "next": next_, "score": (result and result.score) or 0.0, **known},
    )


def print_evidence(command: Literal["check", "status"], told: Iterable[ExerciseEvidence]) -> None:
    """Print what a command found as one JSON object, and nothing else."""
    print(Evidence(command=command, exercises=tuple(told)).model_dump_json(indent=1))


def problem_lines(course: Course, told: ExerciseEvidence) -> Iterator[str]:
    """Yield a line for each thing that is wrong, as compilers do: path:line:column: error: sentence. Of a notebook, line 1."""
    path = from_here(course.root / told.file)
    for each in told.wrong:
        place = "1:1" if each.cell else f"{each.line}:{each.column}"
        yield f"{path}:{place}: error: {each.sentence}{each.hint and f' Hint: {each.hint}'}"
    if told.problem:
        yield f"{path}:1:1: error: {' '.join(told.problem.split())}"
