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
    said = (
        "no course.yaml is near: due dates and overrides.yaml are not applied. Next: the same "
        "with --course FOLDER"
    )
    print(f"course: {said}", file=sys.stderr)
    return None


def roster_of(course: Course | None, option: Path | None) -> Path | None:
    """Return the roster's file: the option's, or course.yaml's; None where there is none, or the
    option is `none`.
    """
    if option is None and course is not None and course.file.roster:
        return course.root / course.file.roster
    return None if option == Path("none") else option


def class_list(course: Course | None, option: Path | None, present: Iterable[str]) -> ClassList:
    """Return the roster in this file; without one, nobody. Raises CourseFault where it knows nobody
    of these present.
    """
    path = roster_of(course, option)
    if path is None:
        return NOBODY
    roster = read_roster(path)
    members = ClassList(roster, course is not None and course.file.not_handed_in == "zero")
    students = sorted({*map(members.named, present)})
    if students and not members.by_name.keys() & students:
        following = "give --roster the file that course collect had, or --roster none"
        raise CourseFault(f"{roster.knows_nobody(students)}. Next: {following}")
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
    own: dict[str, list[Result]] = {}
    for result in counted:
        own.setdefault(result.assignment, []).append(result)
    absent = (
        (results[-1], members.absent(each.student for each in results)) for results in own.values()
    )
    return [result for like, names in absent for result in of_the_absent(like, decisions, names)]


def class_of(
    found: Sequence[Result],
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
    members = class_list(course, roster, (each.student for each in found))
    found = _by_roster(found, members)
    if course is not None and not is_decided:
        decisions = Decisions.of_course(course)
        counted = [final(result, decisions) for result in found]
        names = {*members.by_name, *(result.student for result in found)}
        if wrong := decisions.of_nobody(names, {result.assignment for result in found}):
            raise CourseFault(wrong[0])
        absent = of_absent(counted, decisions, members)
        found = sorted([*counted, *absent], key=lambda each: each.student) if absent else counted
    if assignment is not None:
        found = _of_assignment(found, course, assignment)
    if section is not None:
        members = _of_section(members, section)
        found = [result for result in found if result.student in members.by_name]
        if not found:
            raise CourseFault(
                f"nobody of section {section} has a result. Next: course grade SUBMITTED"
            )
    kept = {(result.student, result.assignment) for result in found}
    changed = [each for each in changed if (each.student, each.assignment) in kept]
    return ClassView(found, members, labels_of(course), changed, date.today())


def _by_roster(found: Sequence[Result], members: ClassList) -> list[Result]:
    """Return the results by the roster's students: those that came by pull request are of a GitHub
    account, which it knows.
    """
    folders, named = dict[tuple[str, str], str](), [members.named(each.student) for each in found]
    for student, each in zip(named, found, strict=True):
        if (folder := folders.setdefault((student, each.assignment), each.student)) != each.student:
            said = f"{folder} and {each.student} are one student by the roster"
            raise CourseFault(f"{said}. Next: take the results that do not count out of the folder")
    return [
        each.model_copy(update={"student": student})
        for student, each in zip(named, found, strict=True)
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


def _of_assignment(found: Sequence[Result], course: Course | None, assignment: str) -> list[Result]:
    if course is None:
        raise CourseFault("--assignment needs the course. Next: the same with --course FOLDER")
    wanted = assignment_of(course, assignment)
    if not (own := [result for result in found if result.assignment == wanted.id]):
        following = f"Next: course grade SUBMITTED --assignment {wanted.id}"
        raise CourseFault(f"there is no result of {wanted.title}. {following}")
    return own


def _of_section(members: ClassList, section: str) -> ClassList:
    students = members.roster.students
    known = sorted({student.section for student in students} - {""})
    if not known:
        raise CourseFault(
            "--section needs a roster with sections. Next: the same with --roster FILE"
        )
    own = tuple(student for student in students if student.section.casefold() == section.casefold())
    if not own:
        there = f"there is no section {section!a}; there are: {', '.join(known)}"
        raise CourseFault(f"{there}. Next: the same with --section {quote(known[0])}")
    return replace(members, roster=replace(members.roster, students=own))


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
        r.student for r in view.results if any(each.words == UNKNOWN_TIME for each in r.adjustments)
    )
    if untimed:
        unknown = (
            "When these were handed in is not known, and none of them counts as late: "
            f"{some(untimed)}"
        )
        console.say(
            f"{unknown}. Next: a score in overrides.yaml for whoever was late", style="yellow"
        )
    for part in (part for part in view.parts if part.changed):
        said = [
            f"{each.student} {score_words(each.before)} → {score_words(each.after)}"
            for each in part.changed
        ]
        console.say(f"{part.title}: points changed since the last run: {some(said)}", style="cyan")
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
    found = sorted(
        (each for part in view.parts for each in part.not_graded), key=lambda each: each[0]
    )
    name(console, "not graded", _with_whose((why, student) for student, why in found))
    following = "the same course grade again, which tries that alone"
    if any(
        each.not_readable and each.id in of.not_graded
        for of in view.results
        for each in of.exercises
    ):
        mend = (
            "put what cannot be read into the student's folder, opened, or decide in overrides.yaml"
        )
        following = f"{mend}; then the same course grade again"
    if found:
        console.say(
            f"There are no points for that, and no total. Next: {following}", style="yellow"
        )
    return not found


def name(
    console: Console,
    kind: str,
    said: Sequence[str],
    following: str = ON_THE_PAGE,
    style: str = "yellow",
    most: int | None = MOST_NAMED,
) -> None:
    """Name what is of one kind, as far as a terminal has room for it. following: what shows the
    rest.
    """
    console.say(*(f"{kind}: {each}" for each in said[:most]), style=style)
    if left := len(said) - len(said[:most]):
        console.say(f"{kind}: and {left} more. {following}", style=style)


def _with_whose(said: Iterable[tuple[str, str]]) -> list[str]:
    whose: dict[str, list[str]] = {}
    for sentence, student in said:
        whose.setdefault(sentence, []).append(student)
    return [f"{some(students)}: {sentence}" for sentence, students in whose.items()]


def some(names: Sequence[str]) -> str:
    """Return the first of these names, and how many there are more."""
    more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
