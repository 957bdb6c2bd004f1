"""What is found about an attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..result import Diagnosed


@dataclass(frozen=True)
class Diagnosis:
    """What is found about an attempt.

    Attributes:
        named: the misconceptions that explain it, most likely first; empty if everything passed or nothing explains it.
        also: what is proved, but does not explain why the values are wrong, which nothing does.
    """

    named: tuple[Diagnosed, ...] = ()
    also: tuple[Diagnosed, ...] = ()

    @property
    def every(self) -> tuple[Diagnosed, ...]:
        """All that is found."""
        return (*self.named, *self.also)

    def changed(self, change: Callable[[tuple[Diagnosed, ...]], tuple[Diagnosed, ...]]) -> Diagnosis:
        """Return the same with more to tell of each."""
        return Diagnosis(change(self.named), change(self.also))


NOTHING = Diagnosis()
