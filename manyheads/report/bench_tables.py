"""The figures of `course bench` as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..student.measure_attention import (
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
    threads = "" if bench.device == "cuda" else f", {bench.threads} thread{'s' * (bench.threads != 1)}"
    parts: list[RenderableType] = [
        Text(f"Attention itself, causal: B = {BATCH}, {HEADS} heads, head_dim {HEAD_DIM}", style="bold"),
        Text(f"{bench.device}: {bench.machine}{threads}; torch {bench.torch}", style="bold"),
    ]
    for title, rows in groupby(bench.rows, lambda row: title_of(row.setting)):
        parts += [Text(f"\n{title}", style="bold"), _table(list(rows))]
    return Group(*parts, Text(""), *(Text(line, style="bright_black") for line in remarks(bench)))


def title_of(setting: BenchSetting) -> str:
    """For example "float32, forward and backward"."""
    return f"{setting.dtype}, forward{' and backward' if setting.backward else ''}"


def remarks(bench: Bench) -> Iterator[str]:
    """Yield the explanation of the columns."""
    runs = [len(row.by_hand.times) for row in bench.rows if row.by_hand]
    if runs:
        count = " to ".join(map(str, sorted({min(runs), max(runs)})))
        yield f"Times: medians of {count} runs, by hand and SDPA alternately."
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
