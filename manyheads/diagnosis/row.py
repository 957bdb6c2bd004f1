"""An attempt as a row of the matrix: its answers to the recorded calls, beside those of the
recorded mutants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from .fingerprint import ReplyFingerprint
from .observe import Observed
from .recording import Recording, facets_of

MOST, DIGITS = 12, 16  # wrong answers that are looked at, and hexadecimal digits of their digest
_NUMBERS = ("outputs", "gradients", "argument_gradients")


@dataclass(frozen=True)
class Row:
    """An attempt's answers to recorded calls. Calls and mutants are told by their numbers.

    written: the answers of functions that are written. wrong: those of them that are to be
    explained, in which it differs from the reference. asked: the calls on which a mutant may differ
    from the reference only as the attempt does.
    by_kind: whether exceptions of one kind are the same, whatever sizes they tell of.
    """

    recording: Recording
    written: Mapping[int, Observed]
    wrong: Mapping[int, Observed]
    asked: Set[int]
    by_kind: bool = False
    _alike: dict[tuple[int, int], bool] = field(default_factory=dict, repr=False, compare=False)

    def without(self, calls: Collection[int]) -> Row:
        """Return the same without these calls."""
        wrong = {i: each for i, each in self.wrong.items() if i not in calls}
        return replace(self, wrong=wrong, asked=self.asked - set(calls))

    def of(self, calls: Set[int]) -> Row:
        """Return the same, asked these calls alone."""
        return self.without(self.asked - calls)

    def id(self, mutant: int) -> str:
        """Return the misconception of a mutant."""
        return self.recording.mutants[mutant].id

    def silent(self, mutant: int, call: int) -> bool:
        """Return whether a mutant answers a call as the reference does; or as chance will have
        it.
        """
        return not self.recording.speaks[mutant] >> call & 1

    def varies(self, mutant: int, call: int) -> bool:
        """Return whether a mutant's answer says nothing: chance decides it, or both raise something
        that nobody knows.
        """
        place = self.recording.mutants[mutant].answers[call]
        if place is None:
            return True
        seen = self.written.get(call)
        is_other = seen is not None and seen.found.raised == "other"
        return is_other and self.recording.replies[call][place].raised == "other"

    def explains(self, mutant: int, call: int) -> bool:
        """Return whether a mutant answers a call that is to be explained as the attempt does; or as
        chance will have it.
        """
        if call not in self.wrong:
            return False
        return self.varies(mutant, call) or self.is_as(mutant, call)

    def is_as(self, mutant: int, call: int) -> bool:
        """Return whether a mutant is known to answer a call as the attempt does."""
        place = self.recording.mutants[mutant].answers[call]
        return place is not None and self._is_alike(call, place)

    def structure(self, call: int, reply: ReplyFingerprint) -> tuple[object, ...]:
        """Return what of a reply to a call is compared, but for its numbers."""
        if reply.raised:
            return (reply.raised,)
        facets = (f for f in facets_of(self.recording, call) if f not in _NUMBERS)
        cut = frozenset(name for name, gradient in reply.gradients.items() if gradient is None)
        return (cut, *(repr(getattr(reply, facet)) for facet in facets))

    def allows(self, mutant: int) -> bool:
        """Return whether a mutant answers every call that is asked as the attempt or as the
        reference does.
        """
        speaks = self.recording.speaks[mutant]  # first, for there no numbers are compared
        return not speaks & self._right and all(
            self.explains(mutant, i) for i in self.asked if speaks >> i & 1
        )

    @cached_property
    def _right(self) -> int:
        return sum(1 << i for i in self.asked - self.wrong.keys())

    def digest(self) -> str:
        """Return a digest of the wrong answers, which two attempts share that differ from the
        reference alike; "" for none.

        Two digits of a few numbers of each: rounding seldom decides them, and two mistakes never
        share all.
        """
        plain = [(i, e.found) for i, e in sorted(self.wrong.items()) if not e.call.random]
        numbers = [
            [(o.kind, o.shape, *map("{:.1e}".format, o.projections[:1])) for o in found.outputs]
            for _, found in plain
        ]
        told = [
            (i, self.structure(i, found), each)
            for (i, found), each in zip(plain, numbers, strict=True)
        ]
        return hashlib.sha256(repr(told[:MOST]).encode()).hexdigest()[:DIGITS] if told else ""

    def _is_alike(self, call: int, place: int) -> bool:
        alike = self._alike.get((call, place))
        if alike is None:
            mine, reply = self.written[call].found, self.recording.replies[call][place]
            alike = self._alike[call, place] = reply.agrees(mine, facets_of(self.recording, call))
        if alike or not self.by_kind:
            return alike
        one, other = self.written[call].found.raised, self.recording.replies[call][place].raised
        return bool(one and other and one.split()[:2] == other.split()[:2])
