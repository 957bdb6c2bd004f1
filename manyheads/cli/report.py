"""`course report`: report on a class from its results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..course import Course
from ..report.aggregate import class_view
from ..report.class_list import NOBODY, ClassList, absent_by_assignment, absent_rows
from ..report.labels import labels_of
from ..report.rows import row_of
from ..report.terminal import class_exercises, class_table
from ..result import Result, read_results_and_errors, students_in
from ..submission import read_not_graded
from .class_members import class_list, pseudonyms_in
from .console import open_console
from .decided import course_near, decided
from .grade_summary import name_absent, name_decisions, name_not_graded
from .options import AssignmentOption, CourseOption, RosterOption, course_of, results_of
from .pictures import draw_class


def report(
    results: Annotated[Path, typer.Argument(help="The folder that course grade wrote.")] = Path("results"),
    students: Annotated[bool, typer.Option(help="Also a line for every student.")] = False,
    submitted: Annotated[
        Path | None,
        typer.Option(help="What was graded: draws wrong answers beside the expected ones, by running them again."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(file_okay=False, help="Where the pages go [default: RESULTS/report].")
    ] = None,
    roster: RosterOption = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Show which misconceptions a class has, exercise by exercise, and write pages: one for the class, one a student.

    The pages need no network: open index.html from the disk, or hand a student's page to its student. It names nobody else.

    Example: `course report results`, or `course report results --submitted submitted` for pages with pictures.
    """
    from ..report.pages import pages_folder, write_pages

    found, broken = read_results_and_errors(results)
    if not found:
        raise broken[0]
    console = open_console()
    near = course_near(course, results)
    members = _members(near if roster is None else course_of(course), roster, found)
    labels, found = labels_of(near), results_of(near, decided(near, found, members), assignment)
    present = [result.student for result in found]
    rows = [row_of(result, labels) for result in found]
    if students:
        console.print(class_table([*rows, *absent_rows(rows, members)], labels))
    for id_, own in labels.by_assignment(found):
        console.print(class_exercises(class_view(own, labels), labels.assignment(id_), labels))
    levels = ", ".join(sorted({result.isolation for result in found}))
    name_absent(console, present, members)
    name_decisions(console, rows)
    name_not_graded(console, rows)
    console.print(f"{len(found)} {'submission' if len(found) == 1 else 'submissions'}, isolation: {levels}")
    drawn = {} if submitted is None else draw_class(console, course_of(course), found, submitted)
    others = read_not_graded(results)
    absent = absent_by_assignment(found, members)
    unread = [str(error) for error in broken]
    page = write_pages(
        found,
        unread,
        html or pages_folder(results, [*present, *students_in(results)]),
        drawn,
        not_graded=others,
        absent=absent,
        labels=labels,
    )
    console.print(f"Pages: {page}", markup=False, soft_wrap=True)
    if others:
        console.print(f"Not graded: {len(others)}, named on the class page", style="yellow")
    if broken:
        raise broken[0]


def _members(course: Course | None, roster: Path | None, results: list[Result]) -> ClassList:
    """The class, under pseudonyms if the results are."""
    if course is None or not (roster or course.file.roster):
        return NOBODY
    pseudonyms = pseudonyms_in(course, results)
    members = class_list(course, roster, [each.student for each in results], pseudonyms)
    if pseudonyms is not None:
        pseudonyms.write()  # of those who were not there when it was graded
    return members
