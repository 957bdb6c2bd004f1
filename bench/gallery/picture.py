"""docs/gallery.png: a panel for each misconception, the right one's curve in all of them. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from .costs import Cost, Gallery, at_each, last
from .page import PICTURE, signed
from .runs import Run

COLUMNS = 5
WRONG, RIGHT, GREY = "#d55e00", "#000000", "#555555"  # vermilion beside black: apart for the colour-blind, and in grey
MOST = 4.0  # the highest loss that is shown
APART = 0.4  # losses that are further apart have room for their names


def draw(gallery: Gallery, path: Path = PICTURE) -> None:
    """Write the figure."""
    from matplotlib.figure import Figure

    costs = gallery.costs()
    rows = math.ceil((len(costs) + 1) / COLUMNS)
    figure = Figure(figsize=(3.1 * COLUMNS, 2.5 * rows + 0.7), layout="constrained")
    title = "What a silent misconception costs: loss by step, beside the right one"
    figure.suptitle(title, fontsize=14, fontweight="bold")
    panels = figure.subplots(rows, COLUMNS, sharex=True, sharey=True, squeeze=False)
    for i, ax in enumerate(panels.flat):
        if i < len(costs):
            _panel(ax, costs[i])
            ax.tick_params(labelbottom=i + COLUMNS >= len(costs), labelsize=8)
        else:
            ax.axis("off")
    _key(panels.flat[len(costs)])
    for row in panels:
        row[0].set_ylabel("loss", fontsize=9)
    figure.supxlabel("step", fontsize=9)
    figure.savefig(path, format="png", dpi=100, facecolor="white", metadata={"Software": None})


def _panel(ax: Any, cost: Cost) -> None:
    ax.set_title(cost.entry.id, fontsize=9.5, loc="left", fontweight="bold")
    words, colour = (signed(cost.apart), WRONG) if cost.measurable else ("no cost seen", GREY)
    ax.set_title(words, fontsize=9, loc="right", color=colour)
    _curve(ax, cost.right, RIGHT, 1.3)
    _curve(ax, cost.runs, WRONG, 1.8)
    learning = at_each(cost.runs, "learning")
    ax.plot(sorted(learning), [fmean(learning[s]) for s in sorted(learning)], color=WRONG, linewidth=1.2, linestyle=":")
    ax.set_ylim(0.0, MOST)
    ax.grid(alpha=0.25)
    right = fmean(last(run.writing) for run in cost.right)
    named = [("in writing", cost.writing, WRONG), ("while learning", cost.learning, WRONG), ("right", right, RIGHT)]
    for text, loss, colour in named:
        if all(other == text or abs(loss - at) > APART for other, at, _ in named):
            _name(ax, text, loss, colour, max(cost.runs[0].writing))


def _curve(ax: Any, runs: Sequence[Run], colour: str, width: float) -> None:
    """The mean of all seeds in a band from the least to the most."""
    writing = at_each(runs, "writing")
    steps = sorted(writing)
    low, high = ([pick(writing[step]) for step in steps] for pick in (min, max))
    ax.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(steps, [fmean(writing[step]) for step in steps], color=colour, linewidth=width)


def _name(ax: Any, text: str, loss: float, colour: str, end: int) -> None:
    """Beside the line itself; at the upper edge, with its number, where it has left the panel."""
    shown, place = (text, (-3, 3)) if loss < MOST else (f"{text} ↑ {loss:.1f}", (-3, -10))
    at = (end, min(loss, MOST))
    ax.annotate(shown, at, place, textcoords="offset points", ha="right", fontsize=8, color=colour)


def _key(ax: Any) -> None:
    """What the lines are, in the first free place."""
    ax.plot([], [], color=RIGHT, linewidth=1.3, label="the right one, in writing")
    ax.plot([], [], color=WRONG, linewidth=1.8, label="the wrong one, in writing")
    ax.plot([], [], color=WRONG, linewidth=1.2, linestyle=":", label="the wrong one, while learning")
    ax.legend(loc="center left", fontsize=9, frameon=False)
