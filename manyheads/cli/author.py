"""Commands for authors: `course init`, `course new`, `course verify`, `course doctor`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from typer import Argument, Exit, Option

from ..box.names import Level
from ..course import CourseError
from ..judge.judge_process import usable
from ..report.called import as_called
from ..report.words import counted
from .options import (
    AssignmentOption,
    CourseOption,
    course_of,
    exercises_named,
    instructors_course_of,
    open_console,
)


def init(
    folder: Annotated[Path, Argument(help="A new folder, or an empty one.")],
    title: Annotated[str, Option(help="The title of the course.")] = "Averages",
) -> None:
    """Make a small complete course of your own: one exercise worked out, a class to grade, a
    Makefile, a workflow.

    Example: `course init ../my-course`
    """
    from ..authoring.skeletons import init_course

    paths = init_course(folder, title)
    open_console().say(
        f"{len(paths)} files in {folder}. Next: course release --course {quote(str(folder))}"
    )


def new(
    name: Annotated[
        str, Argument(metavar="ASSIGNMENT/EXERCISE", help="Two ids, such as averages/median.")
    ],
    numpy: Annotated[
        bool, Option("--numpy", help="With NumPy's arrays in place of torch's tensors.")
    ] = False,
    instead: Annotated[
        str | None,
        Option(
            metavar="ASSIGNMENT",
            help="Take this assignment out, such as the example of `course init`.",
        ),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Add the skeleton of an exercise, which works as it is and says in place what to fill.

    Example: `course new averages/running_median`, or `course new basics/softmax --instead averages`
    """
    from ..authoring.skeletons import FILL, new_exercise, remove_assignment

    loaded = instructors_course_of(course, "new")
    assignment, _, exercise = name.partition("/")
    ids = [candidate.id for candidate in loaded.assignments]
    if not exercise and assignment in ids:
        raise CourseError(
            f"{name} is an assignment: what is the exercise called? Next: course new {name}/NAME"
        )
    if not exercise:
        raise CourseError(f"{name!r} names no assignment. Next: course new {ids[0]}/{name}")
    gone = next((candidate for candidate in loaded.assignments if candidate.id == instead), None)
    if instead is not None and (gone is None or instead == assignment):
        raise CourseError(
            f"{instead} is no other assignment that is there. Next: course new --help"
        )
    written = new_exercise(loaded, assignment, exercise, "numpy" if numpy else "torch")
    if gone:
        remove_assignment(loaded, gone)
    console, remaining = open_console(), [id_ for id_ in ids if id_ != instead]
    if assignment not in ids and remaining:  # which may be meant, or a slip of the pen
        console.say(f"{assignment} is a new assignment, beside {', '.join(remaining)}")
    console.say(*(str(path.relative_to(loaded.root)) for path in written))
    console.say(
        f"Next: fill what says {FILL} there, then: course release {exercise} && course verify "
        f"{exercise}"
    )


def verify(
    exercises: Annotated[list[str] | None, Argument(help="Ids [default: all].")] = None,
    seeds: Annotated[
        int, Option(min=1, help="Draws of inputs for every right and wrong attempt.")
    ] = 5,
    pairs: Annotated[
        int, Option(min=0, help="Pairs of faults to try in each exercise; 0: all.")
    ] = 40,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Check that stubs score 0, right attempts full, mutants are caught and named, and nothing
    hidden is released.

    Example: `course verify 01 --seeds 20`
    """
    loaded = instructors_course_of(course, "verify")
    named = exercises_named(loaded, exercises or [], assignment)
    from ..authoring.verify.claims import Line, verify_course

    console, marks = open_console(), {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}

    def show(line: Line) -> None:
        mark, style = marks[line.is_satisfied]
        console.say(
            f"{mark} {line.subject:<18} {as_called(line.says):<72} {line.figures:>5}", style=style
        )
        console.say(*(f"    {text}" for text in line.lines))

    lines = verify_course(loaded, named, show, seeds=seeds, pairs=pairs, jobs=usable())
    broken = sum(line.is_satisfied is False for line in lines)
    fallen = counted(broken, "claim does", "claims do")
    console.print(f"{fallen} not hold." if broken else "Every claim holds.")
    if broken:
        raise Exit(1)


def doctor(course: CourseOption = None) -> None:
    """Show which isolation levels hold here, proved by a canary, and what would improve this
    machine.

    Example: `course doctor`
    """
    from ..authoring.machine import findings

    console, graded = open_console(), False
    for finding in findings(course_of(course)):
        mark = {True: "✓", False: "✗", None: "·"}[finding.good]
        console.say(f"{mark} {finding.subject:<18} {finding.says}")
        if finding.command:
            console.say(f"    Next: {finding.command}")
        graded |= finding.subject == Level.NAMESPACES and finding.good is True
    console.print(
        "This machine can grade."
        if graded
        else "This machine cannot grade; `course check` still works."
    )
    if not graded:
        raise Exit(1)
