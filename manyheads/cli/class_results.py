"""A class from its results, as they count by dates, decisions and roster, and what every command
says of it at its end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from shlex import quote
from typing import Any

from ..course import Course, CourseError, find_course, load_course
from ..course.decisions import UNKNOWN_TIME, Decisions, final, of_the_absent
from ..errors import CourseFault
from ..judge.record_results import ChangedPoints
from ..report.class_view import NOBODY, ClassList, ClassView, sentences
from ..report.labels import labels_of
from ..report.words import score_words
from ..result import Result, students_in
from ..submission.roster import read_roster
from .options import RESULTS, Console, assignment_of

MOST_NAMED = 40  # the most of a kind that are named on a terminal
ON_THE_PAGE = "Next: course report, whose class page has them all"


def course_near(option: Path | None, results: Path) -> Course | None:
    """Return the course that the option names, or that of the working folder, or of the results.
    Raises CourseError.

    None where there is no course; then it is said that nothing is decided.
    """
    if option is not None:
        return load_course(option)
    for start in (Path.cwd(), results):
        try:
            root = find_course(start)
        except CourseError:
            continue
        return load_course(root)
    message = (
        "no course.yaml is near: due dates and overrides.yaml are not applied. Next: the same "
        "with --course FOLDER"
    )
    print(f"course: {message}", file=sys.stderr)
    return None


def roster_of(course: Course | None, option: Path | None) -> Path | None:
    """Return the roster's file: the option's, or course.yaml's; None where there is none, or the
    option is `none`.
    """
    if option is None and course is not None and course.file.roster:
        return course.root / course.file.roster
    return None if option == Path("none") else option


def class_list(course: Course | None, option: Path | None, names: Iterable[str]) -> ClassList:
    """Return the roster in this file; without one, nobody. Raises CourseFault where it knows nobody
    of these present.
    """
    path = roster_of(course, option)
    if path is None:
        return NOBODY
    roster = read_roster(path)
    members = ClassList(roster, course is not None and course.file.not_handed_in == "zero")
    students = sorted({*map(members.named, names)})
    if students and not members.by_name.keys() & students:
        next_step = "give --roster the file that course collect had, or --roster none"
        raise CourseFault(f"{roster.knows_nobody(students)}. Next: {next_step}")
    return members


def known_students(course: Course) -> set[str]:
    """Return who is on the roster of course.yaml, has a result, or has handed in something. Raises
    CourseFault.
    """
    path, submitted = roster_of(course, None), course.root / "submitted"
    on_roster = (
        {student.id for student in read_roster(path).students} if path is not None else set()
    )
    handed_in = (
        {folder.name for folder in submitted.iterdir() if folder.is_dir()}
        if submitted.is_dir()
        else set()
    )
    return on_roster | handed_in | {*students_in(course.root / RESULTS)}


def of_absent(counted: Sequence[Result], decisions: Decisions, members: ClassList) -> list[Result]:
    """Return results of those on the roster who handed in nothing, and about whom something is
    decided.
    """
    by_assignment: dict[str, list[Result]] = {}
    for result in counted:
        by_assignment.setdefault(result.assignment, []).append(result)
    absent = (
        (results[-1], members.absent(entry.student for entry in results))
        for results in by_assignment.values()
    )
    return [
        result for template, names in absent for result in of_the_absent(template, decisions, names)
    ]


def class_of(
    results: Sequence[Result],
    course: Course | None,
    roster: Path | None,
    assignment: str | None = None,
    section: str | None = None,
    changed: Sequence[ChangedPoints] = (),
    *,
    is_decided: bool = False,
) -> ClassView:
    """Return the class of these results as they count. Raises CourseFault.

    assignment, section: only these. is_decided: whether what is decided is in the results already.
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
    """Return the results by the roster's students: those that came by pull request are of a GitHub
    account, which it knows.
    """
    folders, named = (
        dict[tuple[str, str], str](),
        [members.named(result.student) for result in results],
    )
    for student, result in zip(named, results, strict=True):
        if (
            folder := folders.setdefault((student, result.assignment), result.student)
        ) != result.student:
            problem = f"{folder} and {result.student} are one student by the roster"
            raise CourseFault(
                f"{problem}. Next: take the results that do not count out of the folder"
            )
    return [
        result.model_copy(update={"student": student})
        for student, result in zip(named, results, strict=True)
    ]


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
    if not (matching := [result for result in results if result.assignment == chosen.id]):
        next_step = f"Next: course grade SUBMITTED --assignment {chosen.id}"
        raise CourseFault(f"there is no result of {chosen.title}. {next_step}")
    return matching


