"""The curves of the student and the reference as one PNG. Needs matplotlib."""

from __future__ import annotations

import io
from statistics import fmean

from ..training.curve import Curve
from .matplotlib_needed import need_matplotlib

YOURS, REFERENCE = "#0072b2", "#d55e00"  # Okabe and Ito's blue and vermilion: the colour-blind can distinguish them
SMOOTH = 10  # how many steps are averaged


def png(yours: Curve, reference: Curve, title: str) -> bytes:
    """Loss by step: a line for the training loss, marks for the held-out loss."""
    need_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
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
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, facecolor="white")
    return out.getvalue()


def smoothed(curve: Curve) -> tuple[list[float], list[float]]:
    """(steps, losses), each loss averaged over SMOOTH steps."""
    starts = range(0, curve.steps, SMOOTH)
    parts = [curve.losses[start : start + SMOOTH] for start in starts]
    return [start + (len(part) + 1) / 2 for start, part in zip(starts, parts, strict=True)], [fmean(p) for p in parts]
