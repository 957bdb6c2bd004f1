"""The figures of `course bench` as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..student.bench_settings import (
    BATCH,
    HEAD_DIM,
    HEADS,
    LESSON_DEVICE,
    Bench,
    BenchRow,
    BenchSetting,
    Measured,
    ratio,
)
from ..student.measure_own import MeasuredExercise, Point

NONE = "–"
_COLUMNS = (  # header, least width: with the blanks between them 80
    ("T", 4),
    ("by hand\nms", 7),
    ("SDPA\nms", 6),
    ("faster", 6),
    (f"{LESSON_DEVICE} by\nhand, ms", 8),
    ("SDPA\nms", 5),
    ("faster", 6),
    ("matrix\nMB", 6),
    ("peak by\nhand, MB", 8),
    ("SDPA\nMB", 6),
)
_BOLD, _LESSONS = (3,), (4, 5, 6)  # columns


def bench_report(bench: Bench) -> RenderableType:
    """Return a table for each dtype and pass, with the lesson's figures, and an explanation of the columns."""
    parts: list[RenderableType] = [Text(bench_heading(bench), style="bold")]
    for title, rows in groupby(bench.rows, lambda row: title_of(row.setting)):
        parts += [Text(f"\n{title}", style="bold"), _table(list(rows))]
    return Group(*parts, Text(""), *(Text(line, style="bright_black") for line in remarks(bench)))


def bench_heading(bench: Bench) -> str:
    """Return what was measured, and on a second line the machine."""
    where = where_measured(bench.device, bench.machine, bench.threads, bench.torch)
    what = f"Attention itself, causal: B = {BATCH}, {HEADS} heads, head_dim {HEAD_DIM}"
    return f"{what}\n{where}"


def where_measured(device: str, machine: str, threads: int, torch: str) -> str:
    """Return the machine. threads: of the CPU. torch: its version."""
    used = "" if device == "cuda" else f", {threads} thread{'s' * (threads != 1)}"
    return f"{device}: {machine}{used}; torch {torch}"


def title_of(setting: BenchSetting) -> str:
    """For example "float32, forward and backward"."""
    return f"{setting.dtype}, forward{' and backward' if setting.backward else ''}"


def remarks(bench: Bench) -> Iterator[str]:
    """Yield the explanation of the columns."""
    runs = [len(row.by_hand.times) for row in bench.rows if row.by_hand]
    if runs:
        yield f"Times: medians of {_range(min(runs), max(runs))} runs, by hand and SDPA alternately."
    yield "Matrix: one (B, nh, T, T) tensor, which SDPA does not need."
    yield "Peak: what a run holds beyond q, k and v."
    yield f"{LESSON_DEVICE}: what the lesson quotes, under unpublished conditions; not reproduced."
    agree = ", ".join(f"{difference:.0e} in {dtype}" for dtype, difference in bench.apart.items())
    if agree:
        yield f"The outputs of the two differ by at most {agree}."
    for row in bench.rows:
        if row.instead:
            yield f"T = {row.setting.T}, {title_of(row.setting)}, is left out: it {row.instead}."


def _table(rows: list[BenchRow]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="", show_edge=False)
    for i, (name, width) in enumerate(_COLUMNS):
        style = "bold" if i in _BOLD else "bright_black" if i in _LESSONS else ""
        header = name if "\n" in name else f"\n{name}"
        table.add_column(header, justify="right", no_wrap=True, style=style, min_width=width)
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: BenchRow) -> list[str]:
    by_hand, sdpa = row.lesson or (None, None)
    return [
        str(row.setting.T),
        _time(row.by_hand),
        _time(row.sdpa),
        _times(row.faster),
        _time(by_hand),
        _time(sdpa),
        _times(ratio(by_hand, sdpa)),
        _megabytes(row.setting.matrix),
        _megabytes(row.by_hand.peak if row.by_hand else None),
        _megabytes(row.sdpa.peak if row.sdpa else None),
    ]


