"""Make the class that a command shows or exports: results, due dates, decisions and roster.

`class_of` returns it. The other functions find the course and the roster, and results of students
who handed in nothing. `course grade` counts its class with these functions, too.
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
from ..course.final_scores import Decisions, final, of_the_absent
from ..files import CourseFault
from ..judge.results_folder import ChangedPoints
from ..report.class_summary import NOBODY, ClassList, ClassView
from ..report.report_content import labels_of
from ..result import Result
from ..submission.roster_and_times import Student, read_roster
from .options import assignment_of


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


def students_on_roster(course: Course | None, option: Path | None) -> tuple[Student, ...]:
    """Return the students on the roster that `roster_of` finds, or () if there is none.

    Raises CourseFault if it cannot be read.
    """
    path = roster_of(course, option)
    return () if path is None else read_roster(path).students


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
        decisions = Decisions.of_course(course, members.roster.students)
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


def gradebooks() -> Any:
    """Return the module on nbgrader's database. Raises CourseFault if nbgrader is not installed."""
    try:
        from ..platforms import nbgrader_gradebook
    except ImportError:
        raise CourseFault(
            "--gradebook needs nbgrader. Next: pip install 'manyheads[nbgrader]'"
        ) from None
    return nbgrader_gradebook
