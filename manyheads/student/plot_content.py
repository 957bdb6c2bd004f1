"""The content of `course plot`: the expected values, the student's and the difference, head by head."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..box.worker.answers import Raised, Traced
from ..checks.explain import explain, is_undefined, says_unwritten
from .bands import APART, Band, Kind, Panel, compared, difference, is_none
from .example import Example
from .growing_tables import heads_by_call
from .heads import Heads, heads_of
from .tile_pictures import tile_bands

# By how much a function turns each pair of neighbouring channels, for `course plot`.

_SHORT = 1e-2  # a pair this short has no direction in float32
_ROUNDING = 1e-3


def turns(found: Tensor, given: Tensor) -> Tensor:
    """Return the angle from each pair of `given` to that of `found`: (…, T, hd) → (…, T, hd / 2). Short pairs count as not turned."""
    before, after = _pairs(given), _pairs(found)
    angle = torch.atan2(after[..., 1], after[..., 0]) - torch.atan2(before[..., 1], before[..., 0])
    return torch.where(before.norm(dim=-1) > _SHORT, wrapped(angle), 0.0)


def wrapped(angle: Tensor) -> Tensor:
    """Return the same angle in (−π, π]."""
    turned: Tensor = math.pi - (math.pi - angle).remainder(2 * math.pi)
    return turned


def resized(found: Tensor, given: Tensor) -> Tensor:
    """Return (…, T, hd / 2): which pairs have another length than before. No rotation does that."""
    before, after = (torch.linalg.vector_norm(_pairs(t), dim=-1) for t in (given, found))
    alike: Tensor = (after - before).abs() <= _ROUNDING * (1 + before)  # NaN counts as another length
    return ~alike


def _pairs(values: Tensor) -> Tensor:
    pairs: Tensor = values.double().unflatten(-1, (-1, 2))
    return pairs


HEADS = 4  # the most heads that are shown
_SIDES = ("query position", "key position")
_AXES = {"T_q": "query position", "T_k": "key position", "T": "token"}


def all_bands(shown: Sequence[tuple[Example, Traced]]) -> list[Band]:
    """Return the bands of all traced examples, with fewer heads of each if there are many."""
    heads = HEADS if len(shown) < 4 else 2
    return [band for example, traced in shown for band in bands(example, traced, heads)]


def bands(example: Example, traced: Traced, heads: int = HEADS) -> list[Band]:
    """Return the bands of one example: one for each head if the answer has heads; for a module also its attention weights."""
    shown = [band for part in example.every for band in _of_output(part, traced, heads)]
    shown += [*_angles(example, traced), *tile_bands(example, traced)]
    if not example.has_heads or traced.reply.raised is not None:
        return shown
    return [*shown, *(_growing if example.call.then else _heads)(example, traced)]


def _of_output(example: Example, traced: Traced, heads: int) -> list[Band]:
    """Return the bands of one output of a call."""
    raised, outputs = traced.reply.raised, traced.reply.outputs
    found = None if raised is not None or len(outputs) <= example.place else outputs[example.place].tensor
    if raised is not None:
        note, heads = _stopped(raised), 1  # of what gave no answer one head says it all
    elif found is None:
        note = "yours is no tensor"
    else:
        note = f"yours has the shape {example.axes.shape(found.shape)}"
    return [_compared(example, title, index, found, note) for title, index in _tables(example, heads)]


def _stopped(raised: Raised) -> str:
    """Return what ended the call; where nothing is written yet, nothing went wrong."""
    if is_undefined(raised):
        return "not defined yet"
    if says_unwritten(raised):
        return f"nothing is written {f'on line {raised.line}' if raised.line else 'here'} yet"
    return f"your code {explain(raised)}"


def _compared(example: Example, title: str, index: tuple[int, ...], found: Tensor | None, note: str) -> Band:
    wanted = _table(example.expected, index)
    if found is not None and found.shape == example.expected.shape:
        return compared(title, wanted, _table(found, index), _kind(wanted), *_names(example))
    kind = _kind(wanted)
    panels = Panel("expected", wanted, kind), Panel("yours", None, kind, note), Panel(APART, None, "difference")
    return Band(title, panels, *_names(example))


def _angles(example: Example, traced: Traced) -> list[Band]:
    """By how much each pair of channels of the first sequence and head is turned, if the function turns them."""
    given, outputs = example.before_turning, traced.reply.outputs
    found = outputs[example.place].tensor if traced.reply.raised is None and len(outputs) > example.place else None
    if given is None or found is None or found.shape != given.shape or given.shape[-1] % 2:
        return []
    title, index = f"by how much {example.title} turns each pair, in radians", (0,) * (given.dim() - 2)
    before, wanted, mine = (_table(values, index) for values in (given, example.expected, found))
    angles, changed = turns(wanted, before), resized(mine, before)
    if changed.any():
        note = f"yours is no rotation: {int(changed.sum())} of {changed.numel()} pairs change their length"
        panels = Panel("expected", angles), Panel("yours", None, note=note), Panel(APART, None, "difference")
    else:
        own = turns(mine, before)
        panels = Panel("expected", angles), Panel("yours", own), Panel(APART, wrapped(own - angles), "difference")
    return [Band(title, panels, "token", "pair of neighbouring channels")]


def _table(values: Tensor, index: tuple[int, ...]) -> Tensor:
    """Return the table at this index: (rows, columns), with a single row if there is only one axis."""
    return values[index].reshape(-1, values.shape[-1])


def _tables(example: Example, heads: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return (title, index) of every table of the answer that is shown: the first sequence, head by head."""
    shape, title = example.expected.shape, example.title + (f": {example.label}" if example.label else "")
    if not shape:
        return []
    if len(shape) == 4:
        return [(f"{title}, head {h}", (0, h)) for h in range(min(shape[1], heads))]
    return [(title, (0,) * max(len(shape) - 2, 0))]


