"""What `course bench EXERCISE` measured, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..tools.own_bench import MeasuredExercise, Point
from .bench import NONE, three_digits

UNITS = {"time": "ms", "memory": "MB", "value": "MB"}
_SAYS = {
    "time": "ms, medians of {runs} runs, the columns in turn",
    "memory": "MB that the call's tensors hold at once, those that it is given left out",
    "value": "MB, as your function counts them",
}
BYTES = 1e6  # of a megabyte
_FOLD = 96  # columns of a sentence


def own_bench_report(where: str, measured: Sequence[MeasuredExercise]) -> RenderableType:
    """A table for each measurement, what it teaches, and what grew how far."""
    parts: list[RenderableType] = [Text(where, style="bold")]
    for each in measured:
        teaches = wrap(each.measurement.teaches, _FOLD)
        parts += [Text(f"\n{heading(each)}", style="bold"), *map(Text, teaches), _table(each)]
        parts += [Text(line, style="bright_black") for line in remarks(each)]
    return Group(*parts)


def heading(each: MeasuredExercise) -> str:
    """The exercise and what is measured of it."""
    whose = " (the reference: nothing is written here)" if each.is_reference else ""
    return f"{each.exercise.number} · {each.exercise.title}: {each.measurement.title}{whose}"


def amount_of(each: MeasuredExercise, point: Point) -> float | None:
    """In the unit of the table."""
    if point.amount is None:
        return None
    return point.amount if each.measurement.measures == "time" else point.amount / BYTES


def growth(points: Sequence[Point]) -> float | None:
    """How many times the first amount the last one is; None where it was not measured to the end."""
    first, last = points[0].amount, points[-1].amount
    return None if not first or last is None or len(points) < 2 else last / first


def remarks(each: MeasuredExercise) -> Iterator[str]:
    """What grew how far, how it was measured, and what is missing."""
    values = [point.value for point in next(iter(each.lines.values()))]
    grown = [(name, growth(points)) for name, points in each.lines.items()]
    said = ", ".join(f"{name} {times(factor)}" for name, factor in grown if factor is not None)
    if said:
        yield f"{_label(each)}: from {values[0]} to {values[-1]}, {times(values[-1] / values[0])}; {said}."
    runs = [point.runs for points in each.lines.values() for point in points if point.runs]
    if runs:
        counted = str(min(runs)) if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
        yield _SAYS[each.measurement.measures].format(runs=counted) + "."
    for name, points in each.lines.items():
        missing = next((point for point in points if point.instead), None)
        if missing is not None:
            yield f"{name}, from {missing.value}: {missing.instead} Next: course check {each.exercise.id}"


def times(factor: float) -> str:
    """×1.9, ×16, ×256."""
    return f"×{factor:.2g}" if factor < 10 else f"×{factor:.0f}"


def _label(each: MeasuredExercise) -> str:
    return each.measurement.label or each.measurement.over


def _table(each: MeasuredExercise) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="", show_edge=False)
    table.add_column(_label(each), justify="right", min_width=6)
    unit = UNITS[each.measurement.measures]
    for name in each.lines:
        table.add_column(f"{name}, {unit}", justify="right", min_width=8)
    for row in zip(*each.lines.values(), strict=True):
        amounts = (amount_of(each, point) for point in row)
        table.add_row(str(row[0].value), *(NONE if each_ is None else three_digits(each_) for each_ in amounts))
    return table
