"""The commands that read results: `course report`, `export` and `feedback`.

These commands apply due dates, decisions and the roster, as `course grade` does at its end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Exit, Option

from ..box.level_and_device_names import Level
from ..course import Course, CourseError
from ..files import CourseFault, os_error_as_fault, write_whole
from ..judge.results_folder import read_changed_points
from ..printable_text import visible_line
from ..report.class_summary import ClassView, sentences
from ..report.feedback_archives import FOLDER, feedback_archives, feedback_folders
from ..report.report_content import count_with_noun
from ..report.score_exports import (
    FORMATS,
    WITHOUT_EXPLANATIONS,
    excuses_without_a_word,
    gradescope_files,
)
from ..report.terminal import class_exercises, class_table
from ..result import Result, read_results, read_results_and_errors, students_in
from ..submission import find_submissions, read_not_graded
from ..submission.intake_journal import read_journal
from .class_of_results import class_of, course_near, gradebooks, students_on_roster
from .class_sentences import print_class_state, print_not_graded
from .options import (
    RESULTS,
    AssignmentOption,
    Console,
    CourseOption,
    ResultsArgument,
    RosterOption,
    SectionOption,
    course_of,
    open_console,
    progress,
)

if TYPE_CHECKING:
    from ..student.pictures import Key, Picture

# the formats in FORMATS, and the format of gradescope_files
Format = Literal["csv", "gradescope", "canvas", "moodle"]


def report(
    results: ResultsArgument = RESULTS,
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
    roster: RosterOption = None,
    section: SectionOption = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Show which misconceptions a class has, exercise by exercise, and write pages: one for the
    class, one a student.

    The pages need no network: open index.html from the disk, show without-names.html in class, or
    hand a student's page to its student. It names nobody else.

    Example: `course report results`, or `course report results --submitted submitted` for pages
        with pictures.
    """
    from ..report.pages import pages_folder, write_pages

    graded, broken = read_results_and_errors(results)
    if not graded:
        raise broken[0]
    console = open_console()
    near = course_near(course, results)
    changed = read_changed_points(results)
    view = class_of(graded, near, roster, assignment=assignment, section=section, changed=changed)
    if students:
        console.print(class_table(view))
    console.print(class_exercises(view))
    levels = ", ".join(sorted({result.isolation for result in view.results}))
    print_class_state(
        console,
        view,
        f"{count_with_noun(len(view.results), 'submission', 'submissions')}, isolation: {levels}",
    )
    drawn = (
        {}
        if submitted is None
        else _draw_pictures(console, course_of(course), view.results, submitted)
    )
    not_graded = read_not_graded(results)
    folder = html or pages_folder(results, [*view.by_student, *students_in(results)])
    is_part = section is not None or assignment is not None
    everybody = class_of(graded, near, roster).by_student if is_part else ()
    page = write_pages(
        view,
        folder,
        drawn,
        [str(error) for error in broken],
        not_graded=not_graded,
        of_class=everybody,
    )
    console.say(f"Pages: {page}")
    if not_graded:
        console.print(f"Not graded: {len(not_graded)}, named on the class page", style="yellow")
    if broken:
        raise broken[0]


