"""`course check`: a student's own attempt, against recorded answers."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..course import Course, Exercise
from ..report.terminal import exercise_report
from ..result import ExerciseResult
from ..submission import AttemptSource
from .last_check import last_result
from .options import CourseOption, FreshOption, course_of, exercises_named
from .own import check_one, is_started, missing_message, own_attempt
from .watch import watch_exercises

if TYPE_CHECKING:
    from ..box.level import Box


def check(
    exercises: Annotated[list[str] | None, typer.Argument(help="Ids or files [default: all that are started].")] = None,
    course: CourseOption = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Check again at every save, until Ctrl-C.")] = False,
    fresh: FreshOption = False,
) -> None:
    """Check your own attempts, and name the misconception behind a mistake.

    Example: `course check reshape_dance`, or `course check --watch` while you write.
    """
    loaded = course_of(course)
    named = exercises_named(loaded, exercises or [])
    console = Console(highlight=False)
    if watch:
        from ..box.forked import open_own_box

        with open_own_box() as box:
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
    with ExitStack() as stack:
        checking = _Checking(loaded, console, stack)
        passed = [checking.show(exercise, source, fresh=fresh) for exercise, source in started]
    if not all(passed):
        raise typer.Exit(1)


@dataclass
class _Checking:
    """Shows one attempt after the other. The box is opened for the first that has to be run."""

    course: Course
    console: Console
    stack: ExitStack
    box: Box | None = None

    def show(self, exercise: Exercise, source: AttemptSource, *, fresh: bool) -> bool:
        """Print the result of an attempt. Returns whether every check passed."""
        if source.missing:
            message = missing_message(self.course, exercise)
            self.console.print(message, style="red", soft_wrap=True, markup=False)
            return False
        result = None if fresh else last_result(exercise, source)
        if result is None or was_stopped(result):
            result = self._run(exercise, source)
            self.console.print(exercise_report(result))
        else:
            self.console.print(exercise_report(result))
            again = f"  unchanged since its last check; course check {exercise.id} --fresh runs it again"
            self.console.print(again, style="dim", soft_wrap=not self.console.is_terminal)
        return result.is_done

    def _run(self, exercise: Exercise, source: AttemptSource) -> ExerciseResult:
        if self.box is None:
            from ..box.forked import open_own_box

            self.box = self.stack.enter_context(open_own_box())
        with self.console.status(f"checking {exercise.id}"):  # an endless loop takes until its limit
            return check_one(self.course, exercise, source, self.box)


def was_stopped(result: ExerciseResult) -> bool:
    """Whether an attempt ran out of time or crashed, which a busy machine may have caused: worth another try."""
    return any(check.outcome in ("timeout", "crashed") for check in result.checks)
