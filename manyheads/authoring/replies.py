"""Different replies to one call, and which of them is the same as another: the search that a release makes most often."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..diagnosis.fingerprint import FACETS, SMALLEST, TOLERANCE, Facet, ReplyFingerprint


class Replies:
    """Replies in the order in which they were added."""

    def __init__(self, facets: tuple[Facet, ...] = FACETS) -> None:
        """facets: in which replies must agree to be the same."""
        self._facets = facets
        self.every: list[ReplyFingerprint] = []
        self._marks: list[tuple[float, float]] = []

    def find(self, found: ReplyFingerprint) -> int | None:
        """The index of the first reply that is the same, numbers to rounding; None if there is none."""
        return next((i for i in self._near(found) if self.every[i].is_same(found, self._facets)), None)

    def keep(self, found: ReplyFingerprint) -> int:
        """The index of the reply that has every number alike, to the last digit; it is added if there is none.

        Being the same to rounding does not carry over from one reply to the next: a chain of them may lead far.
        """
        known = next((i for i in self._near(found) if self.every[i] is found or self.every[i] == found), None)
        return self.add(found) if known is None else known

    def add(self, reply: ReplyFingerprint) -> int:
        """Add a reply. Returns its index."""
        self.every.append(reply)
        self._marks.append(_mark(reply))
        return len(self.every) - 1

    def _near(self, found: ReplyFingerprint) -> Iterator[int]:
        """The indices of the replies whose first number does not tell them from this one: few of hundreds.

        What has no number, or one that is not finite, is near everything.
        """
        number, norm = _mark(found)
        norm = max(norm, SMALLEST)
        for i, (other, size) in enumerate(self._marks):
            if not abs(other - number) > TOLERANCE * (size if size > norm else norm):
                yield i


def _mark(reply: ReplyFingerprint) -> tuple[float, float]:
    """The first number of the first output, and the output's norm: the same replies have them the same, to rounding."""
    first = reply.outputs[0] if reply.outputs and not reply.raised else None
    return (first.projections[0], first.norm) if first and first.projections else (math.nan, 0.0)
