"""Resize a call: find which of its sizes are axes and which are products of axes, and make the call with other sizes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call, Entries, Returned, StandIn

LAYERS = (2, 3, 4)  # how many layers may be packed into one weight
Axes = dict[int, int]  # the new size of each axis, by its size in the original call


def asks_again(call: Call) -> bool:
    """Return whether one instance is asked several times and no step is given what an earlier one returned."""
    values = (value for step in call.then for value in (*step.args, *step.kwargs.values()))
    return bool(call.then) and not any(isinstance(value, Returned) for value in values)


@dataclass(frozen=True)
class Layout:
    """How the sizes of a call are composed of axes. No two axes of the call have the same size."""

    call: Call
    factors: Mapping[
        int, tuple[int, ...]
    ]  # of each size: the axes whose product it is; plain numbers in the product are negative

    @property
    def axes(self) -> list[int]:
        """The axes, shortest first."""
        return sorted({axis for factors in self.factors.values() for axis in factors if axis > 0})

    def at(self, axes: Axes) -> Call:
        """Return the call with these axes and random tensors, without gradients, in float32."""
        drawn = torch.Generator().manual_seed(0)

        def filled(like: Tensor) -> Tensor:
            shape = [self._size(n, axes) for n in like.shape]
            is_mask = not like.is_floating_point()  # one that hides nothing
            return torch.ones(shape, dtype=like.dtype) if is_mask else torch.randn(shape, generator=drawn) / 2

        resized: Call = _mapped(self.call, lambda n: self._size(n, axes), filled)
        return dataclasses.replace(resized, cotangent=None, second=False, watch=False, runs=1, dtype="float32")

    def _size(self, number: int, axes: Axes) -> int:
        return math.prod(-f if f < 0 else axes[f] for f in self.factors[number]) if number > 1 else number


def layouts(call: Call) -> Iterator[Layout]:
    """Yield the possible layouts of the call: each size is an axis, or one size is a multiple of another."""
    given, in_weights = _sizes(call)
    yield Layout(call, _factors(given, in_weights, {}))
    for small, large in combinations(sorted(given), 2):
        if large % small == 0 and large // small != small:
            yield Layout(call, _factors(given, in_weights, {large: (small, large // small)}))


def _factors(given: set[int], in_weights: set[int], known: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    factors: dict[int, tuple[int, ...]] = {}
    for number in [*sorted(given), *sorted(in_weights - given)]:
        product = ((a, b) for a, b in combinations(sorted(factors), 2) if a * b == number)
        several = (
            (-n, number // n) for n in LAYERS if number not in given and number % n == 0 and number // n in given
        )
        parts = known.get(number) or next(product, None) or next(several, None) or (number,)
        factors[number] = tuple(f for part in parts for f in factors.get(part, (part,)))
    return factors


def _sizes(call: Call) -> tuple[set[int], set[int]]:
    """Return the sizes above 1 in a call's arguments, and those in the weights that come with them."""
    given: set[int] = set()
    weights: set[int] = set()
    for value in call.given:
        if isinstance(value, Build):
            given.update(n for n in (*value.args, *value.kwargs.values()) if type(n) is int)
            weights.update(n for t in (value.state or {}).values() for n in t.shape)
        elif isinstance(value, StandIn):
            given.update(n for n in value.attributes.values() if type(n) is int)
            weights.update(n for t in value.linears.values() for n in t.shape)
        elif isinstance(value, Tensor):
            given.update(value.shape)
        elif type(value) is int:
            given.add(value)
    return {n for n in given if n > 1}, {n for n in weights if n > 1}


def _mapped(value: Any, size: Callable[[int], int], tensor: Callable[[Tensor], object]) -> Any:
    """Return the call, or a part of it, with `size` applied to every integer and `tensor` to every tensor."""

    def each(part: Any) -> Any:
        return _mapped(part, size, tensor)

    if type(value) is int:
        return size(value)
    if isinstance(value, Tensor | Entries):
        return tensor(value) if isinstance(value, Tensor) else value
    if isinstance(value, Mapping):
        return {name: each(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(each, value))
    if isinstance(value, Build):
        return dataclasses.replace(value, args=each(value.args), kwargs=each(value.kwargs), state=each(value.state))
    if isinstance(value, StandIn):
        return StandIn(each(value.linears), each(value.attributes))
    if isinstance(value, Call):
        return dataclasses.replace(value.map(each), subject=each(value.subject))
    return value
