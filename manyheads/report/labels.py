"""Name things as people and systems read them: titles of assignments and exercises, file names for
students.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..course import Course, Exercise
from ..result import Result
from ..submission import is_reserved
from ..submission.roster import folded


@dataclass(frozen=True)
class Labels:
    """The course's titles, by ids and in the course's order.

    What it does not know is called by its id.

    exercises: the number, as in the name of its file, and the title. course: the title of the
        whole.
    """

    assignments: Mapping[str, str] = field(default_factory=dict)
    exercises: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    course: str = ""

    def assignment(self, id_: str) -> str:
        """Multi-head attention."""
        return self.assignments.get(id_, id_)

    def numbered(self, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return the number and the title of these exercises, in the course's order; of an unknown
        one its place and its id.
        """
        return {
            id_: self.exercises.get(id_, (str(i), id_))
            for i, id_ in enumerate(self.in_order(ids), 1)
        }

    def exercise(self, id_: str) -> str:
        """04 The reshape dance."""
        return " ".join(self.exercises[id_]) if id_ in self.exercises else id_

    def in_order(self, ids: Sequence[str]) -> list[str]:
        """Ids of assignments or of exercises, each once, in the course's order; then those that it
        does not know.
        """
        order = {id_: index for index, id_ in enumerate((*self.assignments, *self.exercises))}
        return sorted(dict.fromkeys(ids), key=lambda id_: order.get(id_, len(order)))

    def by_assignment(self, results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
        """Return those of each assignment, in the course's order of assignments, and as they come
        within one.
        """
        ids = self.in_order([result.assignment for result in results])
        return [(id_, [result for result in results if result.assignment == id_]) for id_ in ids]


IDS = Labels()


def labels_of(course: Course | None) -> Labels:
    """Return the course's titles; without a course the ids."""
    if course is None:
        return IDS
    exercises = {exercise.id: (_number(exercise), exercise.title) for exercise in course.exercises}
    return Labels(
        {assignment.id: assignment.title for assignment in course.assignments},
        exercises,
        course.title,
    )


def label_of(exercise: Exercise) -> str:
    """04 The reshape dance."""
    return f"{_number(exercise)} {exercise.title}"


def _number(exercise: Exercise) -> str:
    return exercise.stem.partition("_")[0]


_PLAIN = re.compile(r"\w[\w @+.-]{0,50}")
# what ends the name of one who cannot have the own one
_DIGEST = re.compile(r"-[0-9a-f]{12}", re.IGNORECASE)


def file_stems(students: Collection[str]) -> Callable[[str], str]:
    """Make the name of a file, without its ending, for each of these students.

    It is the student's name, if every system accepts that, and if no other differs from it in
    case alone: their files would overwrite one another where case does not count.
    """
    alike = Counter(folded(student) for student in students)

    def stem(student: str) -> str:
        is_unsafe = (
            is_reserved(student) or student.endswith((" ", ".")) or _DIGEST.fullmatch(student[-13:])
        )
        if _PLAIN.fullmatch(student) and not is_unsafe and alike[folded(student)] < 2:
            return student
        digest = hashlib.sha256(student.encode()).hexdigest()[:12]
        return f"{re.sub(r'[^a-zA-Z0-9]+', '_', student)[:40]}-{digest}"

    return stem
