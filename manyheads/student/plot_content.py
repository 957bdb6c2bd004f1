"""The content of `course plot`: the expected values, the student's and the difference, head by head, as bands of tables.

A panel is a table; a band is panels side by side, with the picture in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..box.worker.answers import Raised, Traced
from ..checks.explain import explain, is_undefined, says_unwritten
from .example import Example
from .heads import weights_by_call, weights_of

HIDDEN = -1e4  # a score this low counts as −∞
NONE = 1e-4  # a difference this small counts as rounding
Kind = Literal["numbers", "weights", "mask", "difference"]
APART = "yours − expected"


@dataclass(frozen=True)
class Panel:
    """A table to draw. `values`: None if there is nothing to show; then `note` says why."""

    title: str
    values: Tensor | None  # (rows, columns)
    kind: Kind = "numbers"
    note: str = ""


@dataclass(frozen=True)
class Band:
    """Panels side by side. Panels of one kind share a scale. labels: the names of rows and of columns, if they have any."""

    title: str
    panels: tuple[Panel, ...]
    rows: str
    columns: str
    labels: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the band has numbers of the student that are not the expected ones."""
        last = self.panels[-1]
        return last.kind == "difference" and last.values is not None and not is_none(last.values)


def is_none(apart: Tensor) -> bool:
    """Return whether this difference is only rounding."""
    return not bool(apart.isnan().any() or (apart.abs() > NONE).any())


def compared(title: str, wanted: Tensor, mine: Tensor, kind: Kind, rows: str, columns: str) -> Band:
    """Return a band of the expected values, the student's and the difference."""
    apart = Panel(APART, difference(mine, wanted), "difference")
    return Band(title, (Panel("expected", wanted, kind), Panel("yours", mine, kind), apart), rows, columns)


def difference(found: Tensor, expected: Tensor) -> Tensor:
    """Return found − expected; zero where both are hidden, NaN where only one is hidden."""
    a, b = (t.double() for t in (found, expected))
    hidden = (a < HIDDEN) & (b < HIDDEN)
    apart = a - b
    return torch.where(hidden, 0.0, torch.where(apart.isfinite() & (apart.abs() < -HIDDEN), apart, torch.nan))


def summary(shown: Sequence[Band]) -> list[str]:
    """Return the picture in words, a line for each band, for readers who cannot see it."""
    return [f"{band.title}: {_in_words(band)}" for band in shown]


def _in_words(band: Band) -> str:
    last = band.panels[-1]
    if last.kind != "difference":
        return f"{len(band.panels)} head{'' if len(band.panels) == 1 else 's'}"
    if last.values is None:
        return next((panel.note for panel in band.panels if panel.note), "nothing to compare")
    one_sided = int(last.values.isnan().sum())
    if one_sided:
        return f"{one_sided} of {last.values.numel()} numbers are hidden in one of the two only"
    if is_none(last.values):
        return "as expected"
    if band.panels[0].kind == "mask":
        return f"{int(last.values.count_nonzero())} of {last.values.numel()} differ"
    return f"the largest difference is {float(last.values.abs().max()):.2g}"


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
    note = "yours is no tensor" if found is None else f"yours has the shape {example.axes.shape(found.shape)}"
    if raised is not None:
        note, heads = _stopped(raised), 1  # of what gave no answer one head says it all
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
