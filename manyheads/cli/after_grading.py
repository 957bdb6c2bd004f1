"""Commands for after grading: `course feedback` and `course overrides`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..course.dates import shown_moment
from ..course.decisions import NAME, Decision, Decisions
from ..errors import CourseFault
from ..report.class_rows import row_of
from ..report.labels import Labels, labels_of
from ..report.words import counted
from ..result import read_results
from ..submission import is_student
from ..submission.lay_out import read_memory
from ..whole import told_where, write_whole
from .class_results import class_list, decided
from .class_told import name_not_graded
from .options import (
    AssignmentOption,
    CourseOption,
    RosterOption,
    assignment_of,
    course_of,
    instructors_course_of,
    open_console,
    results_of,
)


def feedback(
    results: Annotated[Path, typer.Argument(help="The folder that course grade wrote.")] = Path("results"),
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder to fill.")] = Path("home"),
    submitted: Annotated[
        Path, typer.Option(file_okay=False, help="What was graded: says what platforms call each student.")
    ] = Path("submitted"),
    roster: RosterOption = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Write each student's feedback, to hand out: pages and Markdown, by what counts.

    `OUT/feedback/STUDENT/ASSIGNMENT/` is as nbgrader names it. For what `course collect` took from Moodle or Canvas
    there is a zip for each assignment, too, with the names that they gave: upload it as Moodle's feedback files, or
    as Canvas' submissions.

    Example: `course feedback results --out home --submitted submitted`
    """
    from ..report.feedback_archives import FOLDER, folded_together, folder_files, zips

    loaded = course_of(course)
    found = read_results(results)
    members = class_list(loaded, roster, [other.student for other in found])
    graded = results_of(loaded, decided(loaded, found, members), assignment)
    console = open_console()
    if strange := next((other.student for other in graded if not is_student(other.student)), None):
        raise CourseFault(f"{strange!a} cannot be a folder's name. Next: remove that result, then course feedback")
    with told_where(out, "give --out another folder"):
        if pair := folded_together(out / FOLDER, [other.student for other in graded]):
            names = " and ".join(map(ascii, pair))
            raise CourseFault(
                f"{out} is on a file system where {names} are one folder, and one would get the other's feedback. "
                "Next: give --out a folder on another disk"
            )
        for result in graded:
            for path, content in folder_files(loaded, result, submitted if submitted.is_dir() else None):
                write_whole(out / path, content)
        done = zips(loaded, graded, submitted, read_memory(submitted))
        for name, content in done.files.items():
            write_whole(out / name, content)
    console.say(*(f"not in a zip: {sentence}" for sentence in done.said), style="yellow")
    name_not_graded(console, [row_of(other, labels_of(loaded)) for other in graded])
    students = counted(len({other.student for other in graded}), "student", "students")
    console.say(f"{students}: {out / FOLDER}/", *(f"{out / name}" for name in done.files))


def overrides(assignment: AssignmentOption = None, course: CourseOption = None) -> None:
    """Show the due dates, the late policy and every row of overrides.yaml, and say what is wrong with them.

    They are applied by grade, report, export, feedback and the gradebook alike. A row is one decision, a `score`, a `due`
    or `excused: true`: `- {student: ada, exercise: running_mean, score: 4, by: Dr. X, comment: A right idea.}`

    Example: `course overrides`
    """
    loaded = instructors_course_of(course, "overrides")
    console = open_console()
    wanted = loaded.assignments if assignment is None else (assignment_of(loaded, assignment),)
    decisions, labels = Decisions.of_course(loaded), labels_of(loaded)
    for exercise in wanted:
        if (dates := decisions.dates.get(exercise.id)) is not None:
            policy = dates.policy
            costs = f"{policy.per_day} a day, at most {policy.at_most}, after a grace of {policy.grace}"
            console.say(f"{exercise.title}: due {shown_moment(dates.due, decisions.zone)}; late: {costs}")
        else:
            console.say(f"{exercise.title}: no due date")
    rows = [row for row in decisions.rows if row.assignment in {one.id for one in wanted}]
    console.print(_table(rows, decisions.zone, labels) if rows else f"{loaded.root / NAME}: nothing is decided")


def _table(rows: Sequence[Decision], zone: str, labels: Labels) -> Table:
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("line", "student", "of", "decision", "by", "comment"):
        table.add_column(name, overflow="fold")
    for row in rows:
        override = row.override
        of = labels.exercise(override.exercise) if override.exercise else labels.assignment(row.assignment)
        said = f" {override.score:g}" if override.score is not None else ""
        said += f" {shown_moment(row.due, zone)}" if row.due else ""
        cells = (override.student, of, override.kind + said, override.by, override.comment)
        table.add_row(row.where.rpartition(":")[2], *map(escape, cells))
    return table
