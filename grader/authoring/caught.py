"""Which checks each mutant fails: run by `course release` where something has changed, and kept beside the tables."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..course import Assignment, Course, Exercise
from ..judge.catalogue import Catalogue
from ..judge.diagnosis import load_bank
from ..judge.local import LocalSubject
from ..judge.plugin import CheckOutcome
from ..submission import code_digest

INPUTS = (
    b"verify"  # in place of the course secret; `course verify` draws from it too, and holds the record to what it sees
)


class Caught(BaseModel):
    """By mutant, in the bank's order: a 1 for each check that it fails. key: a hash of all that this was made from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    checks: tuple[str, ...]
    mutants: tuple[str, ...]

    def of(self, mutant: int) -> tuple[str, ...]:
        """The checks that the mutant at this place in the bank fails."""
        return tuple(check for check, failed in zip(self.checks, self.mutants[mutant], strict=True) if failed == "1")


def caught_path(course: Course, exercise: Exercise) -> Path:
    """Where the record of an exercise is kept."""
    return course.root / "grader" / "hidden" / "tables" / f"{exercise.id}.caught.json"


def read_caught(course: Course, assignment: Assignment, exercise: Exercise) -> Caught | None:
    """The record of an exercise; None where there is none of today's files."""
    try:
        caught = Caught.model_validate_json(caught_path(course, exercise).read_bytes())
    except (OSError, ValidationError):
        return None
    return caught if caught.key == _key(course, assignment, exercise) else None


def write_caught(course: Course, catalogue: Catalogue, assignment: Assignment, exercise: Exercise) -> None:
    """Write the record, unless it is current. Costs seconds, for the largest bank most of a minute."""
    if read_caught(course, assignment, exercise) is not None:
        return
    reference = catalogue.reference(assignment, exercise)
    mutants = (
        bits(catalogue.run(exercise, LocalSubject(mutant.namespace), reference, INPUTS, exercise.id))
        for mutant in load_bank(course, exercise).mutants
    )
    caught = Caught(
        key=_key(course, assignment, exercise),
        checks=tuple(check.id for check in catalogue.checks(exercise)),
        mutants=tuple(mutants),
    )
    path = caught_path(course, exercise)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(caught.model_dump_json(indent=1) + "\n", encoding="utf-8")


def bits(outcomes: Sequence[CheckOutcome]) -> str:
    """A 1 for each check that was failed."""
    return "".join("01"[outcome.outcome != "passed"] for outcome in outcomes)


def _key(course: Course, assignment: Assignment, exercise: Exercise) -> str:
    checks = course.checks(exercise)
    sources = (
        checks,
        checks.with_name("conftest.py"),
        course.misconceptions(exercise),
        course.solution(assignment, exercise),
    )
    digests = [code_digest(path.read_text(encoding="utf-8")) if path.exists() else "" for path in sources]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()
