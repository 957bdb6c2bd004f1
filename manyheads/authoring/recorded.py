"""The calls that an exercise's fingerprint file records, with the reference's answers: all that is asked of its mutants.

What makes the calls, the judge and the checks, is not imported here: what is recorded depends on it by these values alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.implementation import LocalRunner
from ..checks.outcome import CheckOutcome
from ..public.compared import Expected
from ..public.copies import settled
from ..public.fingerprint import ReplyFingerprint
from .aspects import Groups


@dataclass(frozen=True)
class SettledRunner(LocalRunner):
    """Runs trusted code, and replies with what is recorded: of many copies, the extremes."""

    def execute(self, call: Call) -> Reply:
        return settled(call, super().execute(call))


@dataclass(frozen=True)
class RecordedCalls:
    """The calls, in the order in which the checks ask them, and for each the check, the reply, and its fingerprint.

    outcomes: of all hidden checks. groups: of each check, the calls to which each aspect can be put.
    """

    outcomes: tuple[CheckOutcome, ...]
    asked_by: tuple[str, ...]
    calls: tuple[Call, ...]
    replies: tuple[Reply, ...]
    right: tuple[ReplyFingerprint, ...]
    groups: Mapping[str, Groups]

    @property
    def expected(self) -> tuple[Expected, ...]:
        """What the reference returned to each call."""
        return tuple(map(expected_of, self.calls, self.replies))

    def of(self, check: str) -> list[int]:
        """The indices of a check's calls."""
        return calls_of(check, self.asked_by)


def calls_of(check: str, asked_by: tuple[str, ...]) -> list[int]:
    """The indices of a check's calls."""
    return [i for i, asking in enumerate(asked_by) if asking == check]


def expected_of(call: Call, reply: Reply) -> Expected:
    """Every output of the first run; of a call with one output in a run, that one."""
    in_a_run = len(call.steps) * call.form.count
    return tuple(output.tensor for output in reply.outputs[:in_a_run])
