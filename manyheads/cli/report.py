"""The commands that read results and decisions: `course report`, `export`, `feedback` and
`overrides`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.markup import escape
from rich.table import Column, Table
from typer import Exit, Option

from ..box.names import Level
from ..course import Course, CourseError
from ..course.dates import shown_moment
from ..course.decisions import NAME, Decision, Decisions
from ..errors import CourseFault
from ..judge.record_results import read_changed_points
from ..report.class_view import sentences
from ..report.exports import (
    FOLDER,
    FORMATS,
    TELLS_NOTHING,
    excuses_without_a_word,
    folders,
    gradescope_files,
    zips,
)
from ..report.labels import Labels, labels_of
from ..report.terminal import class_exercises, class_table
from ..report.words import counted
from ..result import Result, read_results, read_results_and_errors, students_in
from ..submission import find_submissions, read_not_graded
from ..submission.lay_out import read_memory
from ..visible import visible_line
from ..whole import told_where, write_whole
from . import options
from .class_results import class_of, course_near, gradebooks, known_students, name_not_graded, tell
from .options import Console, assignment_of, course_of, instructors_course_of, open_console
from .progress import progress

if TYPE_CHECKING:
    from ..student.plot_content import Key, Picture

# those of FORMATS, and that of gradescope_files
Format = Literal["csv", "gradescope", "canvas", "moodle"]


def report(
    results: options.ResultsArgument = options.RESULTS,
    students: Annotated[bool, Option(help="Also a line for every student.")] = False,
    submitted: Annotated[
        Path | None,
        Option(
            help=(
                "What was graded: draws wrong answers beside the expected ones, by running "
                "them again."
            )
        ),
    ] = None,
    html: Annotated[
        Path | None, Option(file_okay=False, help="Where the pages go [default: RESULTS/report].")
    ] = None,
    roster: options.RosterOption = None,
    section: options.SectionOption = None,
    assignment: options.AssignmentOption = None,
    course: options.CourseOption = None,
) -> None:
    """Show which misconceptions a class has, exercise by exercise, and write pages: one for the
    class, one a student.

    The pages need no network: open index.html from the disk, or hand a student's page to its
    student. It names nobody else.

    Example: `course report results`, or `course report results --submitted submitted` for pages
        with pictures.
    """
    from ..report.pages import pages_folder, write_pages

    graded, broken = read_results_and_errors(results)
    if not graded:
        raise broken[0]
    console = open_console()
    near, changed = course_near(course, results), read_changed_points(results)
    view = class_of(graded, near, roster, assignment, section, changed)
    if students:
        console.print(class_table(view))
    console.print(class_exercises(view))
    levels = ", ".join(sorted({result.isolation for result in view.results}))
    tell(
        console,
        view,
        f"{counted(len(view.results), 'submission', 'submissions')}, isolation: {levels}",
    )
    drawn = {} if submitted is None else _drawn(console, course_of(course), view.results, submitted)
    not_graded = read_not_graded(results)
    folder = html or pages_folder(results, [*view.by_student, *students_in(results)])
    is_part = section is not None or assignment is not None
    everybody = class_of(graded, near, roster).by_student if is_part else ()
    page = write_pages(view, folder, drawn, [str(error) for error in broken], not_graded, everybody)
    console.say(f"Pages: {page}")
    if not_graded:
        console.print(f"Not graded: {len(not_graded)}, named on the class page", style="yellow")
    if broken:
        raise broken[0]


def _drawn(
    console: Console, course: Course, results: Sequence[Result], submitted: Path
) -> Mapping[Key, Sequence[Picture]]:
    folders = {
        (submission.student, submission.assignment.id): submission.folder
        for submission in find_submissions(course, submitted)[0]
    }
    if not any((result.student, result.assignment) in folders for result in results):
        problem = f"{submitted} has no submission of these results"
        raise CourseError(f"{problem}. Next: course report --submitted FOLDER_GRADED")
    from ..box.level import open_box
    from ..judge.isolation_proof import prove
    from ..student.plot_content import draw_wrong, drawable

    attempts, started = drawable(course, results, folders), time.monotonic()
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        prove(box, course)
        drawn: dict[Key, Sequence[Picture]] = {}
        with progress(console, len(attempts), 0, doing="drawing", unit="attempts") as one_more:
            for key, pictures in draw_wrong(course, box, attempts):
                drawn |= {key: pictures} if pictures else {}
                one_more()
    have = counted(len(attempts), "wrong attempt has", "wrong attempts have")
    remark = (
        "; the others raise an error, or differ in nothing that can be drawn"
        if len(drawn) < len(attempts)
        else ""
    )
    console.say(
        f"{len(drawn)} of {have} pictures, drawn in {time.monotonic() - started:.1f} s{remark}"
    )
    return drawn


def export(
    results: options.ResultsArgument = options.RESULTS,
    format: Annotated[Format, Option(help="What to write.")] = "csv",
    out: Annotated[
        Path | None,
        Option(
            help=(
                "A file [default: standard output]; for Gradescope a folder, one file a submission."
            )
        ),
    ] = None,
    gradebook: Annotated[
        str | None,
        Option(
            help="Read nbgrader's database in place of results, such as sqlite:///gradebook.db."
        ),
    ] = None,
    roster: options.RosterOption = None,
    section: options.SectionOption = None,
    assignment: options.AssignmentOption = None,
    course: options.CourseOption = None,
) -> None:
    """Write results as CSV, for Gradescope, for Canvas, or for Moodle.

    Scores are what counts by the course's dates and overrides.yaml. What is not graded is blank,
    and is named on standard error; then the exit status is 1. Where a format has no place for
    words, who got what by which rule is said on standard error.

    With a roster, Canvas and Moodle get the ids that they find students by, and everybody in the
    class has a row: 0 or a blank for whoever handed in nothing, as `not_handed_in` in course.yaml
    says.

    Example: `course export results --format canvas --roster roster.csv --out grades.csv`
    """
    near = course_of(course) if gradebook is not None else course_near(course, results)
    graded = (
        read_results(results) if gradebook is None else gradebooks().read_gradebook(near, gradebook)
    )
    view = class_of(graded, near, roster, assignment, section, is_decided=gradebook is not None)
    if format in TELLS_NOTHING:
        _say(
            "decided",
            (
                f"{result.student}: {sentence}"
                for result in view.results
                for sentence in sentences(result, view.labels)
            ),
        )
        strangers = view.members.strangers(view.by_student)
        next_step = "Next: complete the roster, if that is a mistake"
        _say("left out", (f"{name} is not on the roster. {next_step}" for name in strangers))
    _say("excused", excuses_without_a_word(view, format))
    if out is None and format == "gradescope":
        raise CourseFault(
            "Gradescope reads a file for each submission. Next: the same with --out FOLDER"
        )
    texts = gradescope_files(view) if format == "gradescope" else {Path(): FORMATS[format](view)}
    if out is None:
        sys.stdout.write(texts[Path()])
    else:
        with told_where(out, "give --out another path"):
            for path, text in texts.items():
                encoding = "utf-8-sig" if format == "csv" else "utf-8"  # Excel wants the mark
                write_whole(out / path, text.encode(encoding))
    if unknown := [
        f"{student}: {why}"
        for assignment_part in view.assignments
        for student, why in assignment_part.not_graded
    ]:
        _say("not graded", unknown)
        blank = "" if format == "gradescope" else ": its cells are blank"
        next_step = "Next: course grade again, and do what it says, then this"
        print(f"There are no points for that{blank}. {next_step}", file=sys.stderr)
        raise Exit(1)


def _say(label: str, messages: Iterable[str]) -> None:
    sys.stderr.writelines(f"{label}: {visible_line(sentence)}\n" for sentence in messages)


def feedback(
    results: options.ResultsArgument = options.RESULTS,
    out: Annotated[Path, Option(file_okay=False, help="The folder to fill.")] = Path("home"),
    submitted: Annotated[
        Path,
        Option(file_okay=False, help="What was graded: says what platforms call each student."),
    ] = Path("submitted"),
    roster: options.RosterOption = None,
    section: options.SectionOption = None,
    assignment: options.AssignmentOption = None,
    course: options.CourseOption = None,
) -> None:
    """Write each student's feedback, to hand out: pages and Markdown, by what counts.

    `OUT/feedback/STUDENT/ASSIGNMENT/` is as nbgrader names it. For what `course collect` took from
    Moodle or Canvas there is a zip for each assignment, too, with the names that they gave: upload
    it as Moodle's feedback files, or as Canvas' submissions.

    Example: `course feedback results --out home --submitted submitted`
    """
    loaded = course_of(course)
    view, console = (
        class_of(read_results(results), loaded, roster, assignment, section),
        open_console(),
    )
    with told_where(out, "give --out another folder"):
        for path, content in folders(view, loaded, submitted):
            write_whole(out / path, content)
        archives, in_none = zips(view, read_memory(submitted))
        for name, content in archives.items():
            write_whole(out / name, content)
    console.say(*(f"not in a zip: {sentence}" for sentence in in_none), style="yellow")
    name_not_graded(console, view)
    students = counted(len(view.by_student), "student", "students")
    console.say(f"{students}: {out / FOLDER}/", *(f"{out / name}" for name in archives))


def overrides(
    assignment: options.AssignmentOption = None, course: options.CourseOption = None
) -> None:
    """Show the due dates, the late policy and every row of overrides.yaml, and say what is wrong
    with them.

    They are applied by grade, report, export, feedback and the gradebook alike. A row is one
    decision, a `score`, a `due` or `excused: true`: `- {student: ada, exercise:
    running_mean, score: 4, by: Dr. X, comment: A right idea.}`

    Example: `course overrides`
    """
    loaded, console = instructors_course_of(course, "overrides"), open_console()
    students = known_students(loaded)
    assignments = loaded.assignments if assignment is None else (assignment_of(loaded, assignment),)
    decisions, labels = Decisions.of_course(loaded), labels_of(loaded)
    for course_assignment in assignments:
        due_text = "no due date"
        if dates := decisions.dates.get(course_assignment.id):
            policy, at = dates.policy, shown_moment(dates.due_date, decisions.zone)
            due_text = (
                f"due {at}; late: {policy.per_day} a day, at most {policy.at_most}, after a "
                f"grace of {policy.grace}"
            )
        console.say(f"{course_assignment.title}: {due_text}")
    rows = [
        row
        for row in decisions.rows
        if row.assignment in {course_assignment.id for course_assignment in assignments}
    ]
    console.print(
        _rows(rows, decisions.zone, labels) if rows else f"{loaded.root / NAME}: nothing is decided"
    )
    unknown = (
        decisions.of_nobody(students, {course_assignment.id for course_assignment in assignments})
        if students
        else []
    )
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
            row.where.rpartition(":")[2],
            student,
            subject,
            override.decision + detail,
            override.by,
            override.comment,
        )
        table.add_row(*map(escape, cells))
    return table
