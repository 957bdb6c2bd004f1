"""Draw PNGs: bands of heatmaps, measurements, training curves. Needs matplotlib, which only commands that draw need."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from operator import attrgetter
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from ..errors import CourseFault
from ..student.bench_settings import ITEM_SIZES, LESSON_DEVICE, Bench, BenchRow
from ..student.measure_own import MeasuredExercise
from ..student.plot_content import HIDDEN, Band, Panel
from ..student.training_plan import Curve
from .bench_tables import UNITS, amount_of, bench_heading, three_digits, title_of
from .heatmap import FEW, heading, is_no_difference, limits, number

# matplotlib, which only the commands that draw need.


def need_matplotlib() -> None:
    """Import it. Raises CourseFault if it is not installed. Call it before minutes of measuring.

    Where no home can be written, it keeps its fonts in a temporary folder, and would say so in two lines of its own.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise CourseFault("pictures need matplotlib, which is not installed. Next: pip install matplotlib") from None


def _figure(width: float, height: float) -> Any:
    """Return an empty figure, of so many inches. Raises CourseFault where matplotlib is not installed."""
    need_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _saved(figure: Any) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, facecolor="white")
    return out.getvalue()


# Bands of heatmaps as one PNG. Needs matplotlib, which only the commands that draw need.

# Colour maps that colour-blind readers can read: from dark to light, for differences two colours around white.
_MAPS = {"numbers": "viridis", "weights": "cividis", "mask": "Greys_r", "difference": "PuOr"}
_HIDDEN_GREY = "#d0d0d0"
_CELL, _NARROW, _WIDE = 0.38, 1.6, 4.4  # inches: a cell, and the least and most width of a panel


def png(bands: Sequence[Band], title: str) -> bytes:
    """Return the picture. Raises CourseFault where matplotlib is not installed."""
    heights, widest = [_height(band) for band in bands], max(map(_width, bands))
    figure = _figure(widest, sum(heights) + 0.5)
    figure.suptitle(title, fontsize=12, fontweight="bold")
    places = figure.subfigures(len(bands), 1, height_ratios=heights, squeeze=False)[:, 0]
    for place, band in zip(places, bands, strict=True):
        rest = max(widest - _width(band), 0.01)  # an empty part, so that cells stay square
        _draw_band(place.subfigures(1, 2, width_ratios=[_width(band), rest])[0], band)
    return _saved(figure)


def _height(band: Band) -> float:
    tallest = max((panel.values.shape[0] for panel in band.panels if panel.values is not None), default=4)
    return max(_NARROW, min(tallest * _CELL, _WIDE)) + 1.0


def _width(band: Band) -> float:
    """Return the width of a band in inches, with room for labels and scales."""
    widest = max((panel.values.shape[1] for panel in band.panels if panel.values is not None), default=4)
    return len(band.panels) * (max(_NARROW, min(widest * _CELL, _WIDE)) + 0.6) + 1.2


def _draw_band(row: Any, band: Band) -> None:
    row.suptitle(band.title, fontsize=10, x=0.01, ha="left")
    axes = row.subplots(1, len(band.panels), squeeze=False)[0]
    drawn: dict[str, list[tuple[Any, Any]]] = {}
    for ax, panel in zip(axes, band.panels, strict=True):
        ax.set_title(heading(panel), fontsize=9)
        if panel.values is None:
            ax.axis("off")
            ax.text(0.5, 0.5, panel.note, ha="center", va="center", fontsize=8, wrap=True, transform=ax.transAxes)
            continue
        image = _draw(ax, panel, limits(band, panel))
        _label(ax, band, panel, first=ax is axes[0])
        if panel.kind != "mask" and not is_no_difference(panel):
            drawn.setdefault(panel.kind, []).append((image, ax))
    for images in drawn.values():
        bar = row.colorbar(images[-1][0], ax=[ax for _, ax in images], fraction=0.05, pad=0.02)
        bar.ax.tick_params(labelsize=7)


def _draw(ax: Any, panel: Panel, scale: tuple[float, float]) -> Any:
    from matplotlib import colormaps

    assert panel.values is not None
    values = panel.values.double()
    shown = torch.where(values.isfinite() & (values > HIDDEN), values, torch.nan)
    colours = colormaps[_MAPS[panel.kind]].with_extremes(bad=_HIDDEN_GREY)
    image = ax.imshow(shown.numpy(), cmap=colours, vmin=scale[0], vmax=scale[1], aspect="auto")
    if max(values.shape) <= FEW:
        _write_numbers(ax, panel, values, image)
    return image


def _write_numbers(ax: Any, panel: Panel, values: Tensor, image: Any) -> None:
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            text = number(value, panel)
            red, green, blue, _ = image.cmap(image.norm(value)) if value > HIDDEN else (0.8, 0.8, 0.8, 1)
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            ax.text(j, i, text, ha="center", va="center", fontsize=6, color="white" if dark else "black")


def _label(ax: Any, band: Band, panel: Panel, *, first: bool) -> None:
    ax.set_xlabel(band.columns, fontsize=8)
    if first:
        ax.set_ylabel(band.rows, fontsize=8)
    ax.tick_params(labelsize=7)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.yaxis.get_major_locator().set_params(integer=True)
    if panel.values is not None and panel.values.shape[0] == 1:  # else its ticks stand at parts of the row
        ax.set_yticks([0])
    if band.labels:
        ax.set_xticks(range(len(band.labels)), band.labels)
        ax.set_yticks(range(len(band.labels)), band.labels)


# The figures of `course bench` as one PNG: times by length, and memory. Needs matplotlib.

