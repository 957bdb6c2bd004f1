"""How trusted code answers the recorded calls: every call is put to it once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.implementation import LocalRunner
from ..checks.local import as_an_attempts, namespace_of
from ..diagnosis.comparison import Comparison
from ..diagnosis.fingerprint import (
    FACETS,
    SMALLEST,
    TOLERANCE,
    Facet,
    ReplyFingerprint,
    fingerprint_beside,
    is_same_reply,
)
from .asked_aspects import Broken, broken_aspects
from .nondeterminism import is_deterministic, is_of_rounding
from .public_calls import RecordedCalls, SettledRunner

# Different replies to one call, and which of them is the same as another: the search that a release makes most often.


class Replies:
    """Replies in the order in which they were added."""

    def __init__(self, facets: tuple[Facet, ...] = FACETS) -> None:
        """facets: in which replies must agree to be the same."""
        self._facets = facets
        self.every: list[ReplyFingerprint] = []
        self._marks: list[tuple[float, float]] = []

    def find(self, fingerprint: ReplyFingerprint) -> int | None:
        """Return the index of the first reply that is the same, numbers to rounding; None if there is none."""
        return next((i for i in self._near(fingerprint) if self.every[i].is_same(fingerprint, self._facets)), None)

    def keep(self, fingerprint: ReplyFingerprint) -> int:
        """Return the index of the reply that has every number alike, to the last digit; it is added if there is none.

        Being the same to rounding does not carry over from one reply to the next: a chain of them may lead far.
        """
        known = next(
            (i for i in self._near(fingerprint) if self.every[i] is fingerprint or self.every[i] == fingerprint), None
        )
        return self.add(fingerprint) if known is None else known

    def add(self, reply: ReplyFingerprint) -> int:
        """Add a reply. Returns its index."""
        self.every.append(reply)
        self._marks.append(_mark(reply))
        return len(self.every) - 1

    def _near(self, fingerprint: ReplyFingerprint) -> Iterator[int]:
        """Yield the indices of the replies whose first number does not tell them from this one: few of hundreds.

        What has no number, or one that is not finite, is near everything.
        """
        number, norm = _mark(fingerprint)
        norm = max(norm, SMALLEST)
        for i, (other, size) in enumerate(self._marks):
            if not abs(other - number) > TOLERANCE * (size if size > norm else norm):
                yield i


def _mark(reply: ReplyFingerprint) -> tuple[float, float]:
    """Return the first number of the first output, and the output's norm: the same replies have them the same, to rounding."""
    first = reply.outputs[0] if reply.outputs and not reply.raised else None
    return (first.projections[0], first.norm) if first and first.projections else (math.nan, 0.0)


Namespace = Mapping[str, object]


@dataclass(frozen=True)
class MutantAnswers:
    """How a mutant answers. broken: where it is not as the reference, whatever decides its replies.

    places: for each call, the index of its reply, None where chance decides it: 0 is the reference's, i > 0 is
        `Answers.sure[i - 1]`, and i < 0 is `Answers.unsure[-1 - i]`.
    """

    places: tuple[int | None, ...]
    broken: Broken


@dataclass(frozen=True)
class Answers:
    """How some mutants answer.

    sure: for each call, the different replies other than the reference's. unsure: those that rounding may decide.
    """

    sure: tuple[tuple[ReplyFingerprint, ...], ...]
    unsure: tuple[tuple[ReplyFingerprint, ...], ...]
    mutants: tuple[MutantAnswers, ...]


def answers_of(recorded: RecordedCalls, mutants: Sequence[Namespace]) -> Answers:
    """Put every call to every one of these mutants."""
    seen = [_Seen(right) for right in recorded.right]
    found = []
    for namespace in mutants:
        runner = SettledRunner(namespace)
        asked = list(_asked(recorded, runner))
        places = tuple(
            seen[i].place(runner, each) if is_deterministic(runner, each.told.call, each.reply) else None
            for i, each in enumerate(asked)
        )
        broken = broken_aspects([answer.told for answer in asked], list(recorded.groups.values()))
        found.append(MutantAnswers(places, broken))
    return Answers(
        sure=tuple(tuple(subject.sure.every[1:]) for subject in seen),
        unsure=tuple(tuple(subject.unsure.every) for subject in seen),
        mutants=tuple(found),
    )


def compared_with(recorded: RecordedCalls, path: Path) -> list[Comparison]:
    """Return how a right attempt answers, beside the reference."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # prints and warnings cost nothing
        return [each.told for each in _asked(recorded, SettledRunner(namespace_of(path)))]


@dataclass(frozen=True)
class _Asked:
    """A reply in the call's own dtype, which is recorded; and as an attempt's would be, which a visible check sees."""

    reply: Reply
    found: ReplyFingerprint
    told: Comparison


def _asked(recorded: RecordedCalls, runner: LocalRunner) -> Iterator[_Asked]:
    known = zip(recorded.calls, recorded.replies, recorded.right, recorded.expected, strict=True)
    for call, right_reply, right, expected in known:
        reply = runner.execute(call)
        told = as_an_attempts(runner, call, reply)
        fingerprint = _fingerprint(call, reply, right_reply, right)
        seen = fingerprint if told is reply else _fingerprint(call, told, right_reply, right)
        yield _Asked(reply, fingerprint, Comparison(call, right, expected, told, seen))


def _fingerprint(call: Call, reply: Reply, right_reply: Reply, right: ReplyFingerprint) -> ReplyFingerprint:
    """Return the reply's fingerprint, as an attempt's; the reference's for the same reply: most mutants differ on a few calls only."""
    return right if is_same_reply(reply, right_reply) else fingerprint_beside(right, call, reply)


class _Seen:
    """The different replies to one call so far, the reference's first. Rounding decides none of the sure ones."""

    def __init__(self, right: ReplyFingerprint) -> None:
        self.sure, self.unsure, self._known = Replies(), Replies(), Replies()
        self.sure.add(right)
        self._known.add(right)

    def place(self, runner: LocalRunner, asked: _Asked) -> int:
        """Return the index of the reply, which is kept if it is new: negative for one that is not sure, from -1 down.

        A reply that is the same as one that is known to be sure does not depend on rounding.
        """
        found = asked.found
        if self._known.find(found) is None:
            if is_of_rounding(runner, asked.told.call, found, asked.told.right):
                return -1 - self.unsure.keep(found)
            self._known.add(found)
        return self.sure.keep(found)
