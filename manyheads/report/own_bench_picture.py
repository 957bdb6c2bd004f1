"""What `course bench EXERCISE` measured as one PNG: a panel for each measurement. Needs matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ..tools.own_bench import MeasuredExercise
from .matplotlib_needed import need_matplotlib
from .own_bench import UNITS, amount_of

# A colour, a mark and a dash for each line: nobody needs the colours, which Okabe and Ito chose for the colour-blind.
_STYLES = (("#0072b2", "o", "-"), ("#d55e00", "^", "--"), ("#009e73", "s", ":"), ("#cc79a7", "D", "-."))
_WIDE, _HIGH, _COLUMNS = 6.5, 4.2, 2  # inches of a panel


def png(where: str, measured: Sequence[MeasuredExercise]) -> bytes:
    """The picture: both axes grow by factors, so that what grows twice as fast is twice as steep."""
    need_matplotlib()
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, len(measured))
    rows = -(-len(measured) // columns)
    figure = Figure(figsize=(_WIDE * columns, _HIGH * rows), layout="constrained")
    figure.suptitle(where, fontsize=10)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax, each in zip(panels, measured, strict=False):
        _draw(ax, each)
    for ax in panels[len(measured) :]:
        ax.set_axis_off()
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, facecolor="white")
    return out.getvalue()


def _draw(ax: Any, each: MeasuredExercise) -> None:
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    for i, (name, points) in enumerate(each.lines.items()):
        colour, mark, dash = _STYLES[i % len(_STYLES)]
        shown = [(point.value, amount) for point in points if (amount := amount_of(each, point))]
        if shown:
            ax.plot(*zip(*shown, strict=True), color=colour, marker=mark, linestyle=dash, label=name)
    values = [point.value for point in next(iter(each.lines.values()))]
    ax.set_xticks(values, [str(value) for value in values])
    ax.minorticks_off()
    ax.set_title(f"{each.exercise.title}: {each.measurement.title}", fontsize=10, fontweight="bold")
    ax.set_xlabel(each.measurement.label or each.measurement.over, fontsize=9)
    ax.set_ylabel(UNITS[each.measurement.measures], fontsize=9)
    ax.tick_params(labelsize=8)
    ax.grid(alpha=0.25)
    ax.legend(fontsize=8)
