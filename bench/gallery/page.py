"""docs/gallery.md: its table stands between two marks, and a new measurement takes its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..peers.page import rewrite
from ..places import REPOSITORY
from ..table import table
from .costs import Cost, Gallery, last, last_step
from .entries import RIGHT_ONES, WRONG_ONES, title

DOCS = REPOSITORY / "docs"
DATA, PAGE, PICTURE = (DOCS / f"gallery.{ending}" for ending in ("json", "md", "png"))
SAMPLES = ("right", "scale_sqrt_c", "scale_missing", "gradient_cut", "wrong_view", "mask_missing", "softmax_query_axis")
CHARACTERS = 88  # of each
HEAD = ("misconception", "what the grader says", "learning", "writing", "beside the right one", "in a trained model")


def rewrite_page(gallery: Gallery, page: Path = PAGE) -> None:
    """Put the measurement into the page."""
    rewrite("gallery", measured(gallery), page)


def measured(gallery: Gallery) -> str:
    """The table, what stands beneath it, and what some of them write."""
    rows = [_right_row(gallery, i) for i in range(len(RIGHT_ONES))]
    rows += [_row(cost) for cost in gallery.costs()]
    seeds, steps = len(gallery.of(RIGHT_ONES[0])), max(last_step(run) for run in gallery.runs)
    beneath = (
        f"Means of {seeds} seeds after {steps} steps; in brackets the least and the most. Other first weights move the right "
        f"one by up to {gallery.luck:.3f}. What is no more than that, or differs in sign from seed to seed, counts as not "
        "measurable."
    )
    written = "\n".join(f"    {name:22}{text}" for name, text in _written(gallery))
    return f"{table(HEAD, rows)}\n\n{beneath}\n\nHow some of them go on after “Alice ”:\n\n{written}\n\n{gallery.made}"


def _written(gallery: Gallery) -> Iterator[tuple[str, str]]:
    for entry in (RIGHT_ONES[0], *WRONG_ONES):
        if entry.id in SAMPLES:
            yield entry.id, " ".join(gallery.of(entry)[0].text.split())[:CHARACTERS]


def _right_row(gallery: Gallery, place: int) -> tuple[str, ...]:
    runs = gallery.of(RIGHT_ONES[place])
    learning, writing = (sum(last(getattr(r, name)) for r in runs) / len(runs) for name in ("learning", "writing"))
    name = "(none)" if not place else f"(none, dropout {RIGHT_ONES[place].dropout})"
    return f"**{name}**", "", f"**{learning:.2f}**", f"**{writing:.2f}**", "", ""


def _row(cost: Cost) -> tuple[str, ...]:
    inside = cost.transplanted
    return (
        f"`{cost.entry.id}`" + (f" (dropout {cost.entry.dropout})" if cost.entry.dropout else ""),
        title(cost.entry),
        f"{cost.learning:.2f}",
        f"{cost.writing:.2f}",
        beside(cost),
        "–" if inside is None else f"{inside:.2f}",
    )


def beside(cost: Cost) -> str:
    """Such as "+0.21 (+0.18 to +0.24)", or that nothing can be measured."""
    low, high = (signed(pick(cost.differences)) for pick in (min, max))
    if cost.measurable:
        return f"**{signed(cost.apart)}** ({low} to {high})"
    return f"nothing measurable ({low} to {high})"


def signed(number: float) -> str:
    """With its sign: +0.21, −0.03."""
    return f"{number:+.2f}".replace("-", "−")