def _of_section(members: ClassList, section: str) -> ClassList:
    students = members.roster.students
    sections = sorted({student.section for student in students} - {""})
    if not sections:
        raise CourseFault(
            "--section needs a roster with sections. Next: the same with --roster FILE"
        )
    matching = tuple(
        student for student in students if student.section.casefold() == section.casefold()
    )
    if not matching:
        problem = f"there is no section {section!a}; there are: {', '.join(sections)}"
        raise CourseFault(f"{problem}. Next: the same with --section {quote(sections[0])}")
    return replace(members, roster=replace(members.roster, students=matching))


def tell(console: Console, view: ClassView, how: str) -> bool:
    """Say who got what by which rule, whose points changed, who is absent, how it was graded, and
    what is not.

    Returns whether all is graded.
    """
    decided = (
        (sentence, result.student)
        for result in view.results
        for sentence in sentences(result, view.labels)
    )
    name(console, "decided", _with_whose(decided), style="cyan")
    untimed = sorted(
        r.student
        for r in view.results
        if any(adjustment.words == UNKNOWN_TIME for adjustment in r.adjustments)
    )
    if untimed:
        unknown = (
            "When these were handed in is not known, and none of them counts as late: "
            f"{some(untimed)}"
        )
        console.say(
            f"{unknown}. Next: a score in overrides.yaml for whoever was late; of downloads from "
            "Moodle or Canvas, course collect DOWNLOAD --times LIST",
            style="yellow",
        )
    for assignment_part in (
        assignment_part for assignment_part in view.assignments if assignment_part.changed
    ):
        changes = [
            f"{change.student} {score_words(change.before)} → {score_words(change.after)}"
            for change in assignment_part.changed
        ]
        console.say(
            f"{assignment_part.title}: points changed since the last run: {some(changes)}",
            style="cyan",
        )
    if absent := view.members.absent(view.by_student):
        console.say(
            f"Handed in nothing: {len(absent)} of {len(view.members.by_name)} on the roster: "
            f"{some(absent)}"
        )
    if strangers := view.members.strangers(view.by_student):
        console.say(
            f"Not on the roster, and in no mean: {some(strangers)}. Next: complete the roster",
            style="yellow",
        )
    console.say(how)
    return name_not_graded(console, view)


def name_not_graded(console: Console, view: ClassView) -> bool:
    """Name who is not graded in which exercise, with the reason. Returns whether there is
    nobody.
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
    most: int | None = MOST_NAMED,
) -> None:
    """Name what is of one kind, as far as a terminal has room for it. next_step: what shows the
    rest.
    """
    console.say(*(f"{label}: {message}" for message in messages[:most]), style=style)
    if remaining := len(messages) - len(messages[:most]):
        console.say(f"{label}: and {remaining} more. {next_step}", style=style)


def _with_whose(pairs: Iterable[tuple[str, str]]) -> list[str]:
    by_sentence: dict[str, list[str]] = {}
    for sentence, student in pairs:
        by_sentence.setdefault(sentence, []).append(student)
    return [f"{some(students)}: {sentence}" for sentence, students in by_sentence.items()]


def some(names: Sequence[str]) -> str:
    """Return the first of these names, and how many there are more."""
    suffix = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + suffix