def _names(example: Example) -> tuple[str, str]:
    """Return the names of the row and the column axis."""
    if example.signature is None:
        return "", ""
    row, column = (["", "", *(str(axis.factors[0]) for axis in example.returns)])[-2:]
    if row == column:
        return _SIDES
    return _AXES.get(row, row), _AXES.get(column, "channel")


def _kind(values: Tensor) -> Kind:
    if values.dtype is torch.bool:
        return "mask"
    sums = values.double().sum(-1)
    weights = bool((values >= 0).all() and torch.allclose(sums, torch.ones_like(sums), atol=1e-3))
    return "weights" if weights else "numbers"


def _heads(example: Example, traced: Traced) -> list[Band]:
    """Mask, scores and weights of each head beside the reference's; only the student's if the reference's are unknown."""
    heads, wanted = heads_of(traced, example.axes), example.heads
    if heads is None:
        return []
    if wanted is None or wanted.weights.shape != heads.weights.shape:
        return _own_heads(example, heads)
    shown = _masks(example, wanted.weights != 0, heads.weights != 0)
    scores = _scores(wanted, heads)
    for h, (expected, mine) in enumerate(zip(wanted.weights[:HEADS], heads.weights[:HEADS], strict=True)):
        where = f"{example.target}, head {h}"
        if scores is not None:
            shown.append(compared(f"scores in {where}", scores[0][h], scores[1][h], "numbers", *_SIDES))
        title = f"weights in {where}"
        shown.append(compared(title, expected, mine, "weights", *_SIDES, beside=scores is not None))
    return shown


def _scores(wanted: Heads, heads: Heads) -> tuple[Tensor, Tensor] | None:
    """Return the expected and the student's scores, if they can be compared.

    Right weights can come from other numbers than the scores, for example if a softmax is written by hand: no fault.
    """
    if wanted.scores is None or heads.scores is None:
        return None
    alike = is_none(difference(heads.scores, wanted.scores))
    weights_alike = is_none(difference(heads.weights, wanted.weights))
    return None if weights_alike and not alike else (wanted.scores, heads.scores)


def _masks(example: Example, wanted: Tensor, found: Tensor) -> list[Band]:
    """Return which keys each query sees: a single band if that is the same for all heads."""
    pairs = list(zip(wanted, found, strict=True))
    if all(torch.equal(a, wanted[0]) and torch.equal(b, found[0]) for a, b in pairs):
        return [compared(f"mask in {example.target}", wanted[0], found[0], "mask", *_SIDES)]
    return [
        compared(f"mask in {example.target}, head {h}", a, b, "mask", *_SIDES, beside=h % 2 == 1)
        for h, (a, b) in enumerate(pairs[:HEADS])
    ]


def _growing(example: Example, traced: Traced) -> list[Band]:
    """Return which keys the new queries of each call of a sequence see, and one head's weights: the keys grow to the right."""
    calls = heads_by_call(example, traced)
    return [band for number, (each, found) in enumerate(calls, 1) for band in _of_call(number, each, found)]


def _of_call(number: int, example: Example, heads: Heads | None) -> list[Band]:
    wanted, where = example.heads, f"{example.target}, call {number}"
    sides = "new query", "key so far"
    if heads is None:
        return []
    if wanted is None or wanted.weights.shape != heads.weights.shape:
        return [Band(f"your weights in {where}", _by_head(heads.weights, "weights"), *sides)]
    pairs = list(zip(wanted.weights, heads.weights, strict=True))
    head = next((h for h, (a, b) in enumerate(pairs) if not is_none(difference(b, a))), 0)
    a, b = pairs[head]
    return [
        compared(f"mask in {where}, head {head}", a != 0, b != 0, "mask", *sides),
        compared(f"weights in {where}, head {head}", a, b, "weights", *sides, beside=True),
    ]


def _own_heads(example: Example, heads: Heads) -> list[Band]:
    shown = [Band(f"your weights in {example.title}", _by_head(heads.weights, "weights"), *_SIDES)]
    if heads.scores is not None:
        shown.insert(0, Band(f"your scores in {example.title}", _by_head(heads.scores, "numbers"), *_SIDES))
    return shown


def _by_head(tables: Tensor, kind: Kind) -> tuple[Panel, ...]:
    return tuple(Panel(f"head {h}", table, kind) for h, table in enumerate(tables[:HEADS]))
