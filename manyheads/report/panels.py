"""What PNG and SVG pictures share: a panel's heading, its scale, and the numbers in its cells."""

from __future__ import annotations

import torch

from ..tools.bands import HIDDEN, NONE, Band, Panel, is_none

FEW = 8  # numbers are written into cells if there are at most this many in a row


def heading(panel: Panel) -> str:
    """The panel's title, with what the colours do not show."""
    if panel.values is None:
        return panel.title
    if is_no_difference(panel):
        return f"{panel.title}: none"
    hidden = panel.kind == "numbers" and bool((panel.values < HIDDEN).any())
    return f"{panel.title} (grey: {panel.grey})" if hidden else panel.title


def is_no_difference(panel: Panel) -> bool:
    """Whether this is a difference without any difference."""
    return panel.kind == "difference" and panel.values is not None and is_none(panel.values)


def number(value: float, panel: Panel) -> str:
    """The number of a cell, in a few characters."""
    if value != value:
        return "≠" if panel.kind == "difference" else "NaN"
    if value < HIDDEN:
        return "−∞"
    if panel.kind == "mask":
        return "1" if value else "0"
    if value == 0 or (panel.kind == "difference" and abs(value) < NONE):
        return "0"
    if abs(value) < 0.005:
        return "≈0"
    shown = f"{value:.0f}" if panel.kind == "difference" and value in (-1, 1) else f"{value:.2f}"
    return shown.replace("-", "−")


def limits(band: Band, panel: Panel) -> tuple[float, float]:
    """The ends of the scale, which panels of one kind share. A difference is symmetric around 0."""
    tables = [p.values.double().flatten() for p in band.panels if p.values is not None and p.kind == panel.kind]
    values = torch.cat(tables)
    values = values[values.isfinite() & (values > HIDDEN)]
    if panel.kind in ("mask", "weights"):
        return 0.0, 1.0
    if panel.kind == "difference":
        largest = float(values.abs().max()) if values.numel() else 0.0
        return (-largest, largest) if largest > NONE else (-1.0, 1.0)
    return (float(values.min()), float(values.max())) if values.numel() else (0.0, 1.0)
