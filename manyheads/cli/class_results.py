"""Read a class's results as they count, by dates, decisions and roster, for every command that shows or exports them."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..course import Course, CourseError, find_course, load_course
from ..course.decisions import Decisions, final, of_the_absent
from ..errors import CourseFault
from ..report.class_rows import NOBODY, ClassList
from ..result import Result
from ..submission.roster import read_roster


def course_near(option: Path | None, results: Path) -> Course | None:
    """Return the course that the option names, or that of the working folder, or of the results. Raises CourseError.

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
    said = "no course.yaml is near: due dates and overrides.yaml are not applied. Next: the same with --course FOLDER"
    print(f"course: {said}", file=sys.stderr)
    return None


class Counting:
    """Makes of results, as they come, what counts, and keeps no more of them than it needs at the end."""

    def __init__(self, course: Course, members: ClassList = NOBODY) -> None:
        """Read what is decided. Raises CourseFault."""
        self._decisions = Decisions.of_course(course)
        self._members = members
        self._like: dict[str, Result] = {}  # by assignment
        self._students: dict[str, set[str]] = defaultdict(set)  # by assignment

    def count(self, result: Result) -> Result:
        """Return the result as it counts, which is one of the class."""
        self._like[result.assignment] = result
        self._students[result.assignment].add(result.student)
        return final(result, self._decisions)

    def of_the_absent(self) -> list[Result]:
        """Results of those on the roster who handed in nothing, and about whom something is decided."""
        return [
            each
            for assignment, like in self._like.items()
            for each in of_the_absent(like, self._decisions, self._members.absent([*self._students[assignment]]))
        ]

    def problems(self, more: Iterable[str] = ()) -> list[str]:
        """Return a sentence for each row of overrides.yaml that fits no student. more: who else is known."""
        names = {*more, *self._members.absent([]), *(name for student in self._students.values() for name in student)}
        return self._decisions.of_nobody(names, self._like)


def decided(course: Course | None, results: Sequence[Result], members: ClassList = NOBODY) -> list[Result]:
    """Return the results as they count, of the roster's students, and those of the absent about whom something is decided.

    Results that came by pull request are of a GitHub account, which the roster's column `github` knows. Raises
    CourseFault for a row of overrides.yaml about a student that there is not, and where two folders are of one student.
    """
    folders, named = dict[tuple[str, str], str](), [members.named(each.student) for each in results]
    for name, each in zip(named, results, strict=True):
        if (folder := folders.setdefault((name, each.assignment), each.student)) != each.student:
            said = f"{folder} and {each.student} are one student by the roster"
            raise CourseFault(f"{said}. Next: take the results that do not count out of the folder")
    results = [each.model_copy(update={"student": name}) for name, each in zip(named, results, strict=True)]
    if course is None:
        return results
    counting = Counting(course, members)
    counted = [counting.count(result) for result in results]
    if problems := counting.problems():
        raise CourseFault(problems[0])
    absent = counting.of_the_absent()
    return sorted([*counted, *absent], key=lambda each: each.student) if absent else counted


def roster_of(course: Course | None, option: Path | None) -> Path | None:
    """Return the roster's file: the option's, or course.yaml's; None where there is none, or the option is `none`."""
    if option is None and course is not None and course.file.roster:
        return course.root / course.file.roster
    return None if option == Path("none") else option


def class_list(course: Course | None, option: Path | None, present: Iterable[str]) -> ClassList:
    """Return the roster in this file; without one, nobody. Raises CourseFault where it knows nobody of these present."""
    path = roster_of(course, option)
    if path is None:
        return NOBODY
    roster = read_roster(path)
    members = ClassList(roster, course is not None and course.file.not_handed_in == "zero")
    students = sorted({*map(members.named, present)})
    if students and members.absent(students) == members.absent([]):
        said = "Next: give --roster the file that course collect had, or --roster none"
        raise CourseFault(f"{roster.knows_nobody(students)}. {said}")
    return members


def gradebooks() -> Any:
    """Return the module on nbgrader's database. Raises CourseFault if nbgrader is not installed."""
    try:
        from ..platforms import nbgrader_gradebook
    except ImportError:
        raise CourseFault("--gradebook needs nbgrader. Next: pip install 'manyheads[nbgrader]'") from None
    return nbgrader_gradebook
