"""`course trace`: explain a student's own forward pass line by line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..course import Course, CourseError, Exercise
from ..student.crops import CROP
from ..submission import AttemptSource, lines_of, proved_line
from ..submission.read import in_cells
from .last_check import CHECKED_LAST, exercise_meant, fingerprint_path
from .options import CourseOption, course_of, open_console
from .own import is_started, missing_message, own_attempt

if TYPE_CHECKING:
    from ..student.example import Example
    from ..student.follow import Followed


def trace(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file.", show_default=CHECKED_LAST)] = None,
    function: Annotated[str | None, typer.Argument(help="One function or class of it [default: all].")] = None,
    course: CourseOption = None,
    *,
    values: Annotated[bool, typer.Option("--values", help="Show the numbers, too.")] = False,
) -> None:
    """Follow your own code: what each line does to shapes, and whether numbers move.

    Example: `course trace reshape_dance`
    """
    crop = CROP if values else ()
    seen = follow_own_attempt(course_of(course), exercise, function, "trace", crop=crop)
    from ..report.trace_text import LEGEND, trace_report
    from ..student.explain_trace import explained
    from ..student.follow import Source

    console = open_console()
    texts = tuple(lines_of(seen.source.source))
    places = (proved_line(seen.source, line) for line in range(1, len(texts) + 1))
    labels = tuple(f"cell {place.cell}, {place.line_in_cell}" for place in places) if seen.source.cells else ()
    lines = Source(texts, labels)
    explanations = [explained(example, traced, lines, crop) for example, traced in seen.followed.shown]
    for each in explanations:
        told = replace(each, raised=in_cells(each.raised, seen.source))
        console.print(trace_report(told), soft_wrap=not console.is_terminal)
    if seen.followed.ended:
        console.print(f"✗ {seen.followed.ended}", style="bold red", soft_wrap=not console.is_terminal, markup=False)
    if explanations:
        console.print(LEGEND, style="bright_black", soft_wrap=not console.is_terminal)
    well = not seen.followed.ended and all(explanation.right for explanation in explanations)
    first = "" if well or not explanations else "change the first line that surprises you, then: "
    console.print(f"Next: {first}course check {seen.exercise.id}")
    if seen.followed.ended or any(explanation.raised for explanation in explanations):
        raise typer.Exit(1)


@dataclass(frozen=True)
class FollowedAttempt:
    """A student's own attempt, and its traces."""

    exercise: Exercise
    source: AttemptSource
    followed: Followed


def follow_own_attempt(
    course: Course,
    name: str | None,
    function: str | None,
    command: str,
    *,
    by_head: bool = False,
    crop: tuple[int, ...] = (),
    times: int = 1,
) -> FollowedAttempt:
    """Trace the attempt in exercises/ in a process of its own. Raises CourseError; exits if it is not started."""
    exercise = exercise_meant(course, name, command)
    from ..box.forked import open_own_box
    from ..student.example import with_recorded
    from ..student.follow import follow
    from ..student.sentence import sentence_examples

    with open_own_box() as box:  # before this process runs a torch operation, because the box may fork it
        source = own_attempt(course, exercise)
        refuse_unstarted(course, exercise, source, command)
        chosen = _examples_named(exercise, fingerprint_path(exercise), function, command, by_head)
        if by_head:
            sentence = sentence_examples(exercise) if function is None else []
            chosen = with_recorded([*chosen, *sentence], exercise)
        followed = follow(box, course.limits.for_worker(), source, chosen, crop, times)
        return FollowedAttempt(exercise, source, followed)


def refuse_unstarted(course: Course, exercise: Exercise, source: AttemptSource, command: str) -> None:
    """Print a message and exit with status 1 if the student has not written anything that can run."""
    if not source.problem and is_started(exercise, source):
        return
    console = open_console()
    if source.missing:
        console.print(missing_message(course, exercise), soft_wrap=not console.is_terminal, markup=False)
        raise typer.Exit(1)
    sentence = source.problem or f"{exercise.id} is not started yet: there is nothing to {command}."
    console.print(sentence, soft_wrap=not console.is_terminal, markup=False)
    first = "mend the file" if source.problem else f"fill the first stub of {exercise.stem}"
    console.print(f"Next: {first}, then: course {command} {exercise.id}", soft_wrap=not console.is_terminal)
    raise typer.Exit(1)


def _examples_named(
    exercise: Exercise, fingerprints: Path, function: str | None, command: str, by_head: bool
) -> list[Example]:
    """Return the examples of this function, or of all if it is None. Raises CourseError if there are none."""
    from ..diagnosis.recording_file import read
    from ..student.choose_example import examples

    every = examples(exercise, read(fingerprints), by_head=by_head)
    chosen = [example for example in every if function in (None, example.target)]
    if not chosen:
        if not every:
            raise CourseError(
                f"no recorded call of {exercise.id} fits its shapes in course.yaml. "
                f"Next: tell your instructor, whose next command is: course verify {exercise.id}"
            )
        known = ", ".join(dict.fromkeys(example.target for example in every))
        next_ = f"course {command} {exercise.id}"
        raise CourseError(f"{exercise.id} has no {function!r} to {command}; it has: {known}. Next: {next_}")
    return chosen
