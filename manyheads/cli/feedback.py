"""`course feedback`: what goes back to students."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..collect.memory import read_memory
from ..errors import CourseFault
from ..report.labels import labels_of
from ..report.rows import row_of
from ..report.words import counted
from ..result import read_results
from ..submission import is_student
from ..whole import write_whole
from .class_members import class_list, pseudonyms_in, resolved
from .console import open_console
from .decided import decided
from .grade_summary import name_not_graded
from .options import AssignmentOption, CourseOption, RosterOption, course_of, results_of


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
    from ..feedback.folder import FOLDER, folded_together, folder_files
    from ..feedback.zips import zips

    loaded = course_of(course)
    found = read_results(results)
    if pseudonyms_in(loaded, found) is not None:
        found = resolved(loaded, found)
    members = class_list(loaded, roster, [each.student for each in found])
    graded = results_of(loaded, decided(loaded, found, members), assignment)
    console = open_console()
    if strange := next((each.student for each in graded if not is_student(each.student)), None):
        raise CourseFault(f"{strange!a} cannot be a folder's name. Next: remove that result, then course feedback")
    try:
        if pair := folded_together(out / FOLDER, [each.student for each in graded]):
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
    except OSError as error:
        raise CourseFault(f"{out} cannot be written ({error.strerror}). Next: give --out another folder") from None
    for sentence in done.said:
        console.print(f"not in a zip: {sentence}", style="yellow", markup=False, soft_wrap=True)
    name_not_graded(console, [row_of(each, labels_of(loaded)) for each in graded])
    students = counted(len({each.student for each in graded}), "student", "students")
    console.print(f"{students}: {out / FOLDER}/", markup=False, soft_wrap=True)
    for name in done.files:
        console.print(f"{out / name}", markup=False, soft_wrap=True)