# A colour and a mark for each: colour-blind readers can distinguish all three colours, and nobody needs them.
_PATHS = (("by hand", attrgetter("by_hand"), "#b35806", "o"), ("SDPA", attrgetter("sdpa"), "#3b4cc0", "^"))
_GREY = "#808080"


def bench_png(bench: Bench) -> bytes:
    """Return the picture: forward above, forward and backward below; a panel of times and one of memory for each dtype."""
    figure = _figure(15, 7.5)
    figure.suptitle(bench_heading(bench), fontsize=11, fontweight="bold")
    panels = figure.subplots(2, 2 * len(ITEM_SIZES), squeeze=False)
    for i, backward in enumerate((False, True)):
        for j, dtype in enumerate(ITEM_SIZES):
            rows = [r for r in bench.rows if (r.setting.dtype, r.setting.backward) == (dtype, backward)]
            _times(panels[i][2 * j], rows)
            _memory(panels[i][2 * j + 1], rows)
    return _saved(figure)


def _times(ax: Any, rows: Sequence[BenchRow]) -> None:
    _prepare(ax, title_of(rows[0].setting), "T", "ms (median)", [row.setting.T for row in rows], 8)
    ax.margins(0.12, 0.18)
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
    _prepare(ax, title_of(rows[0].setting), "T", "MB", [row.setting.T for row in rows], 8)
    ax.margins(0.12, 0.18)
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


def _prepare(ax: Any, title: str, across: str, up: str, values: Sequence[int], size: int, **style: Any) -> None:
    """Let both axes grow by factors, with a tick at each value. size: of the letters."""
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_title(title, fontsize=size + 1, **style)
    ax.set_xlabel(across, fontsize=size)
    ax.set_ylabel(up, fontsize=size)
    ax.set_xticks(values, [str(value) for value in values])
    ax.minorticks_off()
    ax.tick_params(labelsize=size - 1)
    ax.grid(alpha=0.25)


# What `course bench EXERCISE` measured as one PNG: a panel for each measurement. Needs matplotlib.

# A colour, a mark and a dash for each line: nobody needs the colours, which Okabe and Ito chose for the colour-blind.
_STYLES = (("#0072b2", "o", "-"), ("#d55e00", "^", "--"), ("#009e73", "s", ":"), ("#cc79a7", "D", "-."))
_PANEL_WIDE, _HIGH, _COLUMNS = 6.5, 4.2, 2  # inches of a panel


def own_bench_png(where: str, measured: Sequence[MeasuredExercise]) -> bytes:
    """Return the picture: both axes grow by factors, so that what grows twice as fast is twice as steep."""
    columns = min(_COLUMNS, len(measured))
    rows = -(-len(measured) // columns)
    figure = _figure(_PANEL_WIDE * columns, _HIGH * rows)
    figure.suptitle(where, fontsize=10)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax, each in zip(panels, measured, strict=False):
        _draw_measured(ax, each)
    for ax in panels[len(measured) :]:
        ax.set_axis_off()
    return _saved(figure)


def _draw_measured(ax: Any, measured: MeasuredExercise) -> None:
    of, values = measured.measurement, [point.value for point in next(iter(measured.lines.values()))]
    title, across = f"{measured.exercise.title}: {of.title}", of.label or of.over
    _prepare(ax, title, across, UNITS[of.measures], values, 9, fontweight="bold")
    for i, (name, points) in enumerate(measured.lines.items()):
        colour, mark, dash = _STYLES[i % len(_STYLES)]
        shown = [(point.value, amount) for point in points if (amount := amount_of(measured, point))]
        if shown:
            ax.plot(*zip(*shown, strict=True), color=colour, marker=mark, linestyle=dash, label=name)
    ax.legend(fontsize=8)


# The curves of the student and the reference as one PNG. Needs matplotlib.

YOURS, REFERENCE = "#0072b2", "#d55e00"  # Okabe and Ito's blue and vermilion: the colour-blind can distinguish them
SMOOTH = 10  # how many steps are averaged


def training_png(yours: Curve, reference: Curve, title: str) -> bytes:
    """Loss by step: a line for the training loss, marks for the held-out loss."""
    figure = _figure(7.5, 4.5)
    ax = figure.subplots()
    # The reference is broad, with squares; yours is narrow, with circles: nobody needs the colours.
    shown = ("reference", reference, REFERENCE, 4.0, "s"), ("yours", yours, YOURS, 1.6, "o")
    for name, curve, colour, width, mark in shown:
        ax.plot(*smoothed(curve), color=colour, linewidth=width, alpha=0.9)
        ax.plot(*zip(*sorted(curve.held_out.items()), strict=True) if curve.held_out else ((), ()), mark, color=colour,
                markersize=width + 3, markerfacecolor="white", label=f"{name}, writing")  # fmt: skip
        ax.plot([], [], color=colour, linewidth=width, label=f"{name}, learning")
    ax.set_title(title, fontsize=11, fontweight="bold")
    ax.set_xlabel("step")
    ax.set_ylabel("loss (lower is better)")
    ax.grid(alpha=0.25)
    ax.legend(fontsize=8)
    return _saved(figure)


def smoothed(curve: Curve) -> tuple[list[float], list[float]]:
    """Return (steps, losses), each loss averaged over SMOOTH steps."""
    starts = range(0, curve.steps, SMOOTH)
    parts = [curve.losses[start : start + SMOOTH] for start in starts]
    return [start + (len(part) + 1) / 2 for start, part in zip(starts, parts, strict=True)], [fmean(p) for p in parts]
