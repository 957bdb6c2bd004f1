"""An attempt's answers to recorded calls, and how the recorded mutants answer beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace

from .comparison import Comparison
from .recording import Content, Fingerprints, RecordedMutant, is_silent, matches


@dataclass(frozen=True)
class Answered:
    """An attempt's answers to recorded calls, which are told by their numbers, as mutants are.

    written: of functions that are written. wrong: those of them that are to be explained, in which it differs from the
    reference. asked: the calls on which a mutant may differ from the reference only as the attempt does.
    """

    fingerprints: Fingerprints
    written: Mapping[int, Comparison]
    wrong: Mapping[int, Comparison]
    asked: Set[int]

    @property
    def content(self) -> Content:
        """What is known of the answers."""
        return self.fingerprints.content

    @property
    def mutants(self) -> tuple[RecordedMutant, ...]:
        """All that are recorded."""
        return self.content.mutants

    def without(self, calls: Collection[int]) -> Answered:
        """Return the same without these calls."""
        wrong = {i: each for i, each in self.wrong.items() if i not in calls}
        return replace(self, wrong=wrong, asked=self.asked - set(calls))

    def explains(self, mutant: int, call: int) -> bool:
        """Return whether a mutant answers a wrong call as the attempt does; or as chance will have it."""
        return call in self.wrong and matches(self.fingerprints, mutant, call, self.wrong[call])

    def allows(self, mutant: int) -> bool:
        """Return whether a mutant answers every call that is asked as the attempt or as the reference does."""
        return all(self.is_silent(mutant, i) or self.explains(mutant, i) for i in sorted(self.asked))

    def is_silent(self, mutant: int, call: int) -> bool:
        """Return whether a mutant answers a call as the reference does; or as chance will have it."""
        return is_silent(self.fingerprints, mutant, call)
