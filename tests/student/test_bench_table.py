"""The figures of `course bench` as a person reads them, on a screen of 80 by 24."""

from manyheads.student.bench_written_out_attention import (
    FULL,
    Bench,
    BenchRow,
    Measured,
    bench_report,
    settings,
    three_digits,
)
from tests import make


def bench_lines(missing: str = "") -> list[str]:
    """Invented: the path by hand takes T, SDPA a quarter of it, at T = 4096 nothing is known where
    that is missing.
    """
    rows = [
        BenchRow(s, instead=missing)
        if missing and s.T == 4096
        else BenchRow(s, Measured(s.T, 2 * s.matrix), Measured(s.T / 4, 64 * s.T))
        for s in settings(FULL.lengths)
    ]
    bench = Bench("cpu: Some Processor, threads: 2; torch 2.13.0", tuple(rows), {"float32": 4.8e-7})
    return make.printed_lines(bench_report(bench), 80)


def test_it_fits_and_says_on_what_and_how_it_was_measured():
    lines = bench_lines()
    assert (len(lines) < 24, "…" in "".join(lines)) == (True, False)
    assert lines[0] == "Attention itself, causal: B = 1, 12 heads, head_dim 64"
    assert lines[1] == "cpu: Some Processor, threads: 2; torch 2.13.0"
    assert "Times are medians. Peak: what a run holds beyond q, k and v." in lines
    assert lines[-1] == "The outputs of the two differ by at most 5e-07 in float32."


def test_ours_stand_above_the_lessons_for_each_length():
    longest = [line.split() for line in bench_lines() if " 4096 " in line]
    assert longest[0] == ["float32", "4096", "4096", "1024", "4.0×", "805", "1611", "0.262"]
    assert longest[-1][-4:] == ["4096", "71", "11", "6.5×"]


def test_what_was_left_out_is_named_with_its_reason():
    lines = bench_lines(missing="needs about 4.0 GB, 1.0 GB is free")
    assert (
        "T = 4096, bfloat16, forward, is left out: it needs about 4.0 GB, 1.0 GB is free." in lines
    )
    ours = [
        line.split() for line in lines if " 4096 " in line and "float" in line and "=" not in line
    ]
    assert [line[-6:-3] + line[-2:] for line in ours] == [["–"] * 5] * 4


def test_numbers_have_the_digits_that_say_something():
    assert [three_digits(n) for n in (0.0659, 0.31, 71.04, 805.3, 12345.6)] == [
        "0.0659",
        "0.31",
        "71",
        "805",
        "12346",
    ]
