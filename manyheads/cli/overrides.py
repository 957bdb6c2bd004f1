"""The command `course overrides`: the due dates, the late policy and the rows of overrides.yaml."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table
from typer import Exit

from ..course import Course
from ..course.course_yaml_schema import shown_moment
from ..course.final_scores import NAME, Decision, Decisions
from ..report.report_content import Labels, labels_of
from ..result import students_in
from ..submission.roster_and_times import read_roster
from .class_of_results import roster_of
from .options import (
    RESULTS,
    AssignmentOption,
    CourseOption,
    assignment_of,
    instructors_course_of,
    open_console,
)


def overrides(assignment: AssignmentOption = None, course: CourseOption = None) -> None:
    """Show the due dates, the late policy and every row of overrides.yaml, and say what is wrong
    with them.

    They are applied by grade, report, export, feedback and the gradebook alike. A row is one
    decision, a `score`, a `due` or `excused: true`: `- {student: ada, exercise:
    running_mean, score: 4, by: Dr. X, comment: A right idea.}`

    Example: `course overrides`
    """
    loaded = instructors_course_of(course, "overrides")
    console = open_console()
    students = known_students(loaded)
    assignments = loaded.assignments if assignment is None else (assignment_of(loaded, assignment),)
    decisions = Decisions.of_course(loaded)
    labels = labels_of(loaded)
    for course_assignment in assignments:
        due_text = "no due date"
        if dates := decisions.dates.get(course_assignment.id):
            policy = dates.policy
            at = shown_moment(dates.due_date, decisions.zone)
            due_text = (
                f"due {at}; late: {policy.per_day} a day, at most {policy.at_most}, after a "
                f"grace of {policy.grace}"
            )
        console.say(f"{course_assignment.title}: {due_text}")
    ids = {course_assignment.id for course_assignment in assignments}
    rows = [row for row in decisions.rows if row.assignment in ids]
    console.print(
        _rows(rows, decisions.zone, labels) if rows else f"{loaded.root / NAME}: nothing is decided"
    )
    if rows and not students:
        not_compared = (
            "Whether these students exist is not known here, without a roster, submitted/ or "
            f"{RESULTS}/. Next: `roster: FILE` in course.yaml"
        )
        console.say(not_compared, style="yellow")
    unknown = decisions.of_nobody(students, ids, groups_of(loaded)) if students else []
    console.say(*(f"course: {sentence}" for sentence in unknown), style="red")
    if unknown:
        raise Exit(2)


def _rows(rows: Sequence[Decision], zone: str, labels: Labels) -> Table:
    columns = [
        Column(name, overflow="fold")
        for name in ("line", "student", "of", "decision", "by", "comment")
    ]
    table = Table(*columns, header_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for row in rows:
        override = row.override
        subject = (
            labels.exercise(override.exercise)
            if override.exercise
            else labels.assignment(row.assignment)
        )
        detail = f" {override.score:g}" if override.score is not None else ""
        detail += f" {shown_moment(row.due_date, zone)}" if row.due_date else ""
        student = override.student or f"who answers {override.answers}"
        cells = (
            row.location.rpartition(":")[2],
            student,
            subject,
            override.decision + detail,
            override.by,
            override.comment,
        )
        table.add_row(*map(escape, cells))
    return table


def known_students(course: Course) -> set[str]:
    """Return all students on the roster, in submitted/ or in results/ of the course.

    The roster is the file that course.yaml names. Raises CourseFault if it cannot be read.
    """
    path = roster_of(course, None)
    submitted = course.root / "submitted"
    names = {*students_in(course.root / RESULTS)}
    if path is not None:
        names.update(student.id for student in read_roster(path).students)
    if submitted.is_dir():
        names.update(folder.name for folder in submitted.iterdir() if folder.is_dir())
    return names


def groups_of(course: Course) -> dict[str, list[str]]:
    """Return the members of each group on the roster of course.yaml.

    A group with the name of a student is left out. Raises CourseFault if the roster cannot be read.
    """
    path = roster_of(course, None)
    students = read_roster(path).students if path is not None else ()
    groups: dict[str, list[str]] = {}
    for student in students:
        if student.group:
            groups.setdefault(student.group, []).append(student.id)
    for student in students:
        groups.pop(student.id, None)
    return groups
