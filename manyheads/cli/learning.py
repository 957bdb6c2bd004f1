"""Show how a language model learns, while it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from ..training.curve import Curve

_LINE_EVERY = 100  # steps between two lines without a terminal


def show_learning(console: Console, learning: Iterator[Curve], total: int, reference: Curve | None = None) -> Curve:
    """Show the progress, beside the reference's where it is known. Returns the whole curve. Raises TrainingStopped."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("step"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=total)
        said = 0
        for curve in learning:
            beside = "" if reference is None else f", the reference {reference.recent(curve.steps):.2f}"
            losses = f"loss {curve.recent():.2f}{beside}"
            bar.update(task, completed=curve.steps, description=losses)
            if not console.is_terminal and curve.steps // _LINE_EVERY > said:
                said = curve.steps // _LINE_EVERY
                console.print(f"step {curve.steps} of {total}: {losses}", soft_wrap=True)
    return curve
