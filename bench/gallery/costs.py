"""What came out: each wrong attempt beside the right one with the same seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from pydantic import BaseModel, ConfigDict

from .entries import RIGHT_ONES, WRONG_ONES, Entry
from .runs import Run


class Gallery(BaseModel):
    """All runs. made: with which command, when and on what."""

    model_config = ConfigDict(frozen=True)

    runs: tuple[Run, ...]
    made: str

    def of(self, entry: Entry) -> list[Run]:
        """A run for each seed, with first weights of the same seed."""
        return [run for run in self.runs if run.id == entry.id and run.seed == run.draws]

    @cached_property
    def luck(self) -> float:
        """How far other first weights take the right one's loss in writing, at most."""
        right = {run.seed: last(run.writing) for run in self.of(RIGHT_ONES[0])}
        others = [run for run in self.runs if run.id == RIGHT_ONES[0].id and run.seed != run.draws]
        return max(abs(last(run.writing) - right[run.seed]) for run in others)

    def cost(self, entry: Entry) -> Cost:
        """What this one costs."""
        right = {run.seed: run for run in self.of(next(one for one in RIGHT_ONES if one.id == entry.right))}
        runs = [run for run in self.of(entry) if not run.stopped]
        return Cost(entry, tuple(runs), tuple(right[run.seed] for run in runs), self.luck)

    def costs(self) -> list[Cost]:
        """Those of all wrong ones that could be trained to the end, the dearest first."""
        found = [cost for cost in map(self.cost, WRONG_ONES) if cost.runs]
        return sorted(found, key=lambda cost: -cost.apart if cost.measurable else 0)


@dataclass(frozen=True)
class Cost:
    """Runs of a wrong attempt and of the right one, seed by seed."""

    entry: Entry
    runs: tuple[Run, ...]
    right: tuple[Run, ...]
    luck: float

    @property
    def differences(self) -> list[float]:
        """In writing, at the end, seed by seed."""
        return [last(a.writing) - last(b.writing) for a, b in zip(self.runs, self.right, strict=True)]

    @property
    def apart(self) -> float:
        """Their mean."""
        return fmean(self.differences)

    @property
    def measurable(self) -> bool:
        """Whether every seed says the same, and more than other first weights would."""
        alike = min(self.differences) > 0 or max(self.differences) < 0
        return alike and abs(self.apart) > self.luck

    @property
    def learning(self) -> float:
        """The loss while learning, at the end."""
        return fmean(last(run.learning) for run in self.runs)

    @property
    def writing(self) -> float:
        """The loss in writing, at the end."""
        return fmean(last(run.writing) for run in self.runs)

    @property
    def transplanted(self) -> float | None:
        """The loss in writing within a model that learned with the right one; None where its weights have no place."""
        found = [run.transplanted for run in self.runs if run.transplanted is not None]
        return fmean(found) if found else None


def last(losses: dict[int, float]) -> float:
    """At the last step."""
    return losses[max(losses)]


def last_step(run: Run) -> int:
    """How far it came."""
    return max(run.writing, default=0)


def at_each(runs: Iterable[Run], name: str) -> dict[int, list[float]]:
    """The losses of that name of all runs, step by step."""
    together: dict[int, list[float]] = {}
    for run in runs:
        for step, loss in getattr(run, name).items():
            together.setdefault(step, []).append(loss)
    return together
