"""Find the attention weights of each head of a student's module among the operations of a traced
call.

Weights are recognised by their values, not by a name: a (T, T) or (T_q, T_k) table with
non-negative rows that sum to one, including later changes of it. If there is no such table, the
output of a softmax is used. In a sequence of calls the table grows to the right: new queries × all
keys so far.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ..box.worker.answers import Step, Traced
from ..box.worker.messages import Returned
from ..course.shapes import Axis
from ..judge.axes import Axes
from .example import Example, by_name

_ROUNDING = 1e-3
_TOKENS = Axis(("T",))


def weights_by_call(example: Example, traced: Traced) -> list[Tensor | None]:
    """Return the weights that each call computed, (nh, new queries, keys so far) of the first
    sequence; None where none were found.
    """
    sides = sides_of(example)
    return [_of_call(example, traced, sides, number) for number in range(len(sides))]


def sides_of(example: Example) -> list[tuple[int, int]]:
    """Return (new queries, all keys so far) of each call; empty if the signature does not say which
    argument holds the tokens.
    """
    tokens = example.axes.sizes.get("T", 0)
    if not example.call.then:
        return [(example.axes.sizes.get("T_q", tokens), example.axes.sizes.get("T_k", tokens))]
    named = example.signature.call if example.signature else ()
    shapes = {p.name: p.shape for p in named if p.shape and _TOKENS in p.shape}
    sides: list[tuple[int, int]] = []
    for step in example.call.steps:
        arguments = by_name(example.names, step.args, step.kwargs)
        counts = (
            v.shape[shapes[k].index(_TOKENS)]
            for k, v in arguments.items()
            if k in shapes and isinstance(v, Tensor)
        )
        if not (new := next(counts, 0)):
            return []
        past = max(
            (sides[value.step][1] for value in arguments.values() if isinstance(value, Returned)),
            default=0,
        )
        sides.append((new, past + new))
    return sides


def shows_a_triangle(example: Example) -> bool:
    """Return whether a later call has several new tokens, whose first ones must not see the
    last.
    """
    return any(1 < new < keys for new, keys in sides_of(example))


def _of_call(
    example: Example, traced: Traced, sides: list[tuple[int, int]], number: int
) -> Tensor | None:
    """Return the weights of one call.

    Who keeps the tokens in place of keys may compute all rows again: the last ones are new.
    """
    new, keys = sides[number]
    # another table may be the same: a single key has the weight 1
    if keys < 2 or keys == example.axes.sizes.get("hd"):
        return None
    weights = _weights_at(traced, example.axes, (new, keys), sides[:number].count((new, keys)))
    if weights is not None or (keys, keys) in sides:
        return weights
    full_weights = _weights_at(
        traced, example.axes, (keys, keys), sum(k == keys for _, k in sides[:number])
    )
    return None if full_weights is None else full_weights[:, -new:]


def _weights_at(traced: Traced, axes: Axes, sides: tuple[int, int], earlier: int) -> Tensor | None:
    tables = list(_tables(traced, axes, sides, earlier))
    weights = next(
        (t for _, t in tables if (t >= 0).all() and ((t.sum(-1) - 1).abs() < _ROUNDING).all()), None
    )
    if weights is None:
        weights = next((table for step, table in tables if step.name.lower() == "softmax"), None)
    if weights is None:
        return None
    return next(table for _, table in reversed(tables) if table.shape == weights.shape)


def _tables(
    traced: Traced, axes: Axes, sides: tuple[int, int], earlier: int
) -> Iterator[tuple[Step, Tensor]]:
    for index in dict.fromkeys(traced.order):
        step = traced.steps[index]
        shape = step.outputs[0].shape if step.outputs else ()
        if shape[-2:] != sides or not step.crops or not step.crops[0].is_floating_point():
            continue
        if any(crop.shape[-2:] != sides for crop in step.crops):
            continue
        table = _of_first_sequence(step, shape, axes, earlier)
        if table is not None:
            yield step, table


def _of_first_sequence(
    step: Step, shape: tuple[int, ...], axes: Axes, earlier: int
) -> Tensor | None:
    batch, heads = axes.sizes.get("B", 1), axes.sizes.get("nh", 1)
    if len(shape) == 4:
        return step.crops[earlier] if shape[1] == heads and earlier < len(step.crops) else None
    if earlier:  # of a loop, too few runs are kept to tell one call from the next
        return None
    if len(shape) == 3 and shape[0] in (heads, batch * heads) and (shape[0] != batch or heads == 1):
        return step.crops[0][:heads]
    if len(shape) == 3 and shape[0] == batch:  # a loop over heads
        return torch.stack([crop[0] for crop in step.crops[:heads]])
    # a loop over sequences and heads
    return torch.stack(step.crops[:heads]) if len(shape) == 2 else None
