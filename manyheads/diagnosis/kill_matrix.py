"""The kill matrix: which checks each mutant fails. It is a part of the recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..course import Exercise
from .recording_file import current


@dataclass(frozen=True)
class KillMatrix:
    """mutants: for each mutant, in the bank's order, a 1 for each check that it fails."""

    checks: tuple[str, ...]
    mutants: tuple[str, ...]

    def of(self, mutant: int) -> tuple[str, ...]:
        """Return the checks that the mutant at this index in the bank fails."""
        return tuple(check for check, failed in zip(self.checks, self.mutants[mutant], strict=True) if failed == "1")


def read_kill_matrix(exercise: Exercise) -> KillMatrix | None:
    """Read the kill matrix of an exercise; None if its recording is missing or stale."""
    recording = current(exercise)
    return None if recording is None else KillMatrix(recording.content.hidden, recording.content.kills)


def checks_failed_by(exercise: Exercise) -> Mapping[str, list[frozenset[str]]]:
    """For each misconception the checks that each of its mutants fails; empty if the record is missing or stale."""
    failed: dict[str, list[frozenset[str]]] = {}
    if (recording := current(exercise)) is not None:
        matrix = KillMatrix(recording.content.hidden, recording.content.kills)
        for place, mutant in enumerate(recording.content.mutants):
            failed.setdefault(mutant.id, []).append(frozenset(matrix.of(place)))
    return failed
