"""The figures of `course bench` as a person reads them."""

import io

from rich.console import Console

from manyheads.student.measure_attention import FULL, Bench, BenchRow, Measured, bench_report, settings, three_digits

WIDTH = 80


def bench(*, on: str = "cpu", missing: str = "") -> Bench:
    """Invented: the path by hand takes T, SDPA a quarter of it, at T = 4096 nothing is known where that is missing."""
    rows = [
        BenchRow(s, instead=missing)
        if missing and s.T == 4096
        else BenchRow(s, Measured((s.T, s.T, 9e9), 2 * s.matrix), Measured((s.T / 4,) * 3, 64 * s.T))
        for s in settings(FULL.lengths)
    ]
    return Bench(on, "Some Processor", 0 if on == "cuda" else 2, "2.13.0", tuple(rows), {"float32": 4.8e-7})


def shown(of: Bench) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=WIDTH, color_system=None).print(bench_report(of), soft_wrap=True)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_every_row_stands_under_its_dtype_and_pass_and_fits_a_terminal() -> None:
    lines = shown(bench())
    titles = [line for line in lines if line.startswith(("float32,", "bfloat16,"))]
    assert titles == [
        "float32, forward", "float32, forward and backward", "bfloat16, forward", "bfloat16, forward and backward",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines if line[:5].strip().isdigit()] == ["256", "1024", "4096"] * 4
    assert max(map(len, lines)) <= WIDTH


def test_ours_stand_beside_the_lessons_and_the_memory() -> None:
    (row,) = [line.split() for line in shown(bench()) if line.split()[:3] == ["4096", "4096", "1024"]][:1]
    assert row == ["4096", "4096", "1024", "4.0×", "71", "11", "6.5×", "805", "1611", "0.262"]


def test_where_the_lesson_has_no_figure_none_is_shown() -> None:
    rows = [line.split() for line in shown(bench()) if line.split()[:1] == ["256"]]
    assert [row[4:7] for row in rows] == [["0.31", "0.11", "2.8×"], ["–"] * 3, ["–"] * 3, ["–"] * 3]


def test_it_says_on_what_and_how_it_was_measured() -> None:
    lines = shown(bench())
    assert lines[:2] == [
        "Attention itself, causal: B = 1, 12 heads, head_dim 64",
        "cpu: Some Processor, 2 threads; torch 2.13.0",
    ]
    assert "Times: medians of 3 runs, by hand and SDPA alternately." in lines
    assert "The outputs of the two differ by at most 5e-07 in float32." in lines
    assert shown(bench(on="cuda"))[1] == "cuda: Some Processor; torch 2.13.0"


def test_what_was_left_out_is_named_with_its_reason() -> None:
    lines = shown(bench(missing="needs about 4.0 GB, 1.0 GB is free"))
    assert "T = 4096, bfloat16, forward, is left out: it needs about 4.0 GB, 1.0 GB is free." in lines
    assert [line.split()[1:4] for line in lines if line.split()[:1] == ["4096"]] == [["–"] * 3] * 4


def test_numbers_have_the_digits_that_say_something() -> None:
    assert [three_digits(n) for n in (0.0659, 0.31, 3.9, 71.04, 805.3, 12345.6)] == [
        "0.0659", "0.31", "3.9", "71", "805", "12346",
    ]  # fmt: skip
