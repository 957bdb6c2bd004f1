"""The report of `course train` as text: both curves as sparklines, the verdict, and the generated text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.text import Text

from ..student.recorded_training import TrainingVerdict, choices
from ..student.training_plan import Curve

WIDTH, FOLD = 40, 76  # columns of a sparkline, and of the generated text
_BLOCKS = "▁▂▃▄▅▆▇█"


def training_report(yours: Curve, reference: Curve, verdict: TrainingVerdict) -> RenderableType:
    """Return both curves on one scale, and the verdict."""
    both = [("yours", yours), ("reference", reference.until(yours.steps))]
    low, high = (pick(loss for _, curve in both for loss in _buckets(curve.losses)) for pick in (min, max))
    parts: list[RenderableType] = [Text(f"{'':{WIDTH + 13}}{'learning':>9}{'writing':>9}", style="bright_black")]
    for name, curve in both:
        small = spark(_buckets(curve.losses), low, high)
        parts.append(Text(f"  {name:9}  {small:{WIDTH}}{curve.recent():9.2f}{_last(curve):>9}"))
    mark, style = ("✓", "bold green") if verdict.well else ("✗", "bold red")
    return Group(*parts, Text(f"{mark} {verdict.sentence}", style=style), *(Text(line) for line in meaning(yours)))


def meaning(curve: Curve) -> list[str]:
    """Return what the last loss means in characters; empty if there is none."""
    if not curve.held_out:
        return []
    _, loss = max(curve.held_out.items())
    now, first = choices(loss), choices(curve.losses[0])
    return [
        f"A loss of {loss:.2f} means being as unsure as among {now} equally likely characters; at first it was {first}."
    ]


def written_report(text: str) -> RenderableType:
    """Return the generated text, indented and wrapped."""
    lines = [part for line in text.splitlines() for part in wrap(line, FOLD)]
    return Group(Text("It writes:"), *(Text(f"  {line}") for line in lines))


def spark(losses: Sequence[float], low: float, high: float) -> str:
    """Return a sparkline: a column for each loss, higher for a larger loss."""
    span = max(high - low, 1e-9)
    return "".join(_BLOCKS[min(len(_BLOCKS) - 1, int((loss - low) / span * len(_BLOCKS)))] for loss in losses)


def _buckets(losses: Sequence[float]) -> list[float]:
    """Return the averages of at most WIDTH groups of losses, in order."""
    count = min(WIDTH, len(losses))
    edges = [len(losses) * i // count for i in range(count + 1)]
    return [fmean(losses[a:b]) for a, b in pairwise(edges)]


def _last(curve: Curve) -> str:
    return f"{curve.held_out[max(curve.held_out)]:.2f}" if curve.held_out else "–"
