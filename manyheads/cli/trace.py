"""`course trace`: explain a student's own forward pass line by line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..course import Course, Exercise
from ..submission import AttemptSource, lines_of, proved_line
from ..submission.standing import in_cells
from .last_check import CHECKED_LAST, exercise_meant, fingerprint_path
from .options import CourseOption, course_of, open_console
from .own import own_attempt, why_unstarted

if TYPE_CHECKING:
    from ..student.follow import Followed

CROP = (6, 8)  # how many numbers of a table are shown: enough to read
BELOW = 6  # lines of the screen: the legend, how many lines are left out, what comes next, the prompt


def trace(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file.", show_default=CHECKED_LAST)] = None,
    function: Annotated[str | None, typer.Argument(help="One function or class of it [default: all].")] = None,
    course: CourseOption = None,
    *,
    values: Annotated[bool, typer.Option("--values", help="Show the numbers, too.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="Show every line, also where the screen has no room.")] = False,
) -> None:
    """Follow your own code: what each line does to shapes, and whether numbers move.

    Example: `course trace reshape_dance`
    """
    crop = CROP if values else ()
    wanted, source, followed = follow_own_attempt(course_of(course), exercise, function, "trace", crop)
    from rich.console import Group

    from ..report.trace_text import LEGEND, fitted_trace, trace_report
    from ..student.explain_trace import explained
    from ..student.follow import Source

    console = open_console()
    texts = tuple(lines_of(source.source))
    places = (proved_line(source, line) for line in range(1, len(texts) + 1))
    labels = tuple(f"cell {place.cell}, {place.line_in_cell}" for place in places) if source.cells else ()
    lines = Source(texts, labels)
    explanations = [explained(example, traced, lines) for example, traced in followed.shown]
    told = [replace(each, raised=in_cells(each.raised, source)) for each in explanations]
    shown, left = (Group(*map(trace_report, told)), 0) if whole else fitted_trace(console, told, BELOW)
    console.print(shown, soft_wrap=not console.is_terminal)
    if followed.ended:
        console.tell(f"✗ {followed.ended}", style="bold red")
    if explanations:
        console.print(LEGEND, style="bright_black", soft_wrap=not console.is_terminal)
    if left:
        console.say(f"{left} lines more: course trace {' '.join(filter(None, (wanted.id, function)))} --all")
    surprises = any(each.entries and not each.right for each in explanations)
    first = "change the first line that surprises you, then: " if surprises else ""
    console.print(f"Next: {first}course check {wanted.id}")
    if followed.ended or any(explanation.raised for explanation in explanations):
        raise typer.Exit(1)


def follow_own_attempt(
    course: Course,
    name: str | None,
    function: str | None,
    command: str,
    crop: tuple[int, ...] = (),
    *,
    by_head: bool = False,
) -> tuple[Exercise, AttemptSource, Followed]:
    """Trace the attempt in exercises/ in a process of its own. Raises CourseFault; exits if it is not started.

    crop: how many numbers of each output are kept; by_head: all that pictures need.
    """
    exercise = exercise_meant(course, name, command)
    from ..box.forked import open_own_box
    from ..diagnosis.recording_file import read
    from ..student.choose_example import examples_named
    from ..student.follow import TABLES, TIMES, follow
    from ..student.sentence import sentence_examples

    with open_own_box() as box:  # before this process runs a torch operation, because the box may fork it
        source = own_attempt(course, exercise)
        refuse_unstarted(exercise, source, command)
        recorded = read(fingerprint_path(exercise))
        chosen = examples_named(exercise, recorded, function, f"course {command}")
        if by_head and function is None:
            chosen += sentence_examples(exercise)
        kept = (TABLES, TIMES) if by_head else (crop, 1)
        return exercise, source, follow(box, course.limits.for_worker(), source, chosen, *kept)


def refuse_unstarted(exercise: Exercise, source: AttemptSource, command: str) -> None:
    """Print a message and exit with status 1 if the student has not written anything that can run."""
    console = open_console()
    lines = why_unstarted(exercise, source, command)
    console.tell(*lines)
    if lines:
        raise typer.Exit(1)
