"""The command `course overrides`: the due dates, the late policy and the rows of overrides.yaml."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table
from typer import Exit

from ..course import Course
from ..course.course_yaml_schema import shown_moment
from ..course.final_scores import NAME, Decision, Decisions, latest_dated
from ..report.report_content import Labels, labels_of
from ..result import students_in
from ..submission.roster_and_times import Student
from .class_of_results import students_on_roster
from .options import (
    RESULTS,
    AssignmentOption,
    CourseOption,
    assignment_of,
    instructors_course_of,
    open_console,
)


def overrides(assignment: AssignmentOption = None, course: CourseOption = None) -> None:
    """Show the due dates, the late policy, every row of overrides.yaml and what holds for each
    student, and say what is wrong with the rows.

    They are applied by grade, report, export, feedback and the gradebook alike. A row is one
    decision, a `score`, a `due`, an `extra` time or `excused: true`, about a `student` or several,
    a `group` or a `section`: `- {student: ada, exercise: running_mean, score: 4, by: Dr. X,
    comment: A right idea.}`

    Example: `course overrides`
    """
    loaded = instructors_course_of(course, "overrides")
    console = open_console()
    members = students_on_roster(loaded, None)
    students = known_students(loaded, members)
    assignments = loaded.assignments if assignment is None else (assignment_of(loaded, assignment),)
    decisions = Decisions.of_course(loaded, members)
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
    if rows:
        console.print(_rows(rows, decisions.zone, labels))
    elif decisions.rows:
        console.print(f"{loaded.root / NAME}: no row is about {assignments[0].title}")
    else:
        console.print(f"{loaded.root / NAME}: nothing is decided")
    names_students = any(row.students for row in rows)
    if names_students:
        console.say("What holds for each student:")
        console.print(_students_table(rows, decisions, labels))
    if names_students and not students:
        not_compared = (
            "Whether these students exist is not known here, without a roster, submitted/ or "
            f"{RESULTS}/. Next: `roster: FILE` in course.yaml"
        )
        console.say(not_compared, style="yellow")
    unknown = decisions.of_nobody(students, ids, groups_of(members)) if students else []
    console.say(*(f"course: {sentence}" for sentence in unknown), style="red")
    if unknown:
        raise Exit(2)


def _table(*names: str) -> Table:
    columns = [Column(name, overflow="fold") for name in names]
    return Table(*columns, header_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False)


def _rows(rows: Sequence[Decision], zone: str, labels: Labels) -> Table:
    table = _table("line", "student", "of", "decision", "by", "comment")
    for row in rows:
        override = row.override
        decision = _decision_text(row)
        if row.due_date:
            decision += f" {shown_moment(row.due_date, zone)}"
        title = _title(row, labels)
        cells = (row.line, override.subject, title, decision, override.by, override.comment)
        table.add_row(*map(escape, cells))
    return table


def _lines(rows: Sequence[Decision]) -> str:
    """Return the numbers of the rows' lines, such as "2, 10"."""
    return ", ".join(sorted([row.line for row in rows], key=int))


def _title(row: Decision, labels: Labels) -> str:
    """Return the title of the exercise or assignment that a row is about."""
    exercise = row.override.exercise
    return labels.exercise(exercise) if exercise else labels.assignment(row.assignment)


def _decision_text(row: Decision) -> str:
    """Return for example "score 4"."""
    override = row.override
    detail = f" {override.score:g}" if override.score is not None else ""
    return f"{override.decision}{detail} {override.extra or ''}".rstrip()


def _students_table(rows: Sequence[Decision], decisions: Decisions, labels: Labels) -> Table:
    """Return what holds for each student of these rows, with the lines that say so."""
    table = _table("student", "assignment", "due", "other", "by line", "in place of")
    pairs = {(student, row.assignment) for row in rows for student in row.students}
    for student, assignment in sorted(pairs):
        all_rows = [row for row in rows if student in row.students and row.assignment == assignment]
        valid_rows = decisions.rows_for(student, assignment)
        valid_overrides = [row.override for row in valid_rows]
        dated_row = latest_dated(valid_rows)
        due_date = dated_row and dated_row.due_date
        other_texts = [
            f"{_decision_text(row)}: {_title(row, labels)}"
            for row in valid_rows
            if not row.due_date
        ]
        cells = (
            student,
            labels.assignment(assignment),
            shown_moment(due_date, decisions.zone) if due_date else "",
            ", ".join(other_texts),
            _lines(valid_rows),
            _lines([row for row in all_rows if row.override not in valid_overrides]),
        )
        table.add_row(*map(escape, cells))
    return table


def known_students(course: Course, members: Sequence[Student]) -> set[str]:
    """Return all students on the roster, in submitted/ or in results/ of the course."""
    submitted = course.root / "submitted"
    names = {*students_in(course.root / RESULTS), *(student.id for student in members)}
    if submitted.is_dir():
        names.update(folder.name for folder in submitted.iterdir() if folder.is_dir())
    return names


def groups_of(students: Sequence[Student]) -> dict[str, list[str]]:
    """Return the members of each group on the roster.

    A group with the name of a student is left out.
    """
    groups: dict[str, list[str]] = {}
    for student in students:
        if student.group:
            groups.setdefault(student.group, []).append(student.id)
    for student in students:
        groups.pop(student.id, None)
    return groups
