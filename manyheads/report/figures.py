"""Draw bands of heatmaps as PNGs. Needs matplotlib, which only commands that draw need."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..errors import CourseFault
from ..student.plot_content import HIDDEN, Band, Panel
from .heatmap import FEW, heading, is_no_difference, limits, number

# matplotlib, which only the commands that draw need.


def need_matplotlib() -> None:
    """Import it. Raises CourseFault if it is not installed.

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
