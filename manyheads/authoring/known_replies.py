"""The different replies to every recorded call, as the fingerprint file stores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..diagnosis.fingerprint import ReplyFingerprint
from .answers import Answers
from .aspects import Broken
from .replies import Replies

Places = tuple[int | None, ...]  # for each call the index of its reply, None where chance or rounding decides it


class KnownReplies:
    """The different replies to every call, each stored once: a mutant differs from the reference on a few calls only."""

    def __init__(self, right: Sequence[ReplyFingerprint]) -> None:
        self._known = [Replies() for _ in right]
        for known, each in zip(self._known, right, strict=True):
            known.add(each)

    @property
    def replies(self) -> tuple[tuple[ReplyFingerprint, ...], ...]:
        """For each call its different replies, the reference's first."""
        return tuple(tuple(known.every) for known in self._known)

    def add_all(self, answers: Answers) -> Iterator[tuple[Places, Broken]]:
        """Store the mutants' replies. Yields for each its replies by index, and where it is not as the reference.

        A reply that rounding decides is no reply, unless another mutant gives it for sure; what it breaks differs from
        processor to processor, too. What chance decides is drawn from the call's seed, and is the same everywhere.
        """
        for mutant in answers.mutants:
            places = tuple(self._place(answers, call, place) for call, place in enumerate(mutant.places))
            of_rounding = {i for i, place in enumerate(places) if place is None and mutant.places[i] is not None}
            yield places, frozenset(each for each in mutant.broken if of_rounding.isdisjoint(each[1]))

    def _place(self, answers: Answers, call: int, place: int | None) -> int | None:
        """The index of the reply. Numbers are compared to rounding, so that every processor stores the same replies."""
        if not place:
            return place
        if place < 0:
            return self._known[call].find(answers.unsure[call][-1 - place])
        found = answers.sure[call][place - 1]
        known = self._known[call].find(found)
        return self._known[call].add(found) if known is None else known