def _draw_pictures(
    console: Console, course: Course, results: Sequence[Result], submitted: Path
) -> Mapping[Key, Sequence[Picture]]:
    folders = {
        (submission.student, submission.assignment.id): submission.folder
        for submission in find_submissions(course, submitted)[0]
    }
    if not any((result.student, result.assignment) in folders for result in results):
        raise CourseError(
            f"{submitted} has no submission of these results. "
            "Next: course report --submitted FOLDER_GRADED"
        )
    from ..box import open_box
    from ..box.canary import prove
    from ..student.pictures import draw_wrong, drawable

    attempts = drawable(course, results, folders)
    started = time.monotonic()
    limits = course.limits.for_worker()
    with open_box(Level.NAMESPACES, limits, course.root) as box:
        prove(box, limits, course.root, course.hidden_files())
        drawn: dict[Key, Sequence[Picture]] = {}
        with progress(console, len(attempts), 0, doing="drawing", unit="attempts") as one_more:
            for key, pictures in draw_wrong(course, box, attempts):
                if pictures:
                    drawn[key] = pictures
                one_more()
    have = count_with_noun(len(attempts), "wrong attempt has", "wrong attempts have")
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
    results: ResultsArgument = RESULTS,
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
    roster: RosterOption = None,
    section: SectionOption = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Write results as CSV, for Gradescope, for Canvas, or for Moodle.

    The scores are those that count, after due dates and overrides.yaml. If something is not
    graded, it has no score, standard error lists it, and the exit status is 1. Canvas and Moodle
    have no cell for a reason: for them, standard error lists which student's score was changed, and
    by which rule.

    With a roster, the files for Canvas and Moodle have the ids by which these find a student, and
    everybody in the class has a row. A student who handed in nothing gets 0 or a blank, as
    `not_handed_in` in course.yaml says.

    Example: `course export results --format canvas --roster roster.csv --out grades.csv`
    """
    near = course_of(course) if gradebook is not None else course_near(course, results)
    if gradebook is None:
        graded = read_results(results)
    else:
        members = students_on_roster(near, roster)
        graded = gradebooks().read_gradebook(near, gradebook, members)
    view = class_of(
        graded,
        near,
        roster,
        assignment=assignment,
        section=section,
        is_decided=gradebook is not None,
    )
    if format in WITHOUT_EXPLANATIONS:
        _write_explanations(view)
    _write_to_stderr("excused", excuses_without_a_word(view, format))
    if out is None and format == "gradescope":
        raise CourseFault(
            "Gradescope reads a file for each submission. Next: the same with --out FOLDER"
        )
    # The keys are paths below `out`. A single text goes to `out` itself.
    texts = gradescope_files(view) if format == "gradescope" else {Path(): FORMATS[format](view)}
    if out is None:
        sys.stdout.write(texts[Path()])
    else:
        with os_error_as_fault(out, "give --out another path"):
            for path, text in texts.items():
                encoding = "utf-8-sig" if format == "csv" else "utf-8"  # Excel wants the mark
                write_whole(out / path, text.encode(encoding))
    ungraded = [
        f"{student}: {why}"
        for assignment_part in view.assignments
        for student, why in assignment_part.not_graded
    ]
    if ungraded:
        _write_to_stderr("not graded", ungraded)
        blank = "" if format == "gradescope" else ": its cells are blank"
        next_step = "Next: course grade again, and do what it says, then this"
        print(f"There are no points for that{blank}. {next_step}", file=sys.stderr)
        raise Exit(1)


def _write_explanations(view: ClassView) -> None:
    """Write to standard error which rules changed a score, and who is not on the roster."""
    decided = (
        f"{result.student}: {sentence}"
        for result in view.results
        for sentence in sentences(result, view.labels)
    )
    _write_to_stderr("decided", decided)
    strangers = view.members.strangers(view.by_student)
    next_step = "Next: complete the roster, if that is a mistake"
    left_out = (f"{name} is not on the roster. {next_step}" for name in strangers)
    _write_to_stderr("left out", left_out)


def _write_to_stderr(label: str, messages: Iterable[str]) -> None:
    sys.stderr.writelines(f"{label}: {visible_line(sentence)}\n" for sentence in messages)


def feedback(
    results: ResultsArgument = RESULTS,
    out: Annotated[Path, Option(file_okay=False, help="The folder to fill.")] = Path("home"),
    submitted: Annotated[
        Path,
        Option(file_okay=False, help="What was graded: says what platforms call each student."),
    ] = Path("submitted"),
    roster: RosterOption = None,
    section: SectionOption = None,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Write each student's feedback, to hand out: pages and Markdown, with the scores that count.

    The folders are named as nbgrader names them: `OUT/feedback/STUDENT/ASSIGNMENT/`. If `course
    collect` took files from Moodle or Canvas, there is also a zip for each assignment, with the
    names that the platform gave: upload it as Moodle's feedback files, or as Canvas' submissions.

    Example: `course feedback results --out home --submitted submitted`
    """
    loaded = course_of(course)
    graded = read_results(results)
    view = class_of(graded, loaded, roster, assignment=assignment, section=section)
    console = open_console()
    with os_error_as_fault(out, "give --out another folder"):
        for path, content in feedback_folders(view, loaded, submitted):
            write_whole(out / path, content)
        archives = feedback_archives(view, read_journal(submitted))
        for name, content in archives.contents.items():
            write_whole(out / name, content)
    console.say(*(f"not in a zip: {sentence}" for sentence in archives.left_out), style="yellow")
    print_not_graded(console, view)
    students = count_with_noun(len(view.by_student), "student", "students")
    console.say(f"{students}: {out / FOLDER}/", *(f"{out / name}" for name in archives.contents))
