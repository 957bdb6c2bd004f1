"""The commands that read results: `course report`, `export`, `feedback` and `overrides`.

These commands count a class by dates, decisions and roster, as `course grade` does at its end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.markup import escape
from rich.table import Column, Table
from typer import Exit, Option

from ..box.level_and_device_names import Level
from ..course import Course, CourseError, find_course, load_course
from ..course.course_yaml_schema import shown_moment
from ..course.final_scores import NAME, UNKNOWN_TIME, Decision, Decisions, final, of_the_absent
from ..files import CourseFault, os_error_as_fault, write_whole
from ..judge.results_folder import ChangedPoints, read_changed_points
from ..printable_text import visible_line
from ..report.class_summary import NOBODY, ClassList, ClassView, sentences
from ..report.feedback_archives import FOLDER, feedback_archives, feedback_folders
from ..report.report_content import Labels, count_with_noun, labels_of, score_words
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
from ..submission.roster_and_times import read_roster
from .options import (
    RESULTS,
    AssignmentOption,
    Console,
    CourseOption,
    ResultsArgument,
    RosterOption,
    SectionOption,
    assignment_of,
    course_of,
    instructors_course_of,
    open_console,
    progress,
)

if TYPE_CHECKING:
    from ..student.pictures import Key, Picture

MOST_NAMED = 40  # the most names or messages of one list on a terminal
ON_THE_PAGE = "Next: course report, whose class page has them all"


def course_near(option: Path | None, results: Path) -> Course | None:
    """Return the course of the option, of the working folder or of the results.

    If there is no course, print that no decisions are applied, and return None.

    Raises:
        CourseError: The course cannot be loaded.
    """
    if option is not None:
        return load_course(option)
    for start in (Path.cwd(), results):
        try:
            root = find_course(start)
        except CourseError:
            continue
        return load_course(root)
    print(
        "course: no course.yaml is near: due dates and overrides.yaml are not applied. Next: the "
        "same with --course FOLDER",
        file=sys.stderr,
    )
    return None


def roster_of(course: Course | None, option: Path | None) -> Path | None:
    """Return the file of the roster, from the option or from course.yaml.

    Return None if neither names one, or if the option is `none`.
    """
    if option is None and course is not None and course.file.roster:
        return course.root / course.file.roster
    return None if option == Path("none") else option


def class_list(course: Course | None, option: Path | None, names: Iterable[str]) -> ClassList:
    """Return the students on the roster, or an empty list if there is no roster.

    Args:
        course: The course, if there is one.
        option: The option for the roster's file.
        names: The students who handed in something.

    Raises:
        CourseFault: The roster cannot be read, or contains none of `names`.
    """
    path = roster_of(course, option)
    if path is None:
        return NOBODY
    roster = read_roster(path)
    members = ClassList(roster, course is not None and course.file.not_handed_in == "zero")
    students = sorted({*map(members.folder_name, names)})
    if students and not members.by_name.keys() & students:
        next_step = "give --roster the file that course collect had, or --roster none"
        raise CourseFault(f"{roster.knows_nobody(students)}. Next: {next_step}")
    return members


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


def of_absent(counted: Sequence[Result], decisions: Decisions, members: ClassList) -> list[Result]:
    """Return results of students on the roster who handed in nothing but have a decision.

    Args:
        counted: The results of the students who handed something in.
        decisions: The decisions.
        members: The roster.
    """
    by_assignment: dict[str, list[Result]] = {}
    for result in counted:
        by_assignment.setdefault(result.assignment, []).append(result)
    absent_results = list[Result]()
    for results in by_assignment.values():
        names = members.absent_students(entry.student for entry in results)
        absent_results += of_the_absent(results[-1], decisions, names)
    return absent_results


def class_of(
    results: Sequence[Result],
    course: Course | None,
    roster: Path | None,
    *,
    assignment: str | None = None,
    section: str | None = None,
    changed: Sequence[ChangedPoints] = (),
    is_decided: bool = False,
) -> ClassView:
    """Return the class of these results, with due dates and decisions applied.

    Args:
        results: The results.
        course: The course, if there is one.
        roster: The option for the roster's file.
        assignment: Only this assignment.
        section: Only this section.
        changed: The changes of points since the last run.
        is_decided: Whether the results already include the decisions of overrides.yaml.

    Raises:
        CourseFault: The roster or overrides.yaml cannot be read or names unknown students, or no
            result belongs to the assignment or the section.
    """
    members = class_list(course, roster, (result.student for result in results))
    results = _by_roster(results, members)
    if course is not None and not is_decided:
        decisions = Decisions.of_course(course)
        counted = [final(result, decisions) for result in results]
        names = {*members.by_name, *(result.student for result in results)}
        if problems := decisions.of_nobody(names, {result.assignment for result in results}):
            raise CourseFault(problems[0])
        absent = of_absent(counted, decisions, members)
        results = (
            sorted([*counted, *absent], key=lambda result: result.student) if absent else counted
        )
    if assignment is not None:
        results = _of_assignment(results, course, assignment)
    if section is not None:
        members = _of_section(members, section)
        results = [result for result in results if result.student in members.by_name]
        if not results:
            raise CourseFault(
                f"nobody of section {section} has a result. Next: course grade SUBMITTED"
            )
    included = {(result.student, result.assignment) for result in results}
    changed = [change for change in changed if (change.student, change.assignment) in included]
    return ClassView(results, members, labels_of(course), changed, date.today())


def _by_roster(results: Sequence[Result], members: ClassList) -> list[Result]:
    """Return the results with the roster's names of the students.

    A result from a pull request has the name of a GitHub account, which the roster may contain.
    Raises CourseFault if a student then has two results of one assignment.
    """
    folders = dict[tuple[str, str], str]()
    renamed = []
    for result in results:
        student = members.folder_name(result.student)
        folder = folders.setdefault((student, result.assignment), result.student)
        if folder != result.student:
            raise CourseFault(
                f"{folder} and {result.student} are one student by the roster. Next: take the "
                "results that do not count out of the folder"
            )
        renamed.append(result.model_copy(update={"student": student}))
    return renamed


def gradebooks() -> Any:
    """Return the module on nbgrader's database. Raises CourseFault if nbgrader is not installed."""
    try:
        from ..platforms import nbgrader_gradebook
    except ImportError:
        raise CourseFault(
            "--gradebook needs nbgrader. Next: pip install 'manyheads[nbgrader]'"
        ) from None
    return nbgrader_gradebook


