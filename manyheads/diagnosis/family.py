"""Mutants with a number that nobody can list: a constant in place of a scale, a fill that is too weak.

A family has one mutant for each positive number within its limits. The number is solved for: it is the one whose answer
is closest to the attempt's on one call. Whether it explains the attempt is then asked of every call, as of any mutant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.form import OPAQUE
from ..checks.asserts import NONE, TOLERANCE, difference
from ..checks.implementation import LocalRunner, Runner
from ..checks.local import CachedRunner
from ..checks.recording import Exchange

Namespace = Mapping[str, object]

GRID = 24  # numbers that are tried between the limits, evenly in their logarithms
STEPS = 42  # of a golden section between two neighbours of the best: to nine digits
# After so many steps what fits has less than this part left of the error at the neighbours. The error falls in a straight line
# to zero, so that k steps leave at most twice GOLDEN to the power of k.
HOPE = {5: 0.6, 9: 0.1, 14: 0.02}
GOLDEN = (math.sqrt(5) - 1) / 2
FEWEST, FITTED = 4, 3  # numbers in an answer that is fitted, and answers


@dataclass(frozen=True)
class Family:
    """A misconception, its knobs as a function of one positive number, the limits of that number, and the bank's `make`."""

    id: str
    knobs: Callable[[float], Mapping[str, object]]
    low: float
    high: float
    make: Callable[..., Namespace] = field(repr=False)

    @cached_property
    def grid(self) -> tuple[tuple[float, Namespace], ...]:
        """Logarithms between those of the limits, and their mutants, which are made once: what they answer is remembered."""
        low, high = math.log(self.low), math.log(self.high)
        points = [low + (high - low) * i / GRID for i in range(GRID + 1)]
        return tuple((point, self.make(**self.knobs(math.exp(point)))) for point in points)

    def solve(self, exchanges: Sequence[Exchange], reference: CachedRunner) -> Mapping[str, object] | None:
        """The knobs of the mutant whose answers to these calls are closest to the attempt's; None if none comes close.

        None at the limits, too, where a number stands for none: a scale without end is a maximum.
        """
        errors = [_error(reference.of(names), exchanges) for _, names in self.grid]
        best = errors.index(min(errors))

        def error(logarithm: float) -> float:
            names = self.make(**self.knobs(math.exp(logarithm)))
            return _error(LocalRunner(names, reference.device, only_values=True), exchanges)

        if best in (0, GRID):
            return None
        around = max(errors[best - 1], errors[best + 1])
        found = _golden(error, self.grid[best - 1][0], self.grid[best + 1][0], around)
        return None if found is None else self.knobs(math.exp(found))


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
    """Where the error is least between two points, if it falls and then rises; None if it hardly falls below `around`."""
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


def _error(runner: Runner, exchanges: Sequence[Exchange]) -> float:
    return sum(_distance(runner.execute(e.call), e.reply) for e in exchanges)


def _distance(mine: Reply, other: Reply) -> float:
    """How far the answers are apart, over what is finite in both; infinite if they have other shapes."""
    a, b = _tensor(mine), _tensor(other)
    if a is None or b is None or a.shape != b.shape:
        return math.inf
    apart = (a.double() - b.double()).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    return float(apart.norm() / (1 + b.double().norm()))


def _tensor(reply: Reply) -> Tensor | None:
    """The answer; where it is several, all their numbers in a row. None where one of them has no floating-point numbers."""
    if reply.raised is not None or not reply.outputs:
        return None
    found = [out.tensor for out in reply.outputs if out.kind not in (OPAQUE, NONE)]
    tensors = [tensor for tensor in found if tensor is not None and tensor.is_floating_point()]
    if not found or len(tensors) < len(found):
        return None
    return tensors[0] if len(found) == len(reply.outputs) == 1 else torch.cat([tensor.flatten() for tensor in tensors])
