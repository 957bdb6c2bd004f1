"""A claim about a course, with its figures."""

from __future__ import annotations

from dataclasses import dataclass

SECRET = b"verify"  # used in place of the course's secret, so that a claim gives the same result on every machine
SHOWN = 10  # how many failures of a claim are listed


@dataclass(frozen=True)
class Claim:
    """`held` of `total` cases hold. The claim is kept if at least `share` of them do.

    failures: the cause of each case that does not hold. next: what to do if the claim is not kept.
    """

    about: str
    says: str
    held: int
    total: int
    failures: tuple[str, ...] = ()
    share: float = 1.0
    next: str = "course verify"

    @property
    def kept(self) -> bool:
        """Whether enough cases hold."""
        return self.held >= self.share * self.total

    @property
    def figures(self) -> str:
        """How many cases hold, and if not all do, how many must."""
        found = f"{self.held} of {self.total}"
        return found if self.held == self.total else f"{found}, at least {self.share:.0%} asked"

    @property
    def lines(self) -> list[str]:
        """What is wrong, and what to do; empty if the claim is kept."""
        if self.kept:
            return []
        more = len(self.failures) - SHOWN
        return [*self.failures[:SHOWN], *([f"and {more} more"] if more > 0 else []), f"Next: {self.next}"]
