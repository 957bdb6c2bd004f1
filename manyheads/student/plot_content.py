"""The content of `course plot`: the expected values, the student's and the difference, head by head."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..box.worker.answers import Raised, Traced
from ..checks.explain import explain, is_undefined, says_unwritten
from .bands import APART, Band, Kind, Panel, compared
from .example import Example
from .heads import weights_by_call, weights_of

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
    if not example.has_heads or traced.reply.raised is not None:
        return shown
    if not example.call.then:
        own = [(example.title, weights_of(traced, example.axes), _SIDES)]
    else:
        calls = enumerate(weights_by_call(example, traced), 1)
        own = [(f"{example.target}, call {n}", found, ("new query", "key so far")) for n, found in calls]
    for where, found, sides in own:
        if found is not None:
            panels = tuple(Panel(f"head {h}", table, "weights") for h, table in enumerate(found[:HEADS]))
            shown.append(Band(f"your weights in {where}", panels, *sides))
    return shown


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
    kind = _kind(wanted)
    if found is not None and found.shape == example.expected.shape:
        return compared(title, wanted, _table(found, index), kind, *_names(example))
    panels = Panel("expected", wanted, kind), Panel("yours", None, kind, note), Panel(APART, None, "difference")
    return Band(title, panels, *_names(example))


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
