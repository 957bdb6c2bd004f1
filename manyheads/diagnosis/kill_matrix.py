"""The kill matrix: which checks each mutant fails. `course release` records it, beside the diagnosis tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from ..course import Exercise
from ..submission.digest import code_digest
from .bank import load_bank


class KillMatrix(BaseModel):
    """mutants: for each mutant, in the bank's order, a 1 for each check that it fails. key: a hash of all sources."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    checks: tuple[str, ...]
    mutants: tuple[str, ...]

    def of(self, mutant: int) -> tuple[str, ...]:
        """The checks that the mutant at this index in the bank fails."""
        return tuple(check for check, failed in zip(self.checks, self.mutants[mutant], strict=True) if failed == "1")

    def file_content(self) -> bytes:
        """The record as the file holds it."""
        return (self.model_dump_json(indent=1) + "\n").encode()


def read_kill_matrix(exercise: Exercise) -> KillMatrix | None:
    """Read the kill matrix of an exercise; None if it is missing or stale."""
    try:
        matrix = KillMatrix.model_validate_json(exercise.kill_matrix.read_bytes())
    except (OSError, ValidationError):
        return None
    return matrix if matrix.key == key_of(exercise) else None


def checks_failed_by(exercise: Exercise) -> Mapping[str, list[frozenset[str]]]:
    """For each misconception the checks that each of its mutants fails; empty if the record is missing or stale."""
    matrix = read_kill_matrix(exercise)
    found: dict[str, list[frozenset[str]]] = {}
    if matrix is not None:
        for place, mutant in enumerate(load_bank(exercise).mutants):
            found.setdefault(mutant.id, []).append(frozenset(matrix.of(place)))
    return found


def key_of(exercise: Exercise) -> str:
    """A hash of all that the matrix is made from."""
    sources = (
        *exercise.check_sources(),
        exercise.checks.with_name("conftest.py"),
        *exercise.mutant_sources(),
        exercise.solution,
    )
    digests = [code_digest(path.read_text(encoding="utf-8")) if path.exists() else "" for path in sources]
    forms = [repr(sorted(exercise.forms.items(), key=lambda item: item[0]))] if exercise.forms else []
    return hashlib.sha256(" ".join([*digests, *forms]).encode()).hexdigest()