def _of_assignment(
    results: Sequence[Result], course: Course | None, assignment: str
) -> list[Result]:
    if course is None:
        raise CourseFault("--assignment needs the course. Next: the same with --course FOLDER")
    chosen = assignment_of(course, assignment)
    matching = [result for result in results if result.assignment == chosen.id]
    if not matching:
        raise CourseFault(
            f"there is no result of {chosen.title}. "
            f"Next: course grade SUBMITTED --assignment {chosen.id}"
        )
    return matching


def _of_section(members: ClassList, section: str) -> ClassList:
    students = members.roster.students
    sections = sorted({student.section for student in students if student.section})
    if not sections:
        raise CourseFault(
            "--section needs a roster with sections. Next: the same with --roster FILE"
        )
    matching = tuple(
        student for student in students if student.section.casefold() == section.casefold()
    )
    if not matching:
        raise CourseFault(
            f"there is no section {section!a}; there are: {', '.join(sections)}. "
            f"Next: the same with --section {quote(sections[0])}"
        )
    return replace(members, roster=replace(members.roster, students=matching))


def tell(console: Console, view: ClassView, how: str) -> bool:
    """Print sentences about a class, and return whether everything is graded.

    The sentences are about decisions, unknown times, changes of points, absent students, and
    students missing from the roster. Then come the sentence `how` and the ungraded exercises.
    """
    decided = (
        (sentence, result.student)
        for result in view.results
        for sentence in sentences(result, view.labels)
    )
    name(console, "decided", _with_whose(decided), style="cyan")
    untimed = list[str]()
    for result in view.results:
        if any(adjustment.words == UNKNOWN_TIME for adjustment in result.adjustments):
            untimed.append(result.student)
    if untimed:
        console.say(
            "When these were handed in is not known, and none of them counts as late: "
            f"{list_names(sorted(untimed))}. Next: a score in overrides.yaml for whoever was late; "
            "of downloads from Moodle or Canvas, course collect DOWNLOAD --times LIST",
            style="yellow",
        )
    for assignment_part in view.assignments:
        if not assignment_part.changed:
            continue
        changes = [
            f"{change.student} {score_words(change.before)} → {score_words(change.after)}"
            for change in assignment_part.changed
        ]
        console.say(
            f"{assignment_part.title}: points changed since the last run: {list_names(changes)}",
            style="cyan",
        )
    if absent := view.members.absent_students(view.by_student):
        names = [view.members.row_of(student).name or student for student in absent]
        console.say(
            f"Handed in nothing: {len(absent)} of {len(view.members.by_name)} on the roster: "
            f"{list_names(names)}"
        )
    if strangers := view.members.strangers(view.by_student):
        console.say(
            f"Not on the roster, and in no mean: {list_names(strangers)}."
            " Next: complete the roster",
            style="yellow",
        )
    console.say(how)
    return name_not_graded(console, view)


