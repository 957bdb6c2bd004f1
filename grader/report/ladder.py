"""The ladder of exercises as text, and the checklist of the one that is next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .words import points

State = Literal["done", "in progress", "untouched", "missing"]
_MARKS: dict[State, tuple[str, str]] = {
    "done": ("✓", "green"),
    "in progress": ("…", "yellow"),
    "untouched": ("·", "bright_black"),
    "missing": ("?", "red"),
}


@dataclass(frozen=True)
class Rung:
    """One exercise. `checklist`: what its visible checks ask, and whether the attempt does that."""

    stem: str
    title: str
    state: State
    score: float
    max_score: float
    checklist: tuple[tuple[str, bool], ...] = ()


def ladder(rungs: Sequence[Rung]) -> RenderableType:
    """Every exercise, the points so far, and what is left to do in the first that is not done."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for rung in rungs:
        mark, style = _MARKS[rung.state]
        passed = sum(does for _, does in rung.checklist)
        state = f"in progress, {passed} of {len(rung.checklist)} checks" if rung.state == "in progress" else rung.state
        score = points(rung.score) if rung.state in ("done", "in progress") else "–"
        table.add_row(
            Text(mark, style=style),
            Text(rung.stem, style=style),
            rung.title,
            Text(f"{score} / {points(rung.max_score)}", justify="right"),
            Text(state, style=style),
        )
    total = f"{points(sum(r.score for r in rungs))} of {points(sum(r.max_score for r in rungs))} points"
    parts: list[RenderableType] = [table, Text(f"{total} by the visible checks", style="bold")]
    upcoming = next((rung for rung in rungs if rung.state != "done"), None)
    if upcoming is not None:
        parts += _checklist(upcoming)
    return Group(*parts)


def _checklist(rung: Rung) -> list[RenderableType]:
    lines: list[RenderableType] = [Text(""), Text(f"The checklist of {rung.stem}: it …", style="bold")]
    for title, does in rung.checklist:
        lines.append(Text(f"  {'✓' if does else '☐'} {title}", style="green" if does else ""))
    return lines
