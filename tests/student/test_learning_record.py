"""The record of a student's learning, which is kept on request alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from manyheads.errors import CourseFault
from manyheads.result import CheckResult, Diagnosed, ExerciseResult
from manyheads.student.learning_record import (
    Event,
    LearningRecord,
    begin_record,
    forget_record,
    note_asked,
    note_result,
    read_record,
)

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def asked(*days_ago: float) -> LearningRecord:
    events = (Event(when=NOW - timedelta(days=d), exercise="mask", kind="asked", about="4 of 5") for d in days_ago)
    return LearningRecord(events=tuple(events))


def result(*titles: str, done: bool = False) -> ExerciseResult:
    check = CheckResult(id="a", title="a", outcome="passed" if done else "failed", score=0, max_score=1)
    named = tuple(Diagnosed(id=title, title=title, hint="") for title in titles)
    return ExerciseResult(id="mask", score=0, max_score=1, checks=(check,), diagnosis=named)


@pytest.mark.parametrize(
    ("days_ago", "is_due"),
    [
        pytest.param((0.5,), False, id="not within a day"),
        pytest.param((1.1,), True, id="after a day"),
        pytest.param((2, 0.5), False, id="not where it was answered after a day"),
        pytest.param((7.5, 6), True, id="after a week"),
        pytest.param((8, 6, 0.5), False, id="not where it was answered after a week"),
        pytest.param((22, 20, 14), True, id="after three weeks"),
        pytest.param((60, 58, 50, 30), False, id="not after the third"),
    ],
)
def test_a_question_is_due_after_a_day_a_week_and_three_weeks(days_ago: tuple[float, ...], is_due: bool) -> None:
    assert bool(list(asked(*days_ago).due(NOW))) is is_due


def test_nothing_is_kept_before_it_is_asked_for_and_nothing_after_it_is_deleted(tmp_path: Path) -> None:
    note_asked(tmp_path, "mask", 4, 5)
    assert read_record(tmp_path) is None
    begin_record(tmp_path)
    note_asked(tmp_path, "mask", 4, 5)
    record = read_record(tmp_path)
    assert record is not None
    assert [(e.kind, e.about) for e in record.events] == [("asked", "4 of 5")]
    assert forget_record(tmp_path)
    assert not forget_record(tmp_path)
    assert read_record(tmp_path) is None


def test_what_is_named_is_kept_once_and_mended_when_it_is_named_no_more(tmp_path: Path) -> None:
    begin_record(tmp_path)
    for each in (result("not scaled"), result("not scaled"), result("inverted"), result(done=True)):
        note_result(tmp_path, each)
    record = read_record(tmp_path)
    assert record is not None
    assert [(e.kind, e.about) for e in record.events] == [
        ("named", "not scaled"),
        ("named", "inverted"),
        ("mended", "not scaled"),
        ("mended", "inverted"),
    ]


def test_a_misconception_that_is_named_in_a_later_exercise_came_back() -> None:
    events = tuple(
        Event(when=NOW, exercise=exercise, kind="named", about=title)
        for exercise, title in (("mask", "inverted"), ("heads", "not scaled"), ("heads", "inverted"))
    )
    assert list(LearningRecord(events=events).came_back(["mask", "heads"])) == [("inverted", "mask", "heads")]


def test_where_nothing_can_be_written_it_says_so_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ".course").write_text("a file in the way")
    with pytest.raises(CourseFault, match=r"cannot be written .* Next: course ask, without --keep"):
        begin_record(tmp_path)