def _time(measured: Measured | None) -> str:
    return NONE if measured is None else three_digits(measured.time)


def _times(factor: float | None) -> str:
    return NONE if factor is None else f"{factor:.1f}×"


def _megabytes(count: int | None) -> str:
    return NONE if count is None else three_digits(count / 1e6)


def three_digits(number: float) -> str:
    """0.31, 3.9, 71, 1234: three significant digits, without an exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


# What `course bench EXERCISE` measured, as tables for a terminal.

UNITS = {"time": "ms", "memory": "MB", "value": "MB"}
_SAYS = {
    "time": "ms, medians of {runs} runs, the columns in turn",
    "memory": "MB that the call's tensors hold at once, those that it is given left out",
    "value": "MB, as your function counts them",
}
BYTES = 1e6  # of a megabyte


def own_bench_report(where: str, measured: Sequence[MeasuredExercise]) -> RenderableType:
    """Return a table for each measurement, what it teaches, and what grew how far."""
    parts: list[RenderableType] = [Text(where, style="bold")]
    for measurement in measured:
        parts += [
            Text(f"\n{exercise_heading(measurement)}", style="bold"),
            Text(measurement.measurement.teaches),
            _exercise_table(measurement),
        ]
        parts += [Text(line, style="bright_black") for line in exercise_remarks(measurement)]
    return Group(*parts)


def exercise_heading(measured: MeasuredExercise) -> str:
    """Return the exercise and what is measured of it."""
    whose = " (the reference: nothing is written here)" if measured.is_reference else ""
    return f"{measured.exercise.number} · {measured.exercise.title}: {measured.measurement.title}{whose}"


def amount_of(measured: MeasuredExercise, point: Point) -> float | None:
    """In the unit of the table."""
    if point.amount is None:
        return None
    return point.amount if measured.measurement.measures == "time" else point.amount / BYTES


def growth(points: Sequence[Point]) -> float | None:
    """Return how many times the first amount the last one is; None where it was not measured to the end."""
    first, last = points[0].amount, points[-1].amount
    return None if not first or last is None or len(points) < 2 else last / first


def exercise_remarks(measured: MeasuredExercise) -> Iterator[str]:
    """Yield what grew how far, how it was measured, and what is missing."""
    values = [point.value for point in next(iter(measured.lines.values()))]
    grown = [(name, growth(points)) for name, points in measured.lines.items()]
    said = ", ".join(f"{name} {times(factor)}" for name, factor in grown if factor is not None)
    if said:
        yield f"{_label(measured)}: from {values[0]} to {values[-1]}, {times(values[-1] / values[0])}; {said}."
    runs = [point.runs for points in measured.lines.values() for point in points if point.runs]
    if runs:
        yield _SAYS[measured.measurement.measures].format(runs=_range(min(runs), max(runs))) + "."
    for name, points in measured.lines.items():
        missing = next((point for point in points if point.instead), None)
        if missing is not None:
            yield f"{name}, from {missing.value}: {missing.instead} Next: course check {measured.exercise.id}"


def times(factor: float) -> str:
    """×1.9, ×16, ×256."""
    return f"×{factor:.2g}" if factor < 10 else f"×{factor:.0f}"


def _label(measured: MeasuredExercise) -> str:
    return measured.measurement.label or measured.measurement.over


def _exercise_table(measured: MeasuredExercise) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="", show_edge=False)
    table.add_column(_label(measured), justify="right", min_width=6)
    unit = UNITS[measured.measurement.measures]
    for name in measured.lines:
        table.add_column(f"{name}, {unit}", justify="right", min_width=8)
    for row in zip(*measured.lines.values(), strict=True):
        amounts = (amount_of(measured, point) for point in row)
        table.add_row(str(row[0].value), *(NONE if each_ is None else three_digits(each_) for each_ in amounts))
    return table
