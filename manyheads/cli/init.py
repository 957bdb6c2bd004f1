"""`course init` and `course new`: make a course of your own."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from ..course import CourseError
from .console import open_console
from .options import CourseOption, instructors_course_of


def init(
    folder: Annotated[Path, typer.Argument(help="A new folder, or an empty one.")],
    title: Annotated[str, typer.Option(help="The title of the course, for its README.")] = "Averages",
) -> None:
    """Make a small complete course of your own: one exercise worked out, a class to grade, a Makefile, a workflow.

    Example: `course init ../my-course`
    """
    from ..authoring.init import init_course

    made = init_course(folder, title)
    console = open_console()
    console.print(
        f"{len(made)} files in {folder}. Next: cd {quote(str(folder))} && course release", soft_wrap=True, markup=False
    )


def new(
    name: Annotated[str, typer.Argument(metavar="ASSIGNMENT/EXERCISE", help="Two ids, such as averages/median.")],
    stateful: Annotated[
        bool, typer.Option("--stateful", help="A class that returns several things, one of them for its next call.")
    ] = False,
    course: CourseOption = None,
) -> None:
    """Add the skeleton of an exercise, which works as it is and says in place what to fill.

    Example: `course new averages/running_median`
    """
    from ..authoring.new import FILL, new_exercise

    loaded = instructors_course_of(course, "new")
    assignment, _, exercise = name.partition("/")
    there = [each.id for each in loaded.assignments]
    if not exercise and assignment in there:
        raise CourseError(
            f"{assignment} is an assignment: what is the exercise called? Next: course new {assignment}/NAME"
        )
    if not exercise:
        raise CourseError(f"{name!r} names no assignment. Next: course new {there[0]}/{name}")
    written = new_exercise(loaded, assignment, exercise, stateful)
    console = open_console()
    if assignment not in there:  # which may be meant, or a slip of the pen
        told = f"{assignment} is a new assignment, beside {', '.join(there)}"
        console.print(told, soft_wrap=True, markup=False)
    for path in written:
        console.print(str(path.relative_to(loaded.root)), soft_wrap=True, markup=False)
    console.print(
        f"Next: fill what says {FILL} there, then course release {exercise} and course verify {exercise}",
        soft_wrap=True,
        markup=False,
    )
