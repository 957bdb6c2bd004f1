"""The kill matrix: which checks each mutant fails. `course release` updates it, beside the diagnosis tables."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from ..checks.local import LocalRecordingRunner
from ..checks.outcome import CheckOutcome
from ..course import Exercise
from ..diagnosis import load_bank
from ..judge.catalogue import Catalogue
from ..submission import code_digest

INPUTS = (
    b"verify"  # in place of the course secret; `course verify` uses it too, and compares the record with its own run
)


class KillMatrix(BaseModel):
    """mutants: for each mutant, in the bank's order, a 1 for each check that it fails. key: a hash of all sources."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    checks: tuple[str, ...]
    mutants: tuple[str, ...]

    def of(self, mutant: int) -> tuple[str, ...]:
        """The checks that the mutant at this index in the bank fails."""
        return tuple(check for check, failed in zip(self.checks, self.mutants[mutant], strict=True) if failed == "1")


def read_kill_matrix(exercise: Exercise) -> KillMatrix | None:
    """Read the kill matrix of an exercise; None if it is missing or stale."""
    try:
        matrix = KillMatrix.model_validate_json(exercise.kill_matrix.read_bytes())
    except (OSError, ValidationError):
        return None
    return matrix if matrix.key == _key(exercise) else None


def kill_matrix(catalogue: Catalogue, exercise: Exercise) -> KillMatrix:
    """The record where it is current; otherwise it is made, which takes seconds, for the largest bank most of a minute."""
    if (recorded := read_kill_matrix(exercise)) is not None:
        return recorded
    reference = catalogue.reference(exercise)
    mutants = (
        bits(catalogue.run(exercise, LocalRecordingRunner(mutant.namespace), reference, INPUTS, exercise.id))
        for mutant in load_bank(exercise).mutants
    )
    return KillMatrix(
        key=_key(exercise),
        checks=tuple(check.id for check in catalogue.checks(exercise)),
        mutants=tuple(mutants),
    )


def write_kill_matrix(catalogue: Catalogue, exercise: Exercise) -> None:
    """Write the record, unless it is current."""
    if read_kill_matrix(exercise) is not None:
        return
    path = exercise.kill_matrix
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(kill_matrix(catalogue, exercise).model_dump_json(indent=1) + "\n", encoding="utf-8")


def bits(outcomes: Sequence[CheckOutcome]) -> str:
    """A 1 for each check that failed, else a 0."""
    return "".join("01"[outcome.outcome != "passed"] for outcome in outcomes)


def _key(exercise: Exercise) -> str:
    sources = (
        *exercise.check_sources(),
        exercise.checks.with_name("conftest.py"),
        *exercise.mutant_sources(),
        exercise.solution,
    )
    digests = [code_digest(path.read_text(encoding="utf-8")) if path.exists() else "" for path in sources]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()
