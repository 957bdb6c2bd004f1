"""What `course bench` compares: every row, its ratio, and the lesson's own figures."""

from __future__ import annotations

import pytest

from manyheads.student.measure_attention import FULL, LESSON, BenchRow, BenchSetting, Measured, ratio, settings


def test_every_length_dtype_and_pass_is_compared_once() -> None:
    wanted = {
        (T, dtype, backward) for T in (256, 1024, 4096) for dtype in ("float32", "bfloat16") for backward in (0, 1)
    }
    every = settings(FULL.lengths)
    assert len(every) == 12
    assert {(s.T, s.dtype, int(s.backward)) for s in every} == wanted


@pytest.mark.parametrize(
    ("T", "dtype", "megabytes"),
    [(256, "float32", 3), (1024, "float32", 50), (4096, "float32", 805), (4096, "bfloat16", 403)],
)
def test_the_matrix_avoided_is_as_large_as_the_lesson_says(T: int, dtype: str, megabytes: int) -> None:
    assert round(BenchSetting(T, dtype, backward=False).matrix / 1e6) == megabytes


@pytest.mark.parametrize(
    ("T", "by_hand", "sdpa", "faster"), [(256, 0.31, 0.11, 2.8), (1024, 3.9, 0.9, 4.3), (4096, 71, 11, 6.5)]
)
def test_the_lessons_figures_stand_beside_float32_forward(T: int, by_hand: float, sdpa: float, faster: float) -> None:
    theirs = BenchRow(BenchSetting(T, "float32", backward=False)).lesson
    assert theirs is not None
    assert (theirs[0].time, theirs[1].time) == (by_hand, sdpa)
    assert round(ratio(*theirs) or 0, 1) == faster


def test_the_lesson_says_nothing_about_anything_else() -> None:
    others = [s for s in settings(FULL.lengths) if s.dtype != "float32" or s.backward]
    assert len(others) == 9
    assert all(BenchRow(s).lesson is None for s in others)
    assert len(LESSON) == 3


def test_a_ratio_is_of_medians_and_one_slow_run_changes_nothing() -> None:
    by_hand, sdpa = Measured((6.0, 900.0, 5.0, 7.0, 6.0)), Measured((2.0, 1.0, 2.0, 3.0, 700.0))
    assert (by_hand.time, sdpa.time) == (6.0, 2.0)
    assert BenchRow(BenchSetting(256, "float32", backward=False), by_hand, sdpa).faster == 3.0


def test_what_was_not_measured_has_no_ratio() -> None:
    assert BenchRow(BenchSetting(256, "float32", backward=False), instead="needs about 9 GB").faster is None