def name_not_graded(console: Console, view: ClassView) -> bool:
    """Print the ungraded exercises of each student with the reason, and the next step.

    Return whether everything is graded.
    """
    ungraded = sorted(
        (pair for assignment_part in view.assignments for pair in assignment_part.not_graded),
        key=lambda pair: pair[0],
    )
    name(console, "not graded", _with_whose((why, student) for student, why in ungraded))
    next_step = "the same course grade again, which tries that alone"
    if any(
        exercise.not_readable and exercise.id in result.not_graded
        for result in view.results
        for exercise in result.exercises
    ):
        mend = (
            "put what cannot be read into the student's folder, opened, or decide in overrides.yaml"
        )
        next_step = f"{mend}; then the same course grade again"
    if ungraded:
        console.say(
            f"There are no points for that, and no total. Next: {next_step}", style="yellow"
        )
    return not ungraded


def name(
    console: Console,
    label: str,
    messages: Sequence[str],
    next_step: str = ON_THE_PAGE,
    style: str = "yellow",
    limit: int | None = MOST_NAMED,
) -> None:
    """Print messages with one label, at most `limit`, and the number of the remaining ones.

    Args:
        console: Prints the messages.
        label: The label of each message.
        messages: The messages.
        next_step: The advice that shows the remaining messages.
        style: The style of the messages.
        limit: The most messages, or None for all.
    """
    console.say(*(f"{label}: {message}" for message in messages[:limit]), style=style)
    if remaining := len(messages) - len(messages[:limit]):
        console.say(f"{label}: and {remaining} more. {next_step}", style=style)


def _with_whose(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return each sentence once, after the names of its students."""
    by_sentence: dict[str, list[str]] = {}
    for sentence, student in pairs:
        by_sentence.setdefault(sentence, []).append(student)
    return [f"{list_names(students)}: {sentence}" for sentence, students in by_sentence.items()]


def list_names(names: Sequence[str]) -> str:
    """Return the first MOST_NAMED names, joined by commas, and the number of the others."""
    suffix = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + suffix


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
    tell(
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
    view = class_of(
        graded,
        near,
        roster,
        assignment=assignment,
        section=section,
        is_decided=gradebook is not None,
    )
    if format in WITHOUT_EXPLANATIONS:
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
        _say("not graded", ungraded)
        blank = "" if format == "gradescope" else ": its cells are blank"
        next_step = "Next: course grade again, and do what it says, then this"
        print(f"There are no points for that{blank}. {next_step}", file=sys.stderr)
        raise Exit(1)


def _say(label: str, messages: Iterable[str]) -> None:
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
    """Write each student's feedback, to hand out: pages and Markdown, by what counts.

    `OUT/feedback/STUDENT/ASSIGNMENT/` is as nbgrader names it. For what `course collect` took from
    Moodle or Canvas there is a zip for each assignment, too, with the names that they gave: upload
    it as Moodle's feedback files, or as Canvas' submissions.

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
    name_not_graded(console, view)
    students = count_with_noun(len(view.by_student), "student", "students")
    console.say(f"{students}: {out / FOLDER}/", *(f"{out / name}" for name in archives.contents))


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
