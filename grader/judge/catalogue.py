"""The hidden checks of a course, run on trusted code: the reference and the mutants, in the judge's own process."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ..course import Assignment, Course, Exercise
from .candidate import LocalPerformer, Performer
from .local import LocalSubject
from .plugin import CheckOutcome
from .references import namespace_of
from .session import CheckSession
from .tables import Tables
from .turn import Turn


class Catalogue:
    """Use as a context manager."""

    def __init__(self, course: Course) -> None:
        """Collect every check. Raises GraderFault."""
        self._course = course
        self._session = CheckSession([course.checks(e) for a in course.assignments for e in a.exercises])
        self.tables = Tables(course, self._session)

    def checks(self, exercise: Exercise) -> list[CheckOutcome]:
        """The checks of an exercise, as nobody has attempted them."""
        return self._session.checks.get(self._course.checks(exercise), [])

    def reference(self, assignment: Assignment, exercise: Exercise) -> LocalPerformer:
        """The reference solution. Raises BrokenReference."""
        return LocalPerformer(namespace_of(self._course.solution(assignment, exercise)))

    def run(
        self, exercise: Exercise, subject: LocalSubject, reference: Performer, secret: bytes, *seed_parts: str
    ) -> list[CheckOutcome]:
        """The outcomes of all checks of the exercise for trusted code."""
        return self._session.run(Turn(self._course.checks(exercise), subject, reference, secret, seed_parts))

    def __enter__(self) -> Self:
        self._session.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._session.__exit__(kind, error, tb)
