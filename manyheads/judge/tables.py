"""The diagnosis table of each exercise, loaded or built when it is needed."""

from __future__ import annotations

from ..checks.implementation import LocalRunner
from ..checks.local import LocalRecordingRunner
from ..checks.recording import Exchange
from ..checks.trusted import namespace_of
from ..course import Exercise
from ..diagnosis.bank import load_bank
from ..diagnosis.table import Table
from ..diagnosis.table_file import FIXED, is_current, load_table, new_table, save_table, table_key
from .check_run import CheckRun
from .run_checks import HiddenChecks


class Tables:
    """The tables of a course's exercises, each loaded or built once."""

    def __init__(self, checks: HiddenChecks) -> None:
        self._checks = checks
        self._tables: dict[str, Table] = {}

    def of(self, exercise: Exercise) -> Table:
        """The exercise's table. If it is missing or stale, building it takes up to a minute or two."""
        if exercise.id not in self._tables:
            reference = self._reference(exercise)
            fixed = self._fixed(exercise, reference)
            key = table_key(exercise, fixed)
            bank = load_bank(exercise)
            self._tables[exercise.id] = load_table(exercise.table, key, bank, reference, fixed)
        return self._tables[exercise.id]

    def renewed(self, exercise: Exercise, *, anew: bool = False) -> bytes | None:
        """What the table's file should hold; None if it is current. anew: do not believe its key."""
        reference = self._reference(exercise)
        fixed = self._fixed(exercise, reference)
        key = table_key(exercise, fixed)
        if not anew and is_current(exercise.table, key):
            return None
        return save_table(new_table(load_bank(exercise), reference, fixed), key)

    def is_current(self, exercise: Exercise) -> bool:
        """Whether the table's file exists and was made from the current files."""
        return is_current(exercise.table, self._key(exercise))

    def _key(self, exercise: Exercise) -> str:
        fixed = self._fixed(exercise, self._reference(exercise))
        return table_key(exercise, fixed)

    def _reference(self, exercise: Exercise) -> LocalRunner:
        return LocalRunner(namespace_of(exercise.solution))

    def _fixed(self, exercise: Exercise, reference: LocalRunner) -> list[Exchange]:
        """All exchanges of the reference with the checks, on fixed inputs."""
        subject = LocalRecordingRunner(reference.namespace)
        self._checks.run(exercise.checks, CheckRun(subject, reference, FIXED, (exercise.id,)))
        return subject.transcript
