"""How trusted code answers the recorded calls: every call is put to it once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.implementation import LocalRunner
from ..checks.local import as_an_attempts
from ..checks.trusted import namespace_of
from ..diagnosis.compared import Compared
from ..diagnosis.fingerprint import ReplyFingerprint, fingerprint_beside, is_same_reply
from .aspects import Broken, broken_aspects
from .chance import is_deterministic, is_of_rounding
from .recorded import RecordedCalls, SettledRunner
from .replies import Replies

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
        broken = broken_aspects([each.told for each in asked], list(recorded.groups.values()))
        found.append(MutantAnswers(places, broken))
    return Answers(
        sure=tuple(tuple(each.sure.every[1:]) for each in seen),
        unsure=tuple(tuple(each.unsure.every) for each in seen),
        mutants=tuple(found),
    )


def compared_with(recorded: RecordedCalls, path: Path) -> list[Compared]:
    """How a right attempt answers, beside the reference."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # prints and warnings cost nothing
        return [each.told for each in _asked(recorded, SettledRunner(namespace_of(path)))]


@dataclass(frozen=True)
class _Asked:
    """A reply in the call's own dtype, which is recorded; and as an attempt's would be, which a visible check sees."""

    reply: Reply
    found: ReplyFingerprint
    told: Compared


def _asked(recorded: RecordedCalls, runner: LocalRunner) -> Iterator[_Asked]:
    known = zip(recorded.calls, recorded.replies, recorded.right, recorded.expected, strict=True)
    for call, right_reply, right, expected in known:
        reply = runner.execute(call)
        told = as_an_attempts(runner, call, reply)
        found = _fingerprint(call, reply, right_reply, right)
        seen = found if told is reply else _fingerprint(call, told, right_reply, right)
        yield _Asked(reply, found, Compared(call, right, expected, told, seen))


def _fingerprint(call: Call, reply: Reply, right_reply: Reply, right: ReplyFingerprint) -> ReplyFingerprint:
    """The reply's fingerprint, as an attempt's; the reference's for the same reply: most mutants differ on a few calls only."""
    return right if is_same_reply(reply, right_reply) else fingerprint_beside(right, call, reply)


class _Seen:
    """The different replies to one call so far, the reference's first. Rounding decides none of the sure ones."""

    def __init__(self, right: ReplyFingerprint) -> None:
        self.sure, self.unsure, self._known = Replies(), Replies(), Replies()
        self.sure.add(right)
        self._known.add(right)

    def place(self, runner: LocalRunner, asked: _Asked) -> int:
        """The index of the reply, which is kept if it is new: negative for one that is not sure, from -1 down.

        A reply that is the same as one that is known to be sure does not depend on rounding.
        """
        found = asked.found
        if self._known.find(found) is None:
            if is_of_rounding(runner, asked.told.call, found, asked.told.right):
                return -1 - self.unsure.keep(found)
            self._known.add(found)
        return self.sure.keep(found)
