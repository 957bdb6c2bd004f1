"""The table that `course bench` prints fits a screen of 80 by 24 characters."""

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


def bench_lines(reason_left_out: str = "") -> list[str]:
    """Return the lines of a table of invented times: SDPA is four times as fast as by hand.

    Args:
        reason_left_out: why T = 4096 was not measured; empty if it was.
    """
    rows = []
    for setting in settings(FULL.lengths):
        T = setting.T
        measured = Measured(T, 2 * setting.matrix), Measured(T / 4, 64 * T)
        is_left_out = reason_left_out and T == 4096
        rows.append(
            BenchRow(setting, instead=reason_left_out)
            if is_left_out
            else BenchRow(setting, *measured)
        )
    bench = Bench("cpu: Some Processor, threads: 2; torch 2.13.0", tuple(rows), {"float32": 4.8e-7})
    return make.printed_lines(bench_report(bench), 80)


def test_the_table_fits_the_screen_and_explains_its_numbers():
    lines = bench_lines()
    assert len(lines) < 24
    assert "…" not in "".join(lines)
    assert lines[:2] == [
        "Attention itself, causal: B = 1, 12 heads, head_dim 64",
        "cpu: Some Processor, threads: 2; torch 2.13.0",
    ]
    assert "Times are medians. Peak: what a run holds beyond q, k and v." in lines
    assert lines[-1] == "The outputs of the two differ by at most 5e-07 in float32."
    longest = [line.split() for line in lines if " 4096 " in line]
    assert longest[0] == ["float32", "4096", "4096", "1024", "4.0×", "805", "1611", "0.262"]
    assert longest[-1][-4:] == ["4096", "71", "11", "6.5×"]  # the lesson's


def test_the_table_says_why_a_length_was_not_measured():
    lines = bench_lines(reason_left_out="needs about 4.0 GB, 1.0 GB is free")
    assert (
        "T = 4096, bfloat16, forward, is left out: it needs about 4.0 GB, 1.0 GB is free." in lines
    )
    rows = [line.split() for line in lines if " 4096 " in line and line.count("–") == 5]
    assert [row[-6:-3] + row[-2:] for row in rows] == [["–"] * 5] * 4


def test_numbers_are_printed_with_three_digits():
    numbers = [three_digits(n) for n in (0.0659, 0.31, 71.04, 805.3, 12345.6)]
    assert numbers == ["0.0659", "0.31", "71", "805", "12346"]
