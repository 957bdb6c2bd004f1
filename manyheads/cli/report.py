"""The command `course report`: report on a class from its results, with pictures of wrong attempts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..box.names import Level
from ..course import Course, CourseError
from ..judge.record_results import read_changed_points
from ..report.aggregate import came_back_table, class_view
from ..report.class_rows import absent_by_assignment, absent_rows, row_of
from ..report.labels import labels_of
from ..report.terminal import class_exercises, class_table
from ..report.words import counted
from ..result import Result, read_results_and_errors, students_in
from ..submission import find_submissions, read_not_graded
from .class_results import class_list, course_near, decided
from .class_told import name_absent, name_decisions, name_not_graded
from .options import AssignmentOption, Console, CourseOption, RosterOption, course_of, open_console, results_of
from .progress import progress

if TYPE_CHECKING:
    from ..student.plot_content import Key, Picture


def draw_class(
    console: Console, course: Course, results: Sequence[Result], submitted: Path
) -> Mapping[Key, Sequence[Picture]]:
    """Return the pictures of each attempt that has any. Raises CourseFault."""
    found = find_submissions(course, submitted)[0]
    folders = {(s.student, s.assignment.id): s.folder for s in found}
    if not any((result.student, result.assignment) in folders for result in results):
        raise CourseError(
            f"{submitted} has no submission of these results. Next: course report --submitted FOLDER_GRADED"
        )
    from ..box.level import open_box
    from ..judge.isolation_proof import prove
    from ..student.plot_content import draw_wrong, drawable

    wanted, started = drawable(course, results, folders), time.monotonic()
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        prove(box, course)
        drawn: dict[Key, Sequence[Picture]] = {}
        with progress(console, len(wanted), 0, doing="drawing", what="attempts") as shown:
            for key, pictures in draw_wrong(course, box, wanted):
                drawn |= {key: pictures} if pictures else {}
                shown.one_more()
    seconds = time.monotonic() - started
    have = "attempt has" if len(wanted) == 1 else "attempts have"
    others = "; the others raise an error, or differ in nothing that can be drawn" if len(drawn) < len(wanted) else ""
    console.say(f"{len(drawn)} of {len(wanted)} wrong {have} pictures, drawn in {seconds:.1f} s{others}")
    return drawn


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
    members = class_list(near, roster, [result.student for result in found])
    labels, found = labels_of(near), results_of(near, decided(near, found, members), assignment)
    present = [result.student for result in found]
    strangers = members.strangers(present)
    rows = [row_of(result, labels) for result in found]
    if students:
        console.print(class_table([*rows, *absent_rows(rows, members)], labels))
    for id_, own in labels.by_assignment(found):
        console.print(class_exercises(class_view(own, labels, strangers), labels.assignment(id_), labels))
    console.print(came_back_table(found, labels), end="")
    levels = ", ".join(sorted({result.isolation for result in found}))
    name_absent(console, present, members)
    name_decisions(console, rows)
    name_not_graded(console, rows)
    console.print(f"{counted(len(found), 'submission', 'submissions')}, isolation: {levels}")
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
        points_changed=[
            each for each in read_changed_points(results) if each.assignment in {r.assignment for r in found}
        ],
        labels=labels,
        members=members,
    )
    console.say(f"Pages: {page}")
    if others:
        console.print(f"Not graded: {len(others)}, named on the class page", style="yellow")
    if broken:
        raise broken[0]
