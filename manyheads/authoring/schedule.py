"""Which step of a release a free worker takes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .steps import Asked, Step


@dataclass
class _Work:
    """The steps for one exercise. left: nobody has taken them. missing: how many steps its files still wait for."""

    left: list[Step]
    last: Step
    missing: int
    found: dict[tuple[str, int], Asked] = field(default_factory=dict)  # by the kind of step, and its first mutant
    workers: set[int] = field(default_factory=set)


class Schedule:
    """Hands out steps. A worker stays with its exercise as long as there is work, for it knows the calls already."""

    def __init__(self, steps: Sequence[Sequence[Step]]) -> None:
        """steps: of each exercise, the one that makes its files last."""
        self._works = {
            # The last is ready at once where it needs nothing of others.
            of_one[-1].exercise: _Work(list(of_one[:-1] or of_one), of_one[-1], len(of_one) - 1)
            for of_one in steps
        }

    def next(self, worker: int) -> tuple[Step, list[Asked]] | None:
        """A step, and what it needs of others; None while nothing can be begun."""
        ready = [work for work in self._works.values() if work.left]
        if not ready:
            return None
        # Its own exercise, then one that nobody has, then the one with most left: the largest are begun first.
        work = max(ready, key=lambda work: (worker in work.workers, not work.workers, len(work.left)))
        work.workers.add(worker)
        step = work.left.pop(0)
        return step, [work.found[place] for place in sorted(work.found)] if step == work.last else []

    def done(self, step: Step, found: Asked | None) -> None:
        """Take down that a step is done."""
        work = self._works[step.exercise]
        if found is not None:
            work.found[step.kind, step.mutants.start] = found
        if step == work.last:
            return
        work.missing -= 1
        if not work.missing:
            work.left.append(work.last)
