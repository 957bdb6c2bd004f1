"""Withhold from evidence what an attempt may have chosen as a message: sizes and numbers that its calls did not contain.

An attempt knows its hidden inputs, and chooses the shape of what it returns. A report that repeats "(3, 7, 12345)" carries
digits of those inputs out. So a size is told as a number only if the call or the expected shape contains it, if it is no
larger than their sizes, or if it is a product of two of them. Any other is "another size"; and where an attempt returns
one, no larger number of the evidence is told, for it may be derived from it. A factor ("1.253e+45 times") is told where it
is one that a mistake makes: a power of ten or two, a quotient of small numbers, or one of the call's sizes, or of its root;
else it is "another multiple of".

This is for grading. On a student's own machine `course check` has no hidden inputs, and shows every number.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement

from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.transcript import Exchange

ANOTHER = "another size"
_WHOLE_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w%]|\.\d)")
_SHAPE = re.compile(r"([(\[])(\d+(?:, (?:\d+|…))*),?([)\]])")
_FACTOR = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:e[+-]?\d+)?) times\b")
ANOTHER_MULTIPLE = "another multiple of"
NEAR = 0.006  # of a factor that is written with three digits
_MORE_AXES = 2  # than any tensor of the call or the expected one has: an axis too many is a mistake, ten are a message
MOST_SIZES = 12  # of a call, of which factors are made
_SMALL = (2, 3, 4)  # layers that may be packed into one weight


def withhold(evidence: str, exchanges: Sequence[Exchange], expected: Sequence[int] = ()) -> str:
    """Return the evidence of a failed check without what the attempt chose.

    exchanges: the calls of this check, with their replies. expected: sizes that the evidence states as right.
    """
    calls = [shape for exchange in exchanges for shape in _given(exchange.call)]
    known = {size for shape in calls for size in shape} | set(expected)
    most, axes = max(known, default=0), max([len(expected), *map(len, calls)]) + _MORE_AXES
    sizes = sorted(size for size in known if 1 < size < 1 << 20)
    products = {a * b for a, b in combinations_with_replacement(sizes, 2)} | {
        n * size for n in _SMALL for size in sizes
    }
    returned = [shape for exchange in exchanges for shape in _returned(exchange.reply)]
    chosen = {size for shape in returned for size in shape if size > most}
    strange = bool(chosen - products)
    too_many = any(len(shape) > axes for shape in returned)

    def number(match: re.Match[str]) -> str:
        size = int(match[0])
        if size <= most or size in known | products or not (size in chosen or strange):
            return match[0]
        return ANOTHER if size in chosen else "…"

    def shape(match: re.Match[str]) -> str:
        sizes = match[2].split(", ")
        return match[0] if len(sizes) <= axes or not too_many else f"{match[1]}{', '.join(sizes[:axes])}, …{match[3]}"

    factors = _factors(sizes)

    def factor(match: re.Match[str]) -> str:
        told = float(match[1])
        near = min(factors, key=lambda each: abs(each - told))
        return f"{near:.4g} times" if abs(near - told) <= NEAR * told else ANOTHER_MULTIPLE

    return _WHOLE_NUMBER.sub(number, _SHAPE.sub(shape, _FACTOR.sub(factor, evidence)))


def _factors(sizes: Sequence[int]) -> set[float]:
    """Return the factors that mistakes make of these sizes. They are few, so that a chosen one carries a few bits at most."""
    sizes = [1, *sizes][:MOST_SIZES]
    quotients = {factor for size in sizes for factor in (float(size), 1 / size)}
    roots = {math.sqrt(a / b) for a in sizes for b in sizes}
    simple = {a / b for a in range(1, 7) for b in range(1, 7)}
    powers = {float(base) ** power for base in (2, 10) for power in range(-9, 10)}
    return quotients | roots | simple | powers


def _given(value: object) -> Iterator[tuple[int, ...]]:
    match value:
        case Tensor():
            yield tuple(value.shape)
        case int() if not isinstance(value, bool):
            yield (value,)
        case Call():
            yield from _given((*value.given, *value.cotangents))
        case Mapping():
            yield from _given((*value.values(),))
        case list() | tuple():
            for part in value:
                yield from _given(part)
        case _ if dataclasses.is_dataclass(value):
            yield from _given([getattr(value, field.name) for field in dataclasses.fields(value)])


def _returned(reply: Reply) -> Iterator[tuple[int, ...]]:
    yield from (output.shape for output in reply.outputs if output.shape is not None)
    yield from (tuple(gradient.shape) for gradient in reply.gradients.values() if gradient is not None)
    for facts in reply.modules:
        for entries in (facts.parameters, facts.buffers, facts.plain):
            yield from (entry.shape for entry in entries.values())
        yield from ((value,) for value in facts.attributes.values() if isinstance(value, int))
    if reply.operations is not None:
        yield from ((size,) for size in reply.operations.made)
        yield from reply.operations.shapes
    if reply.peak is not None:
        yield (reply.peak,)
