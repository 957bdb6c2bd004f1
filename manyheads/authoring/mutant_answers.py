"""How trusted code answers the recorded calls: every call is put to it once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO

from ..box.worker import wire
from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.implementation import LocalRunner
from ..checks.local import LocalRecordingRunner, as_an_attempts
from ..checks.transcript import Exchange
from ..course import Exercise
from ..diagnosis.family import Namespace
from ..diagnosis.fingerprint import (
    FACETS,
    SMALLEST,
    TOLERANCE,
    Facet,
    ReplyFingerprint,
    fingerprint_beside,
)
from ..diagnosis.observe import Observed, settled
from ..judge.attempt_runner import Memory
from ..judge.run_checks import Catalogue
from .asked_aspects import Broken
from .record_calls import PUBLIC, RecordedCalls, is_same_reply
from .recorded_call import RecordedCall


@dataclass(frozen=True)
class Asked:
    """A reply as an attempt's. whole: of many copies all answers. call: in float32 where float64 raised."""

    told: Observed
    whole: Reply
    call: RecordedCall


class _Witness(LocalRecordingRunner):
    """Trusted code that is asked what the hidden checks ask. It has answered the calls that are recorded."""

    def __init__(self, namespace: Namespace, memory: Memory, known: Mapping[int, Reply]) -> None:
        """known: its replies, by the ids of the calls."""
        super().__init__(namespace)
        self._memory, self._known = memory, known

    def execute(self, call: Call) -> Reply:
        """Return the reply; of equal ones the same object, by which the memory knows what a check does next."""
        told = self._known.get(id(call)) or as_an_attempts(self._runner, call, self._runner.execute(call))
        read = self._memory.read(wire.encode(told)[wire.LENGTH.size :])
        self.transcript.append(Exchange(self.check, call, read))
        return read


class Hearing:
    """Asks trusted code that has answered the recorded calls what the hidden checks ask on public inputs."""

    def __init__(self, catalogue: Catalogue, exercise: Exercise, recorded: RecordedCalls) -> None:
        self._catalogue, self._exercise = catalogue, exercise
        self._reference = catalogue.remembering(exercise)
        self._held = recorded.calls

    def of(self, namespace: Namespace, answers: Sequence[Asked]) -> str:
        """Return for each hidden check 1 where it failed, 2 where it passed and a condition did not, else 0."""
        memory = self._reference.memory
        memory.begin_attempt()  # before calls are held, for it may forget them
        self._held = tuple(map(memory.hold, self._held))
        witness = _Witness(namespace, memory, {id(c): a.whole for c, a in zip(self._held, answers, strict=True)})
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # prints and warnings cost nothing
            ends = self._catalogue.run(self._exercise, witness, self._reference, PUBLIC, self._exercise.id)
        return "".join("0" if each.outcome == "passed" else "12"[each.unmet] for each in ends)


def answers_of(recorded: RecordedCalls, namespace: Namespace) -> list[Asked]:
    """Return the answer of trusted code to each recorded call."""
    answers = []
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for i, asked in enumerate(recorded.every):
            call, first = asked.call, asked.whole(namespace)
            whole = as_an_attempts(LocalRunner(namespace), call, first)
            reply = settled(call, whole)
            right, is_right = recorded.right[i], is_same_reply(reply, recorded.replies[i])  # as most of them are
            fingerprint = right if is_right else fingerprint_beside(right, call, reply)
            told = Observed(call, right, recorded.expected[i], reply, fingerprint)
            answers.append(Asked(told, whole, asked if whole is first else asked.in_single))
    return answers


class Replies:
    """Different replies to one call, in the order in which they were added."""

    def __init__(self, facets: tuple[Facet, ...] = FACETS) -> None:
        """facets: in which replies must agree to be the same."""
        self._facets = facets
        self.every: list[ReplyFingerprint] = []
        self._marks: list[tuple[float, float]] = []

    def find(self, fingerprint: ReplyFingerprint) -> int | None:
        """Return the index of the first reply that is the same, numbers to rounding; None if there is none.

        Only those are compared whose first number does not tell them from this one: few of hundreds. What has no number, or
        one that is not finite, is near everything.
        """
        number, norm = _mark(fingerprint)
        norm = max(norm, SMALLEST)
        for i, (other, size) in enumerate(self._marks):
            is_near = not abs(other - number) > TOLERANCE * (size if size > norm else norm)
            if is_near and self.every[i].is_same(fingerprint, self._facets):
                return i
        return None

    def add(self, reply: ReplyFingerprint) -> int:
        """Add a reply. Returns its index."""
        self.every.append(reply)
        self._marks.append(_mark(reply))
        return len(self.every) - 1


def _mark(reply: ReplyFingerprint) -> tuple[float, float]:
    """Return the first number of the first output, and the output's norm: the same replies have them the same, to rounding."""
    first = reply.outputs[0] if reply.outputs and not reply.raised else None
    return (first.projections[0], first.norm) if first and first.projections else (math.nan, 0.0)


# Of a reply: where it is stored; itself if rounding may decide it; None: chance does.
Place = int | ReplyFingerprint | None


class KnownReplies:
    """The different replies to every call, the reference's first, each stored once. Chance and rounding decide none of them."""

    def __init__(self, right: Sequence[ReplyFingerprint]) -> None:
        self._known = [Replies() for _ in right]
        for known, each in zip(self._known, right, strict=True):
            known.add(each)

    @property
    def replies(self) -> tuple[tuple[ReplyFingerprint, ...], ...]:
        """For each call its different replies, the reference's first."""
        return tuple(tuple(known.every) for known in self._known)

    def places(self, namespace: Namespace, answers: Sequence[Asked]) -> list[Place]:
        """Return for each call where the reply of this code is stored."""
        return [self._place(namespace, known, each) for known, each in zip(self._known, answers, strict=True)]

    def _place(self, namespace: Namespace, known: Replies, asked: Asked) -> Place:
        call, right, found = asked.call, asked.told.right, asked.told.found
        if found is right:
            return 0
        if (place := known.find(found)) is not None:  # the same as one that is known to be fixed
            return place
        if call.is_fixed(namespace, found, right):
            return known.add(found)
        return None if call.is_drawn else found

    def settled(self, places: Sequence[Place]) -> tuple[int | None, ...]:
        """Return the places, once all mutants have answered: what rounding may decide is no reply, unless another gives it for sure."""
        return tuple(
            known.find(place) if isinstance(place, ReplyFingerprint) else place
            for known, place in zip(self._known, places, strict=True)
        )


def without_rounding(broken: Broken, places: Sequence[Place], settled: Sequence[int | None]) -> Broken:
    """Return the aspects without those of calls whose reply rounding decides: on another processor it breaks others.

    What chance decides is drawn from the call's seed, and is the same everywhere.
    """
    of_rounding = {i for i, (one, other) in enumerate(zip(places, settled, strict=True)) if one is not other is None}
    return frozenset(each for each in broken if of_rounding.isdisjoint(each[1]))
