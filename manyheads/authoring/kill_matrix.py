"""The kill matrix: which checks each mutant fails. `course release` updates it, beside the diagnosis tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from ..checks.local import LocalRecordingRunner
from ..checks.outcome import CheckOutcome
from ..course import Exercise
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

    def file_content(self) -> bytes:
        """The record as the file holds it."""
        return (self.model_dump_json(indent=1) + "\n").encode()


def read_kill_matrix(exercise: Exercise) -> KillMatrix | None:
    """Read the kill matrix of an exercise; None if it is missing or stale."""
    try:
        matrix = KillMatrix.model_validate_json(exercise.kill_matrix.read_bytes())
    except (OSError, ValidationError):
        return None
    return matrix if matrix.key == _key(exercise) else None


def kill_rows(catalogue: Catalogue, exercise: Exercise, mutants: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Run the checks on these mutants: a row for each."""
    reference = catalogue.reference(exercise)
    for namespace in mutants:
        yield bits(catalogue.run(exercise, LocalRecordingRunner(namespace), reference, INPUTS, exercise.id))


def kill_matrix_of(catalogue: Catalogue, exercise: Exercise, mutants: Sequence[str]) -> KillMatrix:
    """The record that these rows make."""
    checks = tuple(check.id for check in catalogue.checks(exercise))
    return KillMatrix(key=_key(exercise), checks=checks, mutants=tuple(mutants))


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
