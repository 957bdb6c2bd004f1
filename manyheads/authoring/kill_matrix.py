"""Make the kill matrix: run the checks on every mutant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..checks.local import LocalRecordingRunner
from ..checks.outcome import CheckOutcome
from ..course import Exercise
from ..judge.catalogue import Catalogue

INPUTS = (
    b"verify"  # in place of the course secret; `course verify` uses it too, and compares the record with its own run
)


def kill_rows(catalogue: Catalogue, exercise: Exercise, mutants: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Run the checks on these mutants: a row for each."""
    reference = catalogue.remembering(exercise)
    for namespace in mutants:
        yield bits(catalogue.run(exercise, LocalRecordingRunner(namespace), reference, INPUTS, exercise.id))


def bits(outcomes: Sequence[CheckOutcome]) -> str:
    """A 1 for each check that failed, else a 0."""
    return "".join("01"[outcome.outcome != "passed"] for outcome in outcomes)
