"""`course trace`: a student's own forward pass, explained line by line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..course import Assignment, Course, CourseError, Exercise
from ..submission import AttemptSource
from .check import fingerprint_path, is_begun, own_attempt
from .options import CourseOption, course_of, exercise_named

if TYPE_CHECKING:
    from ..tools.calls import Look


def trace(
    exercise: Annotated[str, typer.Argument(help="Its id or file.")],
    function: Annotated[str | None, typer.Argument(help="One function or class of it [default: all].")] = None,
    course: CourseOption = None,
    *,
    values: Annotated[bool, typer.Option("--values", help="Show the numbers, too.")] = False,
) -> None:
    """Follow your own code: what each line does to shapes, and whether numbers move.

    Example: `course trace reshape_dance`
    """
    loaded = course_of(course)
    assignment, wanted = exercise_named(loaded, exercise, "trace")
    source = own_attempt(loaded, assignment, wanted)
    console = Console(highlight=False)
    refuse_unbegun(console, loaded, assignment, wanted, source, "trace")

    from ..report.trace import LEGEND, trace_report
    from ..tools.follow import follow
    from ..tools.source import Source
    from ..tools.trace import CORNER, explained

    chosen = looks_named(wanted, fingerprint_path(loaded, assignment, wanted), function, "trace")
    followed = follow(loaded, source, chosen, CORNER if values else ())
    lines = Source(tuple(source.source.splitlines()))
    told = [explained(look, traced, lines) for look, traced in zip(chosen, followed.traced, strict=False)]
    for each in told:
        console.print(trace_report(each), soft_wrap=True)
    if followed.ended:
        console.print(f"✗ {followed.ended}", style="bold red", soft_wrap=True, markup=False)
    console.print(LEGEND, style="bright_black", soft_wrap=True)
    well = not followed.ended and all(each.right for each in told)
    console.print(f"Next: course {'check' if well else 'hint'} {wanted.id}")
    if followed.ended or any(each.raised for each in told):
        raise typer.Exit(1)


def refuse_unbegun(
    console: Console, course: Course, assignment: Assignment, exercise: Exercise, source: AttemptSource, command: str
) -> None:
    """Say so and leave with status 1 where there is nothing of the student's to run."""
    if not source.problem and is_begun(course, assignment, exercise, source):
        return
    sentence = source.problem or f"{exercise.id} is not begun yet: there is nothing to {command}."
    console.print(sentence, soft_wrap=True, markup=False)
    first = f"fill the first stub of {assignment.stem(exercise)}"
    console.print(f"Next: {first}, then: course {command} {exercise.id}", soft_wrap=True)
    raise typer.Exit(1)


def looks_named(
    exercise: Exercise, fingerprints: Path, function: str | None, command: str, *, by_head: bool = False
) -> list[Look]:
    """The recorded calls of that function, of all where it is None. Raises CourseError where there is none."""
    from ..public.file import read
    from ..tools.calls import looks

    every = looks(exercise, read(fingerprints), by_head=by_head)
    chosen = [look for look in every if function in (None, look.target)]
    if not chosen:
        known = ", ".join(dict.fromkeys(look.target for look in every)) or "none"
        next_ = f"course {command} {exercise.id}"
        raise CourseError(f"{exercise.id} has no {function!r} to {command}; it has: {known}. Next: {next_}")
    return chosen
