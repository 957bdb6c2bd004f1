"""Find sizes that are read off the wrong axis: call the attempt where two of its axes have the same size.

An attempt that is right there, and raises wherever all sizes differ, takes one of the two for the other. What it answers
there says more: exceptions many mistakes have in common, and fewer the sizes at which there is an answer, and which one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from torch import Tensor

from ..box.worker.messages import Build, StandIn
from ..checks.explain import is_refusal, kind_of
from ..checks.implementation import Runner
from ..checks.transcript import BatchRunner, Exchange
from .agree import agree
from .fixed_sizes import are_right, ask, others, templates
from .resize import Axes, Layout

WRONG_AXIS = "size_wrong_axis"
SMALL = 3  # a mask of a fixed size has an answer here, whatever else is wrong with it
DRAWS = (0, 1)  # of sizes that all differ: whoever is right by chance is not so twice


def how_it_fails(reference: Runner, exchanges: Sequence[Exchange]) -> Literal["", "raised", "shape", "values"]:
    """Return how the wrong answers differ: all are exceptions, or have another shape at least, or one has other values.

    A refusal counts as another value. "" if no answer is wrong. Stops at the first one with other values.
    """
    found: Literal["", "raised", "shape"] = ""
    for exchange in exchanges:
        right = reference.execute(exchange.call)
        if agree(exchange.reply, right):
            continue
        if exchange.reply.raised is not None:
            if is_refusal(exchange.reply.raised):
                return "values"
            found = found or "raised"
        elif [out.shape for out in exchange.reply.outputs] == [out.shape for out in right.outputs]:
            return "values"
        else:
            found = "shape"
    return found


@dataclass(frozen=True)
class EqualSizes:
    """What an attempt that raises answers at other sizes, and whether it is right where some two axes are equally long.

    answers: exchanges of no check, any of which a mutant must answer as the attempt did.
    """

    works: bool = False
    answers: tuple[Exchange, ...] = ()


def ask_where_sizes_are_equal(subject: BatchRunner, reference: Runner, exchanges: Sequence[Exchange]) -> EqualSizes:
    """Ask the attempt where two axes of its tensors are equally long, and where all sizes differ, which must be wrong.

    Where one axis is short, too: what has a fixed size raises elsewhere, and has there an answer with its other faults. And
    where one axis has a single place, if nothing else has an answer: many mistakes raise alike, and few answer alike there.

    Only calls that raise while they compute, or answer in another shape, are tried, and nothing more is asked after one
    that works. Raises AttemptEnded.
    """
    wrong = [e for e in exchanges if e.reply.raised is None or e.reply.raised.stage == "call"]
    asked: list[Exchange] = []
    works = False
    for layout in templates(reference, wrong):
        apart = ask(subject, [layout.at(others(layout, (), skip)) for skip in DRAWS])
        if any(are_right(reference, apart)):
            continue
        axes = _axes_of_tensors(layout)
        asked += [*apart, *ask(subject, [layout.at(others(layout, ()) | {axis: SMALL}) for axis in axes])]
        pairs = list(combinations(axes, 2))
        for skip in DRAWS:
            pairs, tied = _working(subject, reference, layout, pairs, skip)
            asked += tied
        works = bool(pairs)
        if works:
            break
        if all(e.reply.raised for e in asked):
            asked += ask(subject, [layout.at(others(layout, ()) | {axis: 1}) for axis in axes])
    return EqualSizes(works, tuple(e for e in asked if _says_something(e, reference)))


def _says_something(exchange: Exchange, reference: Runner) -> bool:
    """Return whether a mutant can be held to this reply: to a call that is allowed, with no exception of a kind of its own."""
    raised = exchange.reply.raised
    known = raised is None or is_refusal(raised) or kind_of(raised) is not None
    return known and reference.execute(exchange.call).raised is None


def _working(
    subject: BatchRunner, reference: Runner, layout: Layout, pairs: Sequence[tuple[int, int]], skip: int
) -> tuple[list[tuple[int, int]], list[Exchange]]:
    """Return the pairs of axes with which the attempt is right where both have one size, in one way or the other; and all answers.

    Where it is right, too, when the two sizes change places, the size of one of them decides, not that they are equal.
    """
    ways = [(pair, layout.at(sizes)) for pair in pairs for sizes in _tied(layout, pair, skip)]
    tied = ask(subject, [call for _, call in ways])
    works = {pair for (pair, _), is_right in zip(ways, are_right(reference, tied), strict=True) if is_right}
    found = [pair for pair in pairs if pair in works]
    swapped = ask(subject, [layout.at(_exchanged(layout, pair, skip)) for pair in found])
    left = [pair for pair, is_right in zip(found, are_right(reference, swapped), strict=True) if not is_right]
    return left, [*tied, *swapped]


def _axes_of_tensors(layout: Layout) -> list[int]:
    """Return the axes that tensors have: a longest context is the size of a mask at most, which nobody reads off a tensor."""
    tensors: list[Tensor] = []
    for value in layout.call.given:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, Build):
            tensors += [t for t in (value.state or {}).values() if isinstance(t, Tensor)]
        elif isinstance(value, StandIn):
            tensors += value.linears.values()
    sizes = {n for tensor in tensors for n in tensor.shape if n > 1}
    return [axis for axis in layout.axes if any(axis in layout.factors[n] for n in sizes)]


def _tied(layout: Layout, pair: tuple[int, int], skip: int) -> Iterator[Axes]:
    """Sizes that differ but for these two: both as the one, or both as the other, for one may have to stay below a third."""
    sizes = others(layout, (), skip)
    for axis in pair:
        yield sizes | dict.fromkeys(pair, sizes[axis])


def _exchanged(layout: Layout, pair: tuple[int, int], skip: int) -> Axes:
    """Sizes that all differ, in which these two have changed places."""
    sizes, (one, other) = others(layout, (), skip), pair
    return sizes | {one: sizes[other], other: sizes[one]}
