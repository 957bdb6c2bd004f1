"""An attempt as a row of the matrix: its answers to the recorded calls, beside those of the
recorded mutants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from .fingerprint import ReplyFingerprint
from .observe import ObservedReply
from .recording import FaultDictionary, facets_of

MOST, DIGITS = 12, 16  # wrong answers that are looked at, and hexadecimal digits of their digest
_NUMBERS = ("outputs", "gradients", "argument_gradients")


@dataclass(frozen=True)
class Response:
    """An attempt's answers to recorded calls. Calls and mutants are told by their numbers.

    written: the answers of functions that are written. wrong: those of them that are to be
    explained, in which it differs from the reference. asked: the calls on which a mutant may differ
    from the reference only as the attempt does.
    by_kind: whether exceptions of one kind are the same, whatever sizes they tell of.
    """

    recording: FaultDictionary
    written: Mapping[int, ObservedReply]
    syndrome: Mapping[int, ObservedReply]
    calls: Set[int]
    by_kind: bool = False
    _alike: dict[tuple[int, int], bool] = field(default_factory=dict, repr=False, compare=False)

    def without(self, calls: Collection[int]) -> Response:
        """Return the same without these calls."""
        syndrome = {i: observation for i, observation in self.syndrome.items() if i not in calls}
        return replace(self, syndrome=syndrome, calls=self.calls - set(calls))

    def subset(self, calls: Set[int]) -> Response:
        """Return the same, asked these calls alone."""
        return self.without(self.calls - calls)

    def id(self, mutant: int) -> str:
        """Return the misconception of a mutant."""
        return self.recording.mutants[mutant].id

    def survives(self, mutant: int, call: int) -> bool:
        """Return whether a mutant answers a call as the reference does; or as chance will have
        it.
        """
        return not self.recording.detected_in[mutant] >> call & 1

    def is_nondeterministic(self, mutant: int, call: int) -> bool:
        """Return whether a mutant's answer says nothing: chance decides it, or both raise something
        that nobody knows.
        """
        index = self.recording.mutants[mutant].answers[call]
        if index is None:
            return True
        observation = self.written.get(call)
        is_other = observation is not None and observation.actual.raised == "other"
        return is_other and self.recording.replies[call][index].raised == "other"

    def explains(self, mutant: int, call: int) -> bool:
        """Return whether a mutant answers a call that is to be explained as the attempt does; or as
        chance will have it.
        """
        if call not in self.syndrome:
            return False
        return self.is_nondeterministic(mutant, call) or self.matches(mutant, call)

    def matches(self, mutant: int, call: int) -> bool:
        """Return whether a mutant is known to answer a call as the attempt does."""
        index = self.recording.mutants[mutant].answers[call]
        return index is not None and self._is_alike(call, index)

    def structure(self, call: int, reply: ReplyFingerprint) -> tuple[object, ...]:
        """Return what of a reply to a call is compared, but for its numbers."""
        if reply.raised:
            return (reply.raised,)
        facets = (f for f in facets_of(self.recording, call) if f not in _NUMBERS)
        cut = frozenset(name for name, gradient in reply.gradients.items() if gradient is None)
        return (cut, *(repr(getattr(reply, facet)) for facet in facets))

    def is_consistent(self, mutant: int) -> bool:
        """Return whether a mutant answers every call that is asked as the attempt or as the
        reference does.
        """
        speaks = self.recording.detected_in[mutant]  # first, for there no numbers are compared
        return not speaks & self._passed_bits and all(
            self.explains(mutant, i) for i in self.calls if speaks >> i & 1
        )

    @cached_property
    def _passed_bits(self) -> int:
        return sum(1 << i for i in self.calls - self.syndrome.keys())

    def digest(self) -> str:
        """Return a digest of the wrong answers, which two attempts share that differ from the
        reference alike; "" for none.

        Two digits of a few numbers of each: rounding seldom decides them, and two mistakes never
        share all.
        """
        plain = [(i, e.actual) for i, e in sorted(self.syndrome.items()) if not e.call.random]
        numbers = [
            [(o.kind, o.shape, *map("{:.1e}".format, o.projections[:1])) for o in actual.outputs]
            for _, actual in plain
        ]
        answers = [
            (i, self.structure(i, actual), outputs)
            for (i, actual), outputs in zip(plain, numbers, strict=True)
        ]
        return hashlib.sha256(repr(answers[:MOST]).encode()).hexdigest()[:DIGITS] if answers else ""

    def _is_alike(self, call: int, index: int) -> bool:
        alike = self._alike.get((call, index))
        if alike is None:
            actual, reply = self.written[call].actual, self.recording.replies[call][index]
            alike = self._alike[call, index] = reply.agrees(actual, facets_of(self.recording, call))
        if alike or not self.by_kind:
            return alike
        actual_exception, recorded_exception = (
            self.written[call].actual.raised,
            self.recording.replies[call][index].raised,
        )
        return bool(
            actual_exception
            and recorded_exception
            and actual_exception.split()[:2] == recorded_exception.split()[:2]
        )
