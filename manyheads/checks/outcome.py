"""What became of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..result import Outcome
from .marks import Layer

FAILED_ITSELF = "The grader itself failed here; this is not your fault."


@dataclass(frozen=True)
class CheckOutcome:
    """The verdict of one check, and what a student and the diagnosis may know of it.

    raised: the attempt's `Raised`, where it raised an exception.
    suspect: the misconception that this failure alone proves.
    fault: the grader's own error; empty where there is none.
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
        """The points earned: all or none."""
        return self.points if self.outcome == "passed" else 0.0
