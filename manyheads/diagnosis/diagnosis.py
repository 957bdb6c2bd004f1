"""What is found about an attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..result import Diagnosed


@dataclass(frozen=True)
class Diagnosis:
    """What is found about an attempt.

    Attributes:
        named: the misconceptions that explain it, most likely first; empty if everything passed or nothing explains it.
        also: what is proved, but does not explain why the values are wrong, which nothing does.
        together: the ids, among those named, that explain the values only together, as two mistakes.
    """

    named: tuple[Diagnosed, ...] = ()
    also: tuple[Diagnosed, ...] = ()
    together: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[Diagnosed, ...]:
        """All that is found."""
        return (*self.named, *self.also)

    def changed(self, change: Callable[[tuple[Diagnosed, ...]], tuple[Diagnosed, ...]]) -> Diagnosis:
        """Return the same with more to tell of each."""
        return replace(self, named=change(self.named), also=change(self.also))

    def of_one_mistake(self) -> Diagnosis:
        """Return the same without what takes two mistakes: one edit of the text makes every check pass."""
        return replace(self, named=tuple(d for d in self.named if d.id not in self.together), together=())


NOTHING = Diagnosis()
