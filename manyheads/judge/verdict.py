"""What a judge finds about one attempt, and its checks as results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..checks.outcome import CheckOutcome
from ..checks.sanitize import sanitize
from ..course import Exercise
from ..diagnosis.diagnosis import NOTHING, Diagnosis
from ..result import CheckResult, Diagnosed, ExerciseResult, Outcome, ProvedLine
from ..submission.unwritten import UNTOUCHED
from .function_results import Functions


@dataclass(frozen=True)
class Verdict:
    """What is found about one attempt.

    places: the function of each check, by the check's id; "" where it asks several and passed.
    note: what the student should know about parts of the file.
    is_certain: whether no process ended while it was loaded; else the machine may have had its part in it.
    """

    outcomes: Sequence[CheckOutcome]
    told: Functions = field(default_factory=Functions)
    places: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[ProvedLine, ...] = ()
    note: str = ""
    is_certain: bool = True

    def result(self, exercise: Exercise, note: str) -> ExerciseResult:
        """Return the result of this exercise. Where a check with points could not be run, nothing is said of the attempt.

        note: what the student should know of the file that was read.
        """
        checks = tuple(_check_result(o, self.places.get(o.id, "")) for o in self.outcomes)
        known: dict[str, Any] = {
            "id": exercise.id,
            "max_score": sum(c.max_score for c in checks),
            "checks": checks,
            "note": " ".join(filter(None, (note, self.note))),
        }
        if any(c.outcome == "skipped" and c.max_score for c in checks):
            return ExerciseResult(score=None, **known)
        return ExerciseResult(
            **known,
            score=sum(c.score for c in checks),
            diagnosis=with_start(self.told.diagnosis.named, exercise.hint),
            also=self.told.diagnosis.also,
            lines=self.lines,
            functions=self.told.functions,
        )


def of_the_file(outcomes: Sequence[CheckOutcome], diagnosis: Diagnosis = NOTHING) -> Verdict:
    """Return a verdict on the whole file, of which no function could be asked."""
    return Verdict(outcomes, Functions(diagnosis=diagnosis))


def all_ended(unattempted: Sequence[CheckOutcome], outcome: Outcome, sentence: str) -> list[CheckOutcome]:
    """Return the outcomes where the whole attempt ended in the same way."""
    return [replace(check, outcome=outcome, evidence=sentence) for check in unattempted]


def _check_result(outcome: CheckOutcome, function: str) -> CheckResult:
    return CheckResult(
        id=outcome.id,
        title=outcome.title,
        outcome=outcome.outcome,
        score=outcome.score,
        max_score=outcome.points,
        evidence=sanitize(outcome.evidence),
        hint="" if outcome.outcome == "passed" else outcome.hint,
        function=function,
    )


def with_start(diagnosis: Sequence[Diagnosed], hint: str) -> tuple[Diagnosed, ...]:
    """Return the same; where nothing is written, the hint is the exercise's own, which is about getting started."""
    return tuple(d.model_copy(update={"hint": hint}) if hint and d.id == UNTOUCHED else d for d in diagnosis)
