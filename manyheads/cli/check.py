"""`course check`: a student's own attempt, against recorded answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..course import Course, Exercise
from ..report.terminal import exercise_report
from ..result import ExerciseResult
from ..submission import AttemptSource
from .options import CourseOption, course_of, exercises_named
from .own import check_one, is_done, is_started, missing_message, own_attempt
from .watch import watch_exercises

if TYPE_CHECKING:
    from ..box.level import Box


def check(
    exercises: Annotated[list[str] | None, typer.Argument(help="Ids or files [default: all that are started].")] = None,
    course: CourseOption = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Check again at every save, until Ctrl-C.")] = False,
) -> None:
    """Check your own attempts, and name the misconception behind a mistake.

    Example: `course check reshape_dance`, or `course check --watch` while you write.
    """
    loaded = course_of(course)
    named = exercises_named(loaded, exercises or [])
    console = Console(highlight=False)
    from ..box.forked import open_own_box

    with open_own_box() as box:
        if watch:
            watch_exercises(loaded, named, box, console)
            return
        started = [(e, own_attempt(loaded, e)) for e in named]
        if not exercises:
            started = [entry for entry in started if is_started(*entry)]
        if not started:
            console.print(
                "Nothing is started yet. Next: open exercises/, fill the first stub, then: course check", soft_wrap=True
            )
            raise typer.Exit(1)
        passed = [_check(console, loaded, exercise, source, box) for exercise, source in started]
    if not all(passed):
        raise typer.Exit(1)


def _check(console: Console, course: Course, exercise: Exercise, source: AttemptSource, box: Box) -> bool:
    """Check one attempt and print its result. Returns whether every check passed."""
    if source.missing:
        console.print(missing_message(course, exercise), style="red", soft_wrap=True, markup=False)
        return False
    with console.status(f"checking {exercise.id}"):  # an endless loop takes until its limit
        result = check_one(course, exercise, source, box)
    return _show(console, result)


def _show(console: Console, result: ExerciseResult) -> bool:
    """Print a result. Returns whether every check passed."""
    console.print(exercise_report(result))
    return is_done(result)
