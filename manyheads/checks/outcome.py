"""How a check fails, and the outcome of one check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..box.worker.answers import Raised
from ..result import Outcome
from .explain import is_unfinished
from .marks import Layer

FAILED_ITSELF = "The grader itself failed here; this is not your fault."
DIED = "The grader ended here before it was done, twice; this is not your fault."


@dataclass(frozen=True)
class CheckOutcome:
    """The verdict of one check, with what the student and the diagnosis need.

    raised: the attempt's exception as a `Raised`, if it raised one.
    suspect: the misconception that this failure proves by itself.
    fault: the error of the grader itself; empty if there is none.
    place: the function that it asks; of several the one that is to blame, as far as that is known.
    unmet: whether the check itself passed, and its function compares nothing, or does not meet a
        condition (PRECONDITIONS).
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
    function: str = ""
    trivial_answer: bool = False

    @property
    def score(self) -> float:
        """The points that were earned: all or none."""
        return self.points if self.outcome == "passed" else 0.0


class CheckFailed(AssertionError):
    """The attempt does not do what the check asks. `str()` is the evidence.

    suspect: the misconception that this failure proves by itself, whatever else is wrong with the
        attempt.
    expected: sizes that the evidence states as right.
    """

    def __init__(self, evidence: str, suspect: str = "", expected: Sequence[int] = ()) -> None:
        super().__init__(evidence)
        self.suspect = suspect
        self.expected = tuple(expected)
        self.place = ""  # the function that is to blame, where the check itself passed
        self.unmet = False  # whether it compares nothing, where that is asked besides


REFUSAL_DUE = "What is due here is a refusal: a ValueError that says why"


class AttemptRaised(CheckFailed):
    """The attempt raised an exception in place of an answer, or of a refusal.

    due: a sentence about what is due in its place; empty for an answer.
    """

    def __init__(self, raised: Raised, requirement: str = "") -> None:
        super().__init__(raised.type)
        self.raised = raised
        self.due = "" if is_unfinished(raised) else requirement
