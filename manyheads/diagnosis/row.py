"""The response of an attempt: its replies to the recorded calls, held against the mutants' replies.

The calls whose reply differs from the reference's are the syndrome, which mutants have to explain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from .fingerprint import ReplyFingerprint
from .observe import ObservedReply
from .recording import FaultDictionary, facets_of

MAX_ANSWERS = 12  # wrong replies that the digest is made from
DIGITS = 16  # hexadecimal digits of the digest
_NUMBERS = ("outputs", "gradients", "argument_gradients")


class _Names(frozenset[str]):
    """Names whose repr is the same in every process: digests are made from it."""

    def __repr__(self) -> str:
        return f"frozenset({{{str(sorted(self))[1:-1]}}})" if self else "frozenset()"


@dataclass(frozen=True)
class Response:
    """An attempt's replies to recorded calls. Calls and mutants are given by their index.

    Attributes:
        recording: the fault dictionary.
        written: the replies of functions that the student has written, by call.
        syndrome: the replies among them that differ from the reference's and are to be explained.
        calls: the calls to which a mutant must reply as the attempt or as the reference does.
        by_kind: whether exceptions of one kind match even if their messages name different sizes.
    """

    recording: FaultDictionary
    written: Mapping[int, ObservedReply]
    syndrome: Mapping[int, ObservedReply]
    calls: Set[int]
    by_kind: bool = False
    _alike: dict[tuple[int, int], bool] = field(default_factory=dict, repr=False, compare=False)

    def without(self, calls: Collection[int]) -> Response:
        """Return the response without these calls."""
        syndrome = {i: observation for i, observation in self.syndrome.items() if i not in calls}
        return replace(self, syndrome=syndrome, calls=self.calls - set(calls))

    def subset(self, calls: Set[int]) -> Response:
        """Return the response to these calls alone."""
        return self.without(self.calls - calls)

    def id(self, mutant: int) -> str:
        """Return the misconception of a mutant."""
        return self.recording.mutants[mutant].id

    def survives(self, mutant: int, call: int) -> bool:
        """Return whether a call does not detect a mutant: no difference, or nondeterminism."""
        return not self.recording.detected_in[mutant] >> call & 1

    def is_nondeterministic(self, mutant: int, call: int) -> bool:
        """Return whether a mutant's reply to a call carries no information.

        Either it is random, or the mutant and the attempt both raise an exception of unknown kind.
        """
        index = self.recording.mutants[mutant].answers[call]
        if index is None:
            return True
        observation = self.written.get(call)
        is_other = observation is not None and observation.actual.raised == "other"
        return is_other and self.recording.replies[call][index].raised == "other"

    def explains(self, mutant: int, call: int) -> bool:
        """Return whether a call is in the syndrome and the mutant can have given that reply.

        A nondeterministic reply of the mutant explains any reply.
        """
        if call not in self.syndrome:
            return False
        return self.is_nondeterministic(mutant, call) or self.matches(mutant, call)

    def matches(self, mutant: int, call: int) -> bool:
        """Return whether a mutant's recorded reply to a call is the attempt's."""
        index = self.recording.mutants[mutant].answers[call]
        return index is not None and self._is_alike(call, index)

    def structure(self, call: int, reply: ReplyFingerprint) -> tuple[object, ...]:
        """Return the compared fields of a reply to a call, without its numbers."""
        if reply.raised:
            return (reply.raised,)
        facets = (f for f in facets_of(self.recording, call) if f not in _NUMBERS)
        cut = _Names(name for name, gradient in reply.gradients.items() if gradient is None)
        return (cut, *(repr(getattr(reply, facet)) for facet in facets))

    def is_consistent(self, mutant: int) -> bool:
        """Return whether a mutant replies to each call as the attempt or as the reference does."""
        detections = self.recording.detected_in[mutant]  # first: this needs no numbers
        return not detections & self._passed_bits and all(
            self.explains(mutant, i) for i in self.calls if detections >> i & 1
        )

    @cached_property
    def _passed_bits(self) -> int:
        return sum(1 << i for i in self.calls - self.syndrome.keys())

    def digest(self) -> str:
        """Return a digest of the wrong replies; "" if there are none.

        Attempts that differ from the reference in the same way share it. It includes the first
        number of each output, with two digits: rounding seldom changes these, and two different
        mistakes never share all numbers.
        """
        answers = list[tuple[object, ...]]()
        for i, observation in sorted(self.syndrome.items()):
            if not observation.call.random and len(answers) < MAX_ANSWERS:
                actual = observation.actual
                numbers = [
                    (o.kind, o.shape, *map("{:.1e}".format, o.projections[:1]))
                    for o in actual.outputs
                ]
                answers.append((i, self.structure(i, actual), numbers))
        return hashlib.sha256(repr(answers).encode()).hexdigest()[:DIGITS] if answers else ""

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
