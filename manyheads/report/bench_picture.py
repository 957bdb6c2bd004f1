"""The figures of `course bench` as one PNG: times by length, and memory. Needs matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from ..tools.bench import ITEM_SIZES, LESSON_DEVICE, Bench, BenchRow
from .bench import heading, three_digits, title_of
from .matplotlib_needed import need_matplotlib

# A colour and a mark for each: colour-blind readers can distinguish all three colours, and nobody needs them.
_PATHS = (("by hand", attrgetter("by_hand"), "#b35806", "o"), ("SDPA", attrgetter("sdpa"), "#3b4cc0", "^"))
_GREY = "#808080"


def png(bench: Bench) -> bytes:
    """The picture: forward above, forward and backward below; a panel of times and one of memory for each dtype."""
    need_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 7.5), layout="constrained")
    figure.suptitle(heading(bench), fontsize=11, fontweight="bold")
    panels = figure.subplots(2, 2 * len(ITEM_SIZES), squeeze=False)
    for i, backward in enumerate((False, True)):
        for j, dtype in enumerate(ITEM_SIZES):
            rows = [r for r in bench.rows if (r.setting.dtype, r.setting.backward) == (dtype, backward)]
            _times(panels[i][2 * j], rows)
            _memory(panels[i][2 * j + 1], rows)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, facecolor="white")
    return out.getvalue()


def _times(ax: Any, rows: Sequence[BenchRow]) -> None:
    _prepare(ax, rows, "ms (median)")
    lesson = [(row.setting.T, row.lesson) for row in rows if row.lesson]
    for i, (name, path, colour, mark) in enumerate(_PATHS):
        ours = [(row.setting.T, path(row).time) for row in rows if path(row)]
        _line(ax, ours, color=colour, marker=mark, label=name)
        theirs = [(T, both[i].time) for T, both in lesson]
        label = f"{name}, the lesson's {LESSON_DEVICE}"
        _line(ax, theirs, color=colour, marker=mark, markerfacecolor="white", linestyle=":", label=label)
    for row in rows:
        if row.faster and row.by_hand:
            at = (row.setting.T, row.by_hand.time)
            ax.annotate(f"{row.faster:.1f}×", at, (0, 7), textcoords="offset points", ha="center", fontsize=8)
    ax.legend(fontsize=7, loc="upper left")


def _memory(ax: Any, rows: Sequence[BenchRow]) -> None:
    _prepare(ax, rows, "MB")
    matrices = [(row.setting.T, row.setting.matrix / 1e6) for row in rows]
    _line(ax, matrices, color=_GREY, linestyle="--", label="one (B, nh, T, T) matrix")
    for name, path, colour, mark in _PATHS:
        peaks = [(row.setting.T, path(row).peak / 1e6) for row in rows if path(row) and path(row).peak]
        _line(ax, peaks, color=colour, marker=mark, label=f"{name}, at its peak")
    for T, size in matrices:
        at = (T, size)
        ax.annotate(three_digits(size), at, (5, -9), textcoords="offset points", fontsize=7, color=_GREY)
    ax.legend(fontsize=7, loc="upper left")


def _line(ax: Any, points: Sequence[tuple[float, float]], **style: Any) -> None:
    if points:
        ax.plot(*zip(*points, strict=True), linewidth=1.5, markersize=5, **style)


def _prepare(ax: Any, rows: Sequence[BenchRow], unit: str) -> None:
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.margins(0.12, 0.18)
    ax.set_title(title_of(rows[0].setting), fontsize=9)
    ax.set_xlabel("T", fontsize=8)
    ax.set_ylabel(unit, fontsize=8)
    ax.set_xticks([row.setting.T for row in rows], [str(row.setting.T) for row in rows])
    ax.minorticks_off()
    ax.tick_params(labelsize=7)
    ax.grid(alpha=0.25)
