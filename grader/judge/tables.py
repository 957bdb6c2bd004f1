"""The diagnosis table of every exercise, when somebody asks for it."""

from __future__ import annotations

from ..course import Assignment, Course, Exercise
from .candidate import LocalPerformer
from .diagnosis.bank import load_bank
from .diagnosis.table import Table
from .diagnosis.table_file import FIXED, is_current, load_table, save_table, table_key, table_path
from .local import LocalSubject
from .references import namespace_of
from .session import CheckSession
from .subject import Exchange
from .turn import Turn


class Tables:
    """Tables by exercise, each loaded or built once."""

    def __init__(self, course: Course, session: CheckSession) -> None:
        self._course, self._session = course, session
        self._tables: dict[str, Table] = {}

    def of(self, assignment: Assignment, exercise: Exercise) -> Table:
        """The table. Building one that is missing or stale takes up to a minute or two."""
        if exercise.id not in self._tables:
            reference = self._reference(assignment, exercise)
            fixed = self._fixed(exercise, reference)
            key = table_key(self._course, assignment, exercise, fixed)
            bank = load_bank(self._course, exercise)
            self._tables[exercise.id] = load_table(table_path(self._course, exercise), key, bank, reference, fixed)
        return self._tables[exercise.id]

    def write(self, assignment: Assignment, exercise: Exercise) -> None:
        """Write the table's file, unless it is current."""
        if self.is_current(assignment, exercise):
            return
        path = table_path(self._course, exercise)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(save_table(self.of(assignment, exercise), self._key(assignment, exercise)))

    def is_current(self, assignment: Assignment, exercise: Exercise) -> bool:
        """Whether the table's file is there and made from today's files."""
        return is_current(table_path(self._course, exercise), self._key(assignment, exercise))

    def _key(self, assignment: Assignment, exercise: Exercise) -> str:
        fixed = self._fixed(exercise, self._reference(assignment, exercise))
        return table_key(self._course, assignment, exercise, fixed)

    def _reference(self, assignment: Assignment, exercise: Exercise) -> LocalPerformer:
        return LocalPerformer(namespace_of(self._course.solution(assignment, exercise)))

    def _fixed(self, exercise: Exercise, reference: LocalPerformer) -> list[Exchange]:
        """All exchanges of the reference with the checks, on fixed inputs."""
        subject = LocalSubject(reference.namespace)
        self._session.run(Turn(self._course.checks(exercise), subject, reference, FIXED, (exercise.id,)))
        return subject.transcript
