"""The class that commands report on: its roster, and the pseudonyms that its results may be under."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..course import Course
from ..errors import CourseFault
from ..report.class_list import NOBODY, ClassList
from ..result import Result
from ..submission.pseudonyms import Pseudonyms, read_pseudonyms
from ..submission.roster import read_roster


def class_list(course: Course, path: Path | None, pseudonyms: Pseudonyms | None = None) -> ClassList:
    """The roster in this file; without one, nobody. pseudonyms: what the students are called. Raises CourseFault."""
    if path is None:
        return NOBODY
    roster = read_roster(path)
    names = {} if pseudonyms is None else {each.id: pseudonyms.of(each.id) for each in roster.students}
    return ClassList(roster, course.file.not_handed_in == "zero", names)


def pseudonyms_in(course: Course, results: Iterable[Result]) -> Pseudonyms | None:
    """The course's pseudonyms, if one of them is in these results."""
    known = read_pseudonyms(course.root)
    return known if any(result.student in known.students for result in results) else None


def resolved(course: Course, results: Iterable[Result]) -> list[Result]:
    """The results under the students' own names. Raises CourseFault where a name is no pseudonym."""
    students, found = read_pseudonyms(course.root).students, []
    for result in results:
        if result.student not in students:
            raise CourseFault(
                f"{result.student!a} is no pseudonym of this course. Next: course export without --resolve"
            )
        found.append(result.model_copy(update={"student": students[result.student]}))
    return sorted(found, key=lambda each: each.student)
