"""Dates mean moments of 1990 to 2100, or nothing; lateness is counted by the clock on the wall."""

import random

import pytest

from manyheads.course.dates import duration, moment, read_moment, shown_moment
from manyheads.course.decisions import Dates
from manyheads.course.file import LatePolicy

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(("text", "zone", "iso"), [
    ("2026-12-01 18:00", BERLIN, "2026-12-01T17:00:00"),
    ("2026-07-01 18:00", BERLIN, "2026-07-01T16:00:00"),
    ("2026-12-01 18:00+05:30", BERLIN, "2026-12-01T12:30:00"),
    ("2026-12-01T18:00:30Z", "", "2026-12-01T18:00:30"),
    ("2026-12-01 18:00:30.5 Z", "", "2026-12-01T18:00:30.500000"),
    ("2026-12-01 18:00:00.123456 America/New_York", "", "2026-12-01T23:00:00.123456"),
    ("2026-12-01 18:00:00 UTC", BERLIN, "2026-12-01T18:00:00"),
    ("2026-11-20 10:11:12.345678000 -08:00", "", "2026-11-20T18:11:12.345678"),
    ("2026-11-20 10:11:12 +0100", "", "2026-11-20T09:11:12"),
    ("2026-10-25 02:30", BERLIN, "2026-10-25T01:30:00"),  # shown twice: the later
    ("2026-03-29 02:30", BERLIN, "2026-03-29T01:30:00"),  # never shown
    ("2100-12-31 23:59:59Z", "", "2100-12-31T23:59:59"),
])  # fmt: skip
def test_a_date_is_a_moment(text: str, zone: str, iso: str) -> None:
    assert moment(text, zone).isoformat() == f"{iso}+00:00"


@pytest.mark.parametrize("text", [
    "", "1 December, 6 pm", "2026-12-01", "20261201", "2026-W49-2", "2026-13-45 18:00", "2026-12-01 18:00 Europe/Berlinn",
    "2026-12-01 18:00 Europe", "2026-12-01 18:00 ../UTC", "2026-12-01 18:00 +9999", "2026-12-01 18:00 UTC\0",
    "1989-12-31 23:59Z", "2101-01-01 00:00Z", "9999-12-31 23:58:20 UTC", "9999-12-31 23:59 -23:59", "0001-01-01 00:00 +14",
    "10000-01-01 00:00Z", "２０２６-12-01 18:00Z", "2026-12-01 18:00" + " " * 1000 + "Z",
])  # fmt: skip
def test_what_is_no_moment_is_nothing(text: str) -> None:
    assert read_moment(text, BERLIN) is None


def test_no_text_is_an_exception() -> None:
    chance = random.Random(7)
    for _ in range(2000):
        text = list(chance.choice(("2026-12-01 18:00:00.1 America/New_York", "9999-12-31T23:59:59-23:59")))
        for place in chance.sample(range(len(text)), 3):
            text[place] = chance.choice("09:-+ TZ./é\0\n\udcff٣")
        read_moment("".join(text), chance.choice(("", BERLIN, "x\0", "..", "/")))


@pytest.mark.parametrize(("text", "says"), [
    ("2026-12-01 18:00", "has no zone: write "),
    ("2026-12-01", "is no date and time of 1990 to 2100, such as 2026-12-01 18:00 Europe/Berlin"),
])  # fmt: skip
def test_who_writes_none_reads_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        moment(text)


def test_it_is_shown_as_the_course_reads_it() -> None:
    assert shown_moment(moment("2026-12-01T17:00Z"), BERLIN) == "2026-12-01 18:00 Europe/Berlin"
    assert shown_moment(moment("2026-12-01T17:00Z")) == "2026-12-01 17:00 UTC"


@pytest.mark.parametrize(
    ("text", "seconds"), [("30 min", 1800), ("2 h", 7200), ("2h", 7200), ("1 hour", 3600), ("0 m", 0), ("7 days", 604800)]
)  # fmt: skip
def test_durations(text: str, seconds: int) -> None:
    assert duration(text).total_seconds() == seconds


@pytest.mark.parametrize(("due", "handed_in", "says"), [
    pytest.param("2026-12-01 18:00", "2026-12-01 18:00:30", "30 seconds after 18:00: 1 day late", id="seconds"),
    pytest.param("2026-12-01 18:00", "2026-12-01 18:00:00.2", "1 second after 18:00: 1 day late", id="less than one"),
    pytest.param("2026-10-24 20:00", "2026-10-25 19:30", "23 hours 30 minutes after 20:00: 1 day late", id="a day of 25 hours"),
    pytest.param("2026-10-24 20:00", "2026-10-25 20:00", "1 day after 20:00: 1 day late", id="and its last second"),
    pytest.param("2026-10-24 20:00", "2026-10-25 20:00:01", "1 day 1 second after 20:00: 2 days late", id="the next day"),
    pytest.param("2026-03-28 20:00", "2026-03-29 20:00", "1 day after 20:00: 1 day late", id="a day of 23 hours"),
    pytest.param("2026-10-25T00:30Z", "2026-10-25T01:10Z", "40 minutes after 02:30: 1 day late", id="an hour that is shown twice"),
    pytest.param("2026-10-26 20:00", "2026-10-28 20:01", "2 days 1 minute after 20:00: 3 days late", id="days of 24 hours"),
])  # fmt: skip
def test_days_are_counted_by_the_clock_on_the_wall_and_told_with_what_was_late(due, handed_in, says):
    late = Dates(moment(due, BERLIN), LatePolicy(grace="0 min", per_day="1%"), BERLIN).late(moment(handed_in, BERLIN))
    assert late.words == says
    assert late.share == pytest.approx(int(says.partition(": ")[2][0]) / 100)
    assert late.costs == f", −{100 * late.share:g}% (1% a day, at most 100%)"


def test_a_quarter_of_an_hour_is_grace_where_the_course_says_nothing() -> None:
    dates = Dates(moment("2026-12-01 18:00Z"), LatePolicy())
    assert dates.late(moment("2026-12-01 18:15Z")) is None
    assert dates.late(moment("2026-12-01 18:15:01Z")) is not None
