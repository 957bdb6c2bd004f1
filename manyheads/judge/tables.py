"""The diagnosis table of each exercise, read from its recording when it is needed."""

from __future__ import annotations

from collections.abc import Mapping

from ..course import Exercise
from ..diagnosis.bank import load_bank
from ..diagnosis.kill_matrix import checks_failed_by
from ..diagnosis.recording_file import current
from ..diagnosis.table import Table, table_of, table_without_recording


class Tables:
    """The tables of a course's exercises, each read once."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}
        self._failed: dict[str, Mapping[str, list[frozenset[str]]]] = {}

    def of(self, exercise: Exercise) -> Table:
        """Return the exercise's table. Where its recording is missing or stale, every mutant is replayed instead."""
        if exercise.id not in self._tables:
            recording = current(exercise)
            self._tables[exercise.id] = (
                table_of(recording) if recording else table_without_recording(load_bank(exercise))
            )
        return self._tables[exercise.id]

    def checks_failed_by(self, exercise: Exercise) -> Mapping[str, list[frozenset[str]]]:
        """Return for each misconception the checks that each of its mutants fails; nothing if that is not current."""
        if exercise.id not in self._failed:
            self._failed[exercise.id] = checks_failed_by(exercise)
        return self._failed[exercise.id]
