"""The kill matrix: which checks each mutant fails. It is a part of the recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..course import Exercise
from .recording_file import UNREADABLE, key_of, loaded


@dataclass(frozen=True)
class KillMatrix:
    """mutants: for each mutant, in the bank's order, a 1 for each check that it fails."""

    checks: tuple[str, ...]
    mutants: tuple[str, ...]

    def of(self, mutant: int) -> tuple[str, ...]:
        """The checks that the mutant at this index in the bank fails."""
        return tuple(check for check, failed in zip(self.checks, self.mutants[mutant], strict=True) if failed == "1")


def read_kill_matrix(exercise: Exercise) -> KillMatrix | None:
    """Read the kill matrix of an exercise; None if its recording is missing or stale."""
    try:
        recording = loaded(exercise.fingerprints.read_bytes())
    except UNREADABLE:
        return None
    content = recording.content
    return KillMatrix(content.hidden, content.kills) if recording.key == key_of(exercise) else None


def checks_failed_by(exercise: Exercise) -> Mapping[str, list[frozenset[str]]]:
    """For each misconception the checks that each of its mutants fails; empty if the record is missing or stale."""
    found: dict[str, list[frozenset[str]]] = {}
    if (matrix := read_kill_matrix(exercise)) is not None:
        content = loaded(exercise.fingerprints.read_bytes()).content
        for place, mutant in enumerate(content.mutants):
            found.setdefault(mutant.id, []).append(frozenset(matrix.of(place)))
    return found
