"""Mutants with a number that nobody can list: a constant in place of a scale, a fill that is too weak.

A family has one mutant for each positive number within its limits. The number is solved for: it is the one whose answers
to a few calls are closest to the attempt's. Whether it explains the attempt is then asked of every call, as of any mutant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.form import OPAQUE
from ..box.worker.messages import Call
from ..checks.asserts import NONE, TOLERANCE, difference
from ..checks.implementation import LocalRunner, Runner
from ..checks.local import CachedRunner
from ..checks.transcript import Exchange

Namespace = Mapping[str, object]

GRID = 24  # numbers that are tried between the limits, evenly in their logarithms
STEPS = 42  # of a golden section between two neighbours of the best: to nine digits
# After so many steps what fits has less than this part left of the error at the neighbours. The error falls in a straight line
# to zero, so that k steps leave at most twice GOLDEN to the power of k.
HOPE = {5: 0.6, 9: 0.1, 14: 0.02}
GOLDEN = (math.sqrt(5) - 1) / 2
FEWEST, FITTED = 4, 3  # numbers in an answer that is fitted, and answers
COMPARED = 96  # the most numbers of an answer that are compared to find the number
# What lies on a curve between two of its points is no further from one of them than they are from each other, or twice as far
# where the curve is bent. What is further away from all points lies on none.
REACH, ROUNDING = 2.0, 1e-9


@dataclass(frozen=True)
class Curve:
    """What the mutants of a grid answer to one call.

    answers: (GRID + 1, N), the numbers that are compared. has_answer: (GRID + 1,) bool; others raise, or have another shape.
    steps: (GRID + 1,), how far each answer is from the further one beside it; 0 where one of the two is none.
    """

    answers: Tensor
    has_answer: Tensor
    steps: Tensor

    def distances(self, other: Tensor) -> Tensor:
        """Return (GRID + 1,): how far each answer is from the other, (N,); infinite where there is none."""
        return _apart(self.answers, other).masked_fill(~self.has_answer, math.inf)

    def may_hold(self, other: Tensor) -> bool:
        """Return whether the other, (N,), may lie between two points."""
        return bool((self.distances(other) <= REACH * self.steps + ROUNDING * (1 + other.norm())).any())


@dataclass(frozen=True, eq=False)
class Family:
    """A misconception, its knobs as a function of one positive number, the limits of that number, and the bank's `make`."""

    id: str
    knobs: Callable[[float], Mapping[str, object]]
    low: float
    high: float
    make: Callable[..., Namespace] = field(repr=False)

    @cached_property
    def grid(self) -> tuple[float, ...]:
        """Logarithms between those of the limits."""
        low, high = math.log(self.low), math.log(self.high)
        return tuple(low + (high - low) * i / GRID for i in range(GRID + 1))

    @cached_property
    def _on_grid(self) -> tuple[Namespace, ...]:
        return tuple(self._mutant(point) for point in self.grid)

    def solve(self, exchanges: Sequence[Exchange], reference: CachedRunner) -> Mapping[str, object] | None:
        """Return the knobs of the mutant whose answers to these calls are closest to the attempt's; None if none comes close.

        None at the limits, too, where a number stands for none: a scale without end is a maximum.
        """
        mine, curves = [], []
        for exchange in exchanges:
            mine.append(_compared(exchange.reply))
            curves.append(reference.replays.kept(self, exchange.call, partial(self._curve, exchange.call, reference)))
            if not curves[-1].may_hold(mine[-1]):
                return None
        apart = torch.stack(
            [_relative(curve.distances(other), other) for curve, other in zip(curves, mine, strict=True)]
        )
        errors: list[float] = apart.sum(0).tolist()
        best = errors.index(min(errors))
        if best in (0, GRID):
            return None
        calls = [e.call for e in exchanges]

        def error(logarithm: float) -> float:
            runner = LocalRunner(self._mutant(logarithm), reference.device, only_values=True)
            return sum(_distance(runner.execute(call), other) for call, other in zip(calls, mine, strict=True))

        around = max(errors[best - 1], errors[best + 1])
        found = _golden(error, self.grid[best - 1], self.grid[best + 1], around)
        return None if found is None else self.knobs(math.exp(found))

    def _mutant(self, logarithm: float) -> Namespace:
        return self.make(**self.knobs(math.exp(logarithm)))

    def _curve(self, call: Call, reference: CachedRunner) -> tuple[Curve, int]:
        """Return the curve, and its bytes. Whole answers of all of the grid would fill a judge's memory."""
        right = _tensor(reference.execute(call))
        runners = [LocalRunner(names, reference.device, only_values=True) for names in self._on_grid]
        found = [_tensor(runner.execute(call)) for runner in runners]
        same = [t is not None and right is not None and t.shape == right.shape for t in found]
        none = torch.zeros(0 if right is None else min(right.numel(), COMPARED), dtype=torch.float64)
        rows = [_some(t) if t is not None and is_same else none for t, is_same in zip(found, same, strict=True)]
        answers, has_answer = torch.stack(rows), torch.tensor(same)
        between = _apart(answers[1:], answers[:-1]).masked_fill(~(has_answer[1:] & has_answer[:-1]), 0.0)
        none_beyond = torch.nn.functional.pad(between, (1, 1))
        return Curve(answers, has_answer, torch.maximum(none_beyond[1:], none_beyond[:-1])), answers.nbytes


