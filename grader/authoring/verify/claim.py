"""One claim about a course, with its figures."""

from __future__ import annotations

from dataclasses import dataclass

SECRET = b"verify"  # in place of the course's own: claims are about everybody's inputs


@dataclass(frozen=True)
class Claim:
    """`held` of `total` cases hold; it is kept if at least `share` of them do.

    failures: a line for each case that does not hold.
    """

    about: str
    says: str
    held: int
    total: int
    failures: tuple[str, ...] = ()
    share: float = 1.0

    @property
    def kept(self) -> bool:
        """Whether enough cases hold."""
        return self.held >= self.share * self.total
