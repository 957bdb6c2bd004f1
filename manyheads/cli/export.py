"""`course export`: results for other systems."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..errors import CourseFault
from ..report.adjustments import sentences
from ..report.class_rows import ClassList, not_graded
from ..report.exports import FORMATS, TELLS_NOTHING, gradescope_files
from ..report.labels import Labels, labels_of
from ..result import Result, read_results
from ..whole import told_where, write_whole
from .class_results import class_list, course_near, decided, gradebooks
from .options import AssignmentOption, CourseOption, RosterOption, course_of, results_of

Format = Literal["csv", "gradescope", "canvas", "moodle"]  # the keys of FORMATS


def export(
    results: Annotated[Path, typer.Argument(help="The folder that course grade wrote.")] = Path("results"),
    format: Annotated[Format, typer.Option(help="What to write.")] = "csv",
    out: Annotated[
        Path | None,
        typer.Option(help="A file [default: standard output]; for Gradescope a folder, one file a submission."),
    ] = None,
    gradebook: Annotated[
        str | None, typer.Option(help="Read nbgrader's database in place of results, such as sqlite:///gradebook.db.")
    ] = None,
    roster: RosterOption = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Write results as CSV, for Gradescope, for Canvas, or for Moodle.

    Scores are what counts by the course's dates and overrides.yaml. What is not graded is
    blank, and is named on standard error; then the exit status is 1. Where a format has no place for words, who got
    what by which rule is said on standard error.

    With a roster, Canvas and Moodle get the ids that they find students by, and everybody in the class has a row: 0 or a blank
    for whoever handed in nothing, as `not_handed_in` in course.yaml says.

    Example: `course export results --format canvas --roster roster.csv --out grades.csv`
    """
    near = course_of(course) if gradebook is not None else course_near(course, results)
    found = read_results(results) if gradebook is None else gradebooks().read_gradebook(near, gradebook)
    members = class_list(near, roster, [result.student for result in found])
    labels = labels_of(near)
    if gradebook is None:  # which has been given what counts
        found = decided(near, found, members)
    found = results_of(near, found, assignment)
    if format in TELLS_NOTHING:
        for sentence in (f"{result.student}: {said}" for result in found for said in sentences(result, labels)):
            print(f"decided: {sentence}", file=sys.stderr)
        for name in members.strangers([result.student for result in found]):
            print(
                f"left out: {name} is not on the roster. Next: complete the roster, if that is a mistake",
                file=sys.stderr,
            )
    if out is None and format == "gradescope" and len(found) > 1:
        raise CourseFault(
            f"Gradescope reads a file for each of these {len(found)} submissions. Next: the same with --out FOLDER"
        )
    if out is None:
        sys.stdout.write(FORMATS[format](found, members, labels))
    else:
        _write(out, format, found, members, labels)
    if unknown := [f"{result.student}: {said}" for result in found for said in not_graded(result, labels)]:
        for sentence in unknown:
            print(f"not graded: {sentence}", file=sys.stderr)
        blank = "" if format == "gradescope" else ": its cells are blank"
        following = "Next: course grade again, and do what it says, then this"
        print(f"There are no points for that{blank}. {following}", file=sys.stderr)
        raise typer.Exit(1)


def _write(out: Path, format: Format, results: list[Result], members: ClassList, labels: Labels) -> None:
    files = {out: FORMATS[format](results, members, labels)}
    if format == "gradescope" and (out.is_dir() or not out.suffix):
        files = {out / path: text for path, text in gradescope_files(results, labels).items()}
    with told_where(out, "give --out another path"):
        for path, text in files.items():
            write_whole(path, text.encode())
