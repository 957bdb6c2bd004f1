"""The calls that an exercise's fingerprint file records, with the reference's answers: all that is asked of its mutants.

What makes the calls, the judge and the checks, is not imported here: what is recorded depends on it by these values alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.draw import Drawn
from ..checks.implementation import LocalRunner
from ..checks.outcome import CheckOutcome
from ..diagnosis.comparison import Expected
from ..diagnosis.dropout_extremes import is_of_copies, settled
from ..diagnosis.fingerprint import ReplyFingerprint
from .asked_aspects import Groups

FEW = 2  # copies


@dataclass(frozen=True)
class SettledRunner(LocalRunner):
    """Runs trusted code, and replies with what is recorded: of many copies, the extremes.

    Code that raises for two copies is not asked for hundreds: it raises there, too, and a mask sized by the batch takes 2 GiB.
    """

    def execute(self, call: Call) -> Reply:
        """Answer a call; of many copies, answer with the extremes."""
        if is_of_copies(call) and call.cotangent is None:
            few = super().execute(_of_few(call))
            if few.raised is not None:
                return few
        return settled(call, super().execute(call))


def _of_few(call: Call) -> Call:
    """Return the same call about a few of the copies."""
    many = next(len(value) for value in call.args if isinstance(value, Tensor))

    def change(value: object) -> object:
        is_of_all = isinstance(value, Tensor) and value.dim() > 0 and len(value) == many
        return value[:FEW] if is_of_all else value  # type: ignore[index]

    return call.map(change)


@dataclass(frozen=True)
class RecordedCalls:
    """The calls, in the order in which the checks ask them, and for each the check, the reply, and its fingerprint.

    outcomes: of all hidden checks. nth: of each call, how many comparable calls its check makes before it.
    groups: of each check, the calls to which each aspect can be put. drawn: what the checks drew.
    """

    outcomes: tuple[CheckOutcome, ...]
    asked_by: tuple[str, ...]
    nth: tuple[int, ...]
    calls: tuple[Call, ...]
    replies: tuple[Reply, ...]
    right: tuple[ReplyFingerprint, ...]
    groups: Mapping[str, Groups]
    drawn: tuple[Drawn, ...] = ()

    @property
    def expected(self) -> tuple[Expected, ...]:
        """What the reference returned to each call."""
        return tuple(map(expected_of, self.calls, self.replies))

    def of(self, check: str) -> list[int]:
        """Return the indices of a check's calls."""
        return calls_of(check, self.asked_by)


def calls_of(check: str, asked_by: tuple[str, ...]) -> list[int]:
    """Return the indices of a check's calls."""
    return [i for i, asking in enumerate(asked_by) if asking == check]


def expected_of(call: Call, reply: Reply) -> Expected:
    """Return every output of the first run; of a call with one output in a run, that one."""
    in_a_run = len(call.steps) * call.form.count
    return tuple(output.tensor for output in reply.outputs[:in_a_run])
