"""What a judge finds about one attempt, and its checks as results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..checks.outcome import CheckOutcome
from ..checks.sanitize import sanitize
from ..course import Exercise
from ..result import CheckResult, Diagnosed, Outcome, ProvedLine


@dataclass(frozen=True)
class Verdict:
    """What is found about one attempt. note: what the student should know about a notebook's cells."""

    outcomes: Sequence[CheckOutcome]
    diagnosis: tuple[Diagnosed, ...] = ()
    lines: tuple[ProvedLine, ...] = ()
    note: str = ""


def all_ended(unattempted: Sequence[CheckOutcome], outcome: Outcome, sentence: str) -> list[CheckOutcome]:
    """The outcomes where the whole attempt ended in the same way."""
    return [replace(check, outcome=outcome, evidence=sentence) for check in unattempted]


def check_result(exercise: Exercise, outcome: CheckOutcome) -> CheckResult:
    """The outcome as it stands in a result."""
    passed = outcome.outcome == "passed"
    return CheckResult(
        id=outcome.id,
        title=outcome.title,
        outcome=outcome.outcome,
        score=outcome.score,
        max_score=outcome.points,
        evidence=sanitize(outcome.evidence),
        hint="" if passed else outcome.hint or exercise.hint,
    )
