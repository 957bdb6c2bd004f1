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


def class_list(
    course: Course, path: Path | None, present: Iterable[str], pseudonyms: Pseudonyms | None = None
) -> ClassList:
    """Return the roster in this file; without one, nobody.

    Args:
        course: says whether nothing handed in counts as 0.
        path: the roster's, in place of course.yaml's.
        present: who handed in, of whom somebody has to be on the roster.
        pseudonyms: what the students are called.

    Raises:
        CourseFault: the roster cannot be read, or knows nobody.
    """
    path = path or course.beside(course.file.roster)
    if path is None:
        return NOBODY
    roster = read_roster(path)
    names = {} if pseudonyms is None else {each.id: pseudonyms.of(each.id) for each in roster.students}
    members = ClassList(roster, course.file.not_handed_in == "zero", names)
    students = sorted({*present})
    if students and members.absent(students) == members.absent([]):
        raise CourseFault(f"{roster.knows_nobody(students)}. Next: give --roster the file that course collect had")
    return members


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