def to_fit(exchanges: Sequence[Exchange], reference: Runner) -> tuple[Exchange, ...]:
    """Wrong answers of several finite numbers to calls without gradients, which are not fitted.

    Of different checks: one may ask where the number hardly shows, for example with a softmax that is all or nothing.
    """
    found: dict[str, Exchange] = {}
    for exchange in exchanges:
        if len(found) == FITTED:
            break
        if (
            exchange.check not in found
            and exchange.call.cotangent is None
            and _is_finite_and_wrong(exchange, reference)
        ):
            found[exchange.check] = exchange
    return tuple(found.values())


def _is_finite_and_wrong(exchange: Exchange, reference: Runner) -> bool:
    mine = _tensor(exchange.reply)
    if mine is None or mine.numel() < FEWEST or not bool(mine.isfinite().all()):
        return False
    right = _tensor(reference.execute(exchange.call))
    return right is not None and mine.shape == right.shape and difference(mine, right) > TOLERANCE


def _golden(error: Callable[[float], float], low: float, high: float, around: float) -> float | None:
    """Return where the error is least between two points, if it falls and then rises; None if it hardly falls below `around`."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = error(left), error(right)
    for step in range(STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = error(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = error(right)
        if step in HOPE and not min(at_left, at_right) < HOPE[step] * around:
            return None
    return (low + high) / 2


def _distance(reply: Reply, other: Tensor) -> float:
    """Return how far the answer is from the other, (N,), over what is finite in both; infinite if it has other numbers."""
    mine = _compared(reply)
    return float(_relative(_apart(mine, other), other)) if mine.shape == other.shape else math.inf


def _relative(distances: Tensor, other: Tensor) -> Tensor:
    relative: Tensor = distances / (1 + other.norm())
    return relative


def _apart(some: Tensor, other: Tensor) -> Tensor:
    """Return the distances along the last axis, over what is finite in both."""
    apart: Tensor = torch.linalg.vector_norm((some - other).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0), dim=-1)
    return apart


def _compared(reply: Reply) -> Tensor:
    """Return (N,) float64: the numbers of the answer that are compared; none if it has none."""
    whole = _tensor(reply)
    return torch.zeros(0, dtype=torch.float64) if whole is None else _some(whole)


def _some(whole: Tensor) -> Tensor:
    """Return (N,) float64: some of its numbers, the same ones of all tensors of its size."""
    return whole.flatten()[_places(whole.numel())].double()


@lru_cache(maxsize=256)
def _places(count: int) -> Tensor:
    """Of so many, those that are compared: drawn once, because a regular choice could miss an axis."""
    drawn = torch.randperm(count, generator=torch.Generator().manual_seed(count))
    return drawn[:COMPARED].sort().values


def _tensor(reply: Reply) -> Tensor | None:
    """Return the answer; where it is several, all their numbers in a row. None where one of them has no floating-point numbers."""
    if reply.raised is not None or not reply.outputs:
        return None
    found = [out.tensor for out in reply.outputs if out.kind not in (OPAQUE, NONE)]
    tensors = [tensor for tensor in found if tensor is not None and tensor.is_floating_point()]
    if not found or len(tensors) < len(found):
        return None
    return tensors[0] if len(found) == len(reply.outputs) == 1 else torch.cat([tensor.flatten() for tensor in tensors])
