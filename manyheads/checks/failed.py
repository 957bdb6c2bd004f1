"""How a check fails."""

from __future__ import annotations

from collections.abc import Sequence

from ..box.worker.answers import Raised


class CheckFailed(AssertionError):
    """The attempt does not do what the check asks. `str()` is the evidence.

    suspect: the misconception that this failure proves by itself, whatever else is wrong with the attempt.
    expected: sizes that the evidence states as right.
    """

    def __init__(self, evidence: str, suspect: str = "", expected: Sequence[int] = ()) -> None:
        super().__init__(evidence)
        self.suspect = suspect
        self.expected = tuple(expected)


class AttemptRaised(CheckFailed):
    """The attempt raised an exception in place of an answer."""

    def __init__(self, raised: Raised) -> None:
        super().__init__(raised.type)
        self.raised = raised
