"""What `course plot` shows: what the reference recorded beside yours beside the difference, and your own heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..box.worker.messages import Traced
from ..judge.explain import explain
from .calls import Look
from .heads import heads_of

HEADS = 4  # that are shown
HIDDEN = -1e4  # a score this low is as good as −∞
NONE = 1e-4  # a difference this small is rounding
Kind = Literal["numbers", "weights", "mask", "difference"]
_APART = "yours − expected"
_AXES = {"T_q": "query position", "T_k": "key position", "T": "token"}


@dataclass(frozen=True)
class Panel:
    """A table to draw. `values`: None where there is nothing to show, and `note` says why."""

    title: str
    values: Tensor | None  # (rows, columns)
    kind: Kind = "numbers"
    note: str = ""


@dataclass(frozen=True)
class Band:
    """Panels side by side. Those of one kind share one scale. labels: of rows and columns, where they have names."""

    title: str
    panels: tuple[Panel, ...]
    rows: str
    columns: str
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()


def all_bands(chosen: Sequence[Look], traced: Sequence[Traced]) -> list[Band]:
    """The bands of all calls, fewer heads of each where there are many."""
    heads = HEADS if len(chosen) < 4 else 2
    return [band for look, each in zip(chosen, traced, strict=False) for band in bands(look, each, heads)]


def bands(look: Look, traced: Traced, heads: int = HEADS) -> list[Band]:
    """The bands of one call: a band a head where the answer has heads; for a module also its own heads."""
    raised = traced.reply.raised
    found = None if raised is not None or not traced.reply.outputs else traced.reply.outputs[0].tensor
    if raised is not None:
        note = f"your code {explain(raised)}"
    elif found is None:
        note = "yours is no tensor"
    else:
        note = f"yours has the shape {look.axes.shape(found.shape)}"
    shown = [_compared(look, title, index, found, note) for title, index in _tables(look, heads)]
    if look.axes.packed and look.expected.dim() and raised is None:
        shown += _own_heads(look, traced)
    return shown


def _compared(look: Look, title: str, index: tuple[int, ...], found: Tensor | None, note: str) -> Band:
    wanted = _table(look.expected, index)
    kind = _kind(wanted)
    if found is None or found.shape != look.expected.shape:
        panels = Panel("expected", wanted, kind), Panel("yours", None, kind, note)
        return Band(title, (*panels, Panel(_APART, None, "difference")), *_names(look))
    mine = _table(found, index)
    panels = Panel("expected", wanted, kind), Panel("yours", mine, kind)
    return Band(title, (*panels, Panel(_APART, difference(mine, wanted), "difference")), *_names(look))


def _table(values: Tensor, index: tuple[int, ...]) -> Tensor:
    """(rows, columns): a single row where there is only one axis."""
    return values[index].reshape(-1, values.shape[-1])


def difference(found: Tensor, expected: Tensor) -> Tensor:
    """found − expected; zero where both are hidden, NaN where only one is."""
    a, b = (t.double() for t in (found, expected))
    hidden = (a < HIDDEN) & (b < HIDDEN)
    apart = a - b
    return torch.where(hidden, 0.0, torch.where(apart.isfinite() & (apart.abs() < -HIDDEN), apart, torch.nan))


def _tables(look: Look, heads: int) -> list[tuple[str, tuple[int, ...]]]:
    """(title, index) of every table that is shown of the answer: the first sequence, by head."""
    shape, title = look.expected.shape, look.title
    if not shape:
        return []
    if len(shape) == 4:
        return [(f"{title}, head {h}", (0, h)) for h in range(min(shape[1], heads))]
    return [(title, (0,) * max(len(shape) - 2, 0))]


def _names(look: Look) -> tuple[str, str]:
    """What rows and columns are."""
    if look.signature is None:
        return "", ""
    row, column = (["", *(str(axis.factors[0]) for axis in look.signature.returns)])[-2:]
    if row == column:
        return "query position", "key position"
    return _AXES.get(row, row), _AXES.get(column, "channel")


def _kind(values: Tensor) -> Kind:
    if values.dtype is torch.bool:
        return "mask"
    sums = values.double().sum(-1)
    weights = bool((values >= 0).all() and torch.allclose(sums, torch.ones_like(sums), atol=1e-3))
    return "weights" if weights else "numbers"


def _own_heads(look: Look, traced: Traced) -> list[Band]:
    found = heads_of(traced, look.axes)
    if found is None:
        return []
    sides = ("query position", "key position")
    shown: list[Band] = []
    if found.scores is not None:
        shown.append(Band(f"your scores in {look.title}", _by_head(found.scores, "numbers"), *sides))
    return [*shown, Band(f"your weights in {look.title}", _by_head(found.weights, "weights"), *sides)]


def _by_head(tables: Tensor, kind: Kind) -> tuple[Panel, ...]:
    return tuple(Panel(f"head {h}", table, kind) for h, table in enumerate(tables[:HEADS]))


def summary(shown: Sequence[Band]) -> list[str]:
    """The picture in words, a line a band, for those who cannot see it."""
    return [f"{band.title}: {_in_words(band)}" for band in shown]


def _in_words(band: Band) -> str:
    last = band.panels[-1]
    if last.kind != "difference":
        return f"{len(band.panels)} heads"
    if last.values is None:
        return next((panel.note for panel in band.panels if panel.note), "nothing to compare")
    astray = int(last.values.isnan().sum())
    if astray:
        return f"{astray} of {last.values.numel()} numbers are hidden in one of the two only"
    largest = float(last.values.abs().max())
    return "as expected" if largest <= NONE else f"the largest difference is {largest:.2g}"
