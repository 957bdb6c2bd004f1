"""How late a submission is, by the clock on the wall, and what that costs."""

from __future__ import annotations

import pytest

from manyheads.course.dates import moment
from manyheads.course.decisions import Dates
from manyheads.course.file import LatePolicy

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(("due", "handed_in", "days"), [
    pytest.param("2026-10-24 20:00", "2026-10-25 19:30", 1, id="a day of 25 hours"),
    pytest.param("2026-10-24 20:00", "2026-10-25 20:00", 1, id="and its last second"),
    pytest.param("2026-10-24 20:00", "2026-10-25 20:00:01", 2, id="the next day"),
    pytest.param("2026-03-28 20:00", "2026-03-29 20:00", 1, id="a day of 23 hours"),
    pytest.param("2026-10-25T00:30:00Z", "2026-10-25T01:10:00Z", 1, id="an hour that the clock shows twice"),
    pytest.param("2026-10-26 20:00", "2026-10-28 20:01", 3, id="days of 24 hours"),
])  # fmt: skip
def test_days_are_counted_by_the_clock_on_the_wall(due: str, handed_in: str, days: int) -> None:
    found = Dates(moment(due, BERLIN), LatePolicy(per_day="1%"), BERLIN).late(moment(handed_in, BERLIN))
    assert found is not None
    assert found[0] == pytest.approx(days / 100)
