"""Dates mean moments, or are refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import CourseError, load_course
from manyheads.course.dates import duration, moment, shown_moment

COURSE = "title: T\n{top}assignments:\n  - id: x\n    title: X\n    due: {due}\n    exercises:\n      - {{id: a, title: A, points: 1, hint: H}}\n"


@pytest.mark.parametrize(
    ("text", "zone", "iso"),
    [
        ("2026-12-01 18:00", "Europe/Berlin", "2026-12-01T17:00:00"),
        ("2026-07-01 18:00", "Europe/Berlin", "2026-07-01T16:00:00"),
        ("2026-12-01 18:00+05:30", "Europe/Berlin", "2026-12-01T12:30:00"),
        ("2026-12-01T18:00:30Z", "", "2026-12-01T18:00:30"),
        ("2026-12-01 18:00:30.5 Z", "", "2026-12-01T18:00:30.500000"),
        ("2026-12-01 18:00:00.123456 America/New_York", "", "2026-12-01T23:00:00.123456"),
        ("2026-12-01 18:00:00 UTC", "Europe/Berlin", "2026-12-01T18:00:00"),
        ("2026-11-20 10:11:12.345678000 -08:00", "", "2026-11-20T18:11:12.345678"),
        ("2026-11-20 10:11:12 +0100", "", "2026-11-20T09:11:12"),
        ("2026-10-25 02:30", "Europe/Berlin", "2026-10-25T01:30:00"),  # shown twice: the later
        ("2026-03-29 02:30", "Europe/Berlin", "2026-03-29T01:30:00"),  # never shown
    ],
)
def test_a_date_is_a_moment(text: str, zone: str, iso: str) -> None:
    assert moment(text, zone).isoformat() == f"{iso}+00:00"


@pytest.mark.parametrize(("text", "says"), [
    ("2026-12-01 18:00", "has no zone: write it as 2026-12-01 18:00+01:00"),
    ("2026-12-01", "has no time of day"),
    ("1 December, 6 pm", "is no date and time"),
    ("2026-12-01 18:00 Europe/Berlinn", "Europe/Berlinn is no time zone"),
    ("", "is no date and time"),
])  # fmt: skip
def test_what_is_no_moment_is_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("+", r"\+")):
        moment(text)


def test_it_is_shown_as_the_course_reads_it() -> None:
    assert shown_moment(moment("2026-12-01T17:00Z"), "Europe/Berlin") == "2026-12-01 18:00 Europe/Berlin"
    assert shown_moment(moment("2026-12-01T17:00Z")) == "2026-12-01 17:00 UTC"


@pytest.mark.parametrize(
    ("text", "seconds"), [("30 min", 1800), ("2 h", 7200), ("2h", 7200), ("1 hour", 3600), ("0 m", 0)]
)
def test_durations(text: str, seconds: int) -> None:
    assert duration(text).total_seconds() == seconds


@pytest.mark.parametrize(
    ("top", "due", "says"),
    [
        ("", "2026-12-01 18:00", "course.yaml:5: due: 2026-12-01 18:00 has no zone"),
        ("time_zone: Berlin\n", "2026-12-01 18:00", "course.yaml:2: time_zone: Berlin is no time zone"),
        ("time_zone: UTC\n", "2026-12-01", "course.yaml:6: due: 2026-12-01 has no time of day"),
        ("time_zone: UTC\nlate: {grace: soon}\n", "2026-12-01 18:00", "course.yaml:3: late.grace: 'soon' is no duration"),
        ("late: {per_day: 10}\n", "2026-12-01 18:00Z", "course.yaml:2: late.per_day: 10 is no share such as 10%"),
        ("late: {per_day: 200%}\n", "2026-12-01 18:00Z", "course.yaml:2: late.per_day: 200% is more than 100%"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_course_yaml_is_named_with_its_line(tmp_path: Path, top: str, due: str, says: str) -> None:
    (tmp_path / "course.yaml").write_text(COURSE.format(top=top, due=due))
    with pytest.raises(CourseError) as raised:
        load_course(tmp_path)
    assert says in str(raised.value)
    assert str(raised.value).endswith("Next: mend that line, then course verify")


@pytest.mark.parametrize(
    "due", ["2026-12-01 18:00:00", "2026-12-01 18:00:00 +01:00", "'2026-12-01 18:00'", "2026-12-01T18:00Z"]
)
def test_what_yaml_reads_as_a_date_is_one(tmp_path: Path, due: str) -> None:
    (tmp_path / "course.yaml").write_text(COURSE.format(top="time_zone: UTC\n", due=due))
    assert load_course(tmp_path).assignments[0].row.due is not None
