"""The outcome of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..result import Outcome
from .marks import Layer

FAILED_ITSELF = "The grader itself failed here; this is not your fault."
DIED = "The grader ended here before it was done, twice; this is not your fault."


@dataclass(frozen=True)
class CheckOutcome:
    """The verdict of one check, with what the student and the diagnosis need.

    raised: the attempt's exception as a `Raised`, if it raised one.
    suspect: the misconception that this failure proves by itself.
    fault: the error of the grader itself; empty if there is none.
    """

    id: str
    title: str
    layer: Layer
    points: float
    hint: str
    outcome: Outcome = "skipped"
    evidence: str = ""
    suspect: str = ""
    raised: Any = None
    fault: str = ""

    @property
    def score(self) -> float:
        """The points that were earned: all or none."""
        return self.points if self.outcome == "passed" else 0.0
