"""Bands of heatmaps as one PNG. Needs matplotlib, which only the commands that draw need."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..tools.bands import HIDDEN, Band, Frame, Panel
from .matplotlib_needed import need_matplotlib
from .panels import FEW, heading, is_no_difference, limits, number

# Colour maps that colour-blind readers can read: from dark to light, for differences two colours around white.
_MAPS = {"numbers": "viridis", "weights": "cividis", "mask": "Greys_r", "difference": "PuOr"}
_HIDDEN_GREY = "#d0d0d0"
_CELL, _NARROW, _WIDE = 0.38, 1.6, 4.4  # inches: a cell, and the least and most width of a panel


def png(bands: Sequence[Band], title: str) -> bytes:
    """The picture. Raises CourseFault where matplotlib is not installed."""
    need_matplotlib()
    from matplotlib.figure import Figure

    rows = _rows(bands)
    heights = [max(map(_height, row)) for row in rows]
    widest = max(sum(map(_width, row)) for row in rows)
    figure = Figure(figsize=(widest, sum(heights) + 0.5), layout="constrained")
    figure.suptitle(title, fontsize=12, fontweight="bold")
    places = figure.subfigures(len(rows), 1, height_ratios=heights, squeeze=False)[:, 0]
    for place, row in zip(places, rows, strict=True):
        widths = [_width(band) for band in row]
        widths.append(max(widest - sum(widths), 0.01))  # an empty part, so that cells stay square
        parts = place.subfigures(1, len(widths), width_ratios=widths, squeeze=False)[0]
        for part, band in zip(parts, row, strict=False):
            _draw_band(part, band)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, facecolor="white")
    return out.getvalue()


def _rows(bands: Sequence[Band]) -> list[list[Band]]:
    """The bands of each row."""
    rows: list[list[Band]] = []
    for band in bands:
        if rows and band.beside:
            rows[-1].append(band)
        else:
            rows.append([band])
    return rows


def _height(band: Band) -> float:
    tallest = max((panel.values.shape[0] for panel in band.panels if panel.values is not None), default=4)
    return max(_NARROW, min(tallest * _CELL, _WIDE)) + 1.0


def _width(band: Band) -> float:
    """The width of a band in inches, with room for labels and scales."""
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
    for frame in panel.frames:
        _draw_frame(ax, frame)
    if max(values.shape) <= FEW and not panel.frames:
        _write_numbers(ax, panel, values, image)
    return image


def _draw_frame(ax: Any, frame: Frame) -> None:
    """The frame, and its word on white, since the cells behind it may have several colours."""
    from matplotlib.patches import Rectangle

    corner = frame.left - 0.5, frame.top - 0.5
    ax.add_patch(Rectangle(corner, frame.width, frame.height, fill=False, edgecolor="black", linewidth=1.4))
    middle = corner[0] + frame.width / 2, corner[1] + frame.height / 2
    behind = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "edgecolor": "black", "linewidth": 0.6}
    ax.text(*middle, frame.word, ha="center", va="center", fontsize=8, bbox=behind)


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
    if band.column_labels:
        slanted = {"rotation": 60, "ha": "right"} if max(map(len, band.column_labels)) > 1 else {}
        ax.set_xticks(range(len(band.column_labels)), band.column_labels, **slanted)
    if band.row_labels:
        ax.set_yticks(range(len(band.row_labels)), band.row_labels)
