"""Tables and plot of `course bench EXERCISE` as a person reads them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from manyheads.report.bench_tables import own_bench_report, times
from manyheads.report.figures import own_bench_png
from manyheads.student.measure_own import MeasuredExercise, Point
from tests.student.real import course

EXERCISE = next(each for each in course().exercises if each.bench and each.bench[0].measures == "time")
TILED = next(each for each in course().exercises if each.bench and each.bench[0].measures == "memory")


def shown(*measured: MeasuredExercise) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=100, color_system=None).print(own_bench_report("cpu: Some", measured), soft_wrap=True)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def of_times(instead: str = "") -> MeasuredExercise:
    """Invented: with the cache nothing grows, without it 4 times as much; the last one is missing where it says so."""
    without = [
        Point(64, 1.0, 50),
        Point(256, 4.0, 9),
        Point(1024, instead=instead) if instead else Point(1024, 16.04, 3),
    ]
    lines = {"with": tuple(Point(value, 0.25, 50) for value in (64, 256, 1024)), "without": tuple(without)}
    return MeasuredExercise(EXERCISE, EXERCISE.bench[0], lines)


def test_a_table_has_a_row_for_each_value_and_a_column_for_each_line() -> None:
    lines = shown(of_times())
    assert lines[:3] == ["cpu: Some", "", f"{EXERCISE.number} · {EXERCISE.title}: {EXERCISE.bench[0].title}"]
    assert lines[3].startswith(EXERCISE.bench[0].teaches[:40])
    header = next(line for line in lines if "with, ms" in line)
    assert header.split("  ")[0] == "tokens before"
    assert [line.split() for line in lines if line[:13].strip().isdigit()] == [
        ["64", "0.25", "1"],
        ["256", "0.25", "4"],
        ["1024", "0.25", "16"],
    ]
    assert lines[-2:] == [
        "tokens before: from 64 to 1024, ×16; with ×1, without ×16.",
        "ms, medians of 3 to 50 runs, the columns in turn.",
    ]


def test_bytes_are_shown_as_megabytes_and_the_reference_is_named() -> None:
    lines = {"tiles": (Point(128, 500_000.0, 1), Point(256, 1_000_000.0, 1))}
    found = shown(MeasuredExercise(TILED, TILED.bench[0], lines, is_reference=True))
    assert found[2].endswith("(the reference: nothing is written here)")
    assert [line.split() for line in found if line[:6].strip().isdigit()] == [["128", "0.5"], ["256", "1"]]
    assert "T: from 128 to 256, ×2; tiles ×2." in found


def test_what_is_missing_says_why_and_what_to_run() -> None:
    lines = shown(of_times("Your code raised ValueError on line 3."))
    assert ["1024", "0.25", "–"] in [line.split() for line in lines]
    assert lines[-1] == (f"without, from 1024: Your code raised ValueError on line 3. Next: course check {EXERCISE.id}")
    assert "without ×" not in "\n".join(lines)


def test_factors_have_the_digits_that_say_something() -> None:
    assert [times(factor) for factor in (0.97, 1, 2.182, 12.43, 82.1)] == ["×0.97", "×1", "×2.2", "×12", "×82"]


@pytest.mark.parametrize("count", [1, 3])
def test_the_plot_opens_and_is_not_blank(count: int) -> None:
    from matplotlib.image import imread

    picture = imread(io.BytesIO(own_bench_png("cpu: Some", [of_times()] * (count - 1) + [of_times("missing")])))
    assert picture.shape[0] > 300
    assert picture.shape[1] > 600
    assert picture[..., :3].std() > 0.05
