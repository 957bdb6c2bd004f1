"""The diagnosis table of each exercise, loaded or built when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..checks.cast import rounded
from ..checks.implementation import LocalRunner
from ..checks.local import LocalRecordingRunner
from ..checks.recording import Exchange
from ..checks.trusted import namespace_of
from ..course import Exercise
from ..diagnosis.bank import Bank, load_bank
from ..diagnosis.kill_matrix import checks_failed_by
from ..diagnosis.table import Table
from ..diagnosis.table_file import PUBLIC, is_current, load_table, new_table, save_table, table_key
from ..errors import CourseFault
from .check_run import CheckRun
from .run_checks import HiddenChecks


class Tables:
    """The tables of a course's exercises, each loaded or built once."""

    def __init__(self, checks: HiddenChecks) -> None:
        self._checks = checks
        self._tables: dict[str, Table] = {}
        self._failed: dict[str, Mapping[str, list[frozenset[str]]]] = {}

    def of(self, exercise: Exercise) -> Table:
        """The exercise's table. If it is missing or stale, building it takes up to a minute or two."""
        if exercise.id not in self._tables:
            reference, fixed, key = self._made_from(exercise)
            self._tables[exercise.id] = load_table(exercise.table, key, _bank_of(exercise), reference, fixed)
        return self._tables[exercise.id]

    def checks_failed_by(self, exercise: Exercise) -> Mapping[str, list[frozenset[str]]]:
        """For each misconception the checks that each of its mutants fails; empty if the record is missing or stale."""
        if exercise.id not in self._failed:
            self._failed[exercise.id] = checks_failed_by(exercise)
        return self._failed[exercise.id]

    def renewed(self, exercise: Exercise, *, anew: bool = False) -> bytes | None:
        """What the table's file should hold; None if it is current. anew: do not believe its key."""
        reference, fixed, key = self._made_from(exercise)
        if not anew and is_current(exercise.table, key):
            return None
        return save_table(new_table(_bank_of(exercise), reference, fixed), key)

    def is_current(self, exercise: Exercise) -> bool:
        """Whether the table's file exists and was made from the current files."""
        _, _, key = self._made_from(exercise)
        return is_current(exercise.table, key)

    def _made_from(self, exercise: Exercise) -> tuple[LocalRunner, list[Exchange], str]:
        """The reference, all its exchanges with the checks on public inputs, and the key of a table made from them.

        The calls are those that are recorded for students, number by number, so that its pairs are known there, too.
        """
        reference = LocalRunner(namespace_of(exercise.solution))
        subject = LocalRecordingRunner(reference.namespace)
        self._checks.run(exercise.checks, CheckRun(subject, reference, PUBLIC, (exercise.id,), forms=exercise.forms))
        transcript = [replace(exchange, call=rounded(exchange.call)) for exchange in subject.transcript]
        return reference, transcript, table_key(exercise, transcript)


def _bank_of(exercise: Exercise) -> Bank:
    """The exercise's bank. Raises CourseFault where it has no mutant: a table compares with at least one."""
    bank = load_bank(exercise)
    if not bank.mutants:
        raise CourseFault(
            f"{exercise.misconceptions} lists no mutant, so no mistake can be named. "
            f"Next: write one in MUTANTS, then course release {exercise.id}"
        )
    return bank
