"""`course overrides`: what is decided."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from ..course.dates import shown_moment
from ..course.decisions import NAME, Decision, Decisions
from ..report.labels import Labels, labels_of
from .options import AssignmentOption, CourseOption, assignment_of, instructors_course_of, open_console


def overrides(assignment: AssignmentOption = None, course: CourseOption = None) -> None:
    """Show the due dates, the late policy and every row of overrides.yaml, and say what is wrong with them.

    They are applied by grade, report, compare, export, feedback and the gradebook alike; docs/decisions.md has an
    example.

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
