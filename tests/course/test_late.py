"""How late a submission is, by the clock on the wall, and what that costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import CourseError, load_course
from manyheads.course.dates import moment
from manyheads.course.decisions import Dates, Decisions
from manyheads.course.file import LatePolicy
from manyheads.course.final import final
from manyheads.course.overrides_file import NAME
from manyheads.report.adjustments import sentences
from manyheads.result import HandedIn, Result

from .conftest import COURSE, result

BERLIN = "Europe/Berlin"


def late(due: str, handed_in: str, free: int = 0, zone: str = BERLIN, **policy: str) -> tuple[int, float, str] | None:
    dates = Dates(moment(due, zone), LatePolicy(**policy), zone)  # type: ignore[arg-type]
    found = dates.late(moment(handed_in, zone), free=free)
    return found and (found.days, found.share, found.words)


@pytest.mark.parametrize(
    ("due", "handed_in", "days"),
    [
        pytest.param("2026-10-24 20:00", "2026-10-25 19:30", 1, id="a day of 25 hours"),
        pytest.param("2026-10-24 20:00", "2026-10-25 20:00", 1, id="and its last second"),
        pytest.param("2026-10-24 20:00", "2026-10-25 20:00:01", 2, id="the next day"),
        pytest.param("2026-03-28 20:00", "2026-03-29 20:00", 1, id="a day of 23 hours"),
        pytest.param("2026-10-25T00:30:00Z", "2026-10-25T01:10:00Z", 1, id="an hour that the clock shows twice"),
        pytest.param("2026-10-26 20:00", "2026-10-28 20:01", 3, id="days of 24 hours"),
    ],
)
def test_days_are_counted_by_the_clock_on_the_wall(due: str, handed_in: str, days: int) -> None:
    found = late(due, handed_in)
    assert found is not None
    assert found[0] == days


@pytest.mark.parametrize(
    ("handed_in", "share", "words"),
    [
        ("2026-12-01 18:30", 0.01, "1 day late, 1 hour: −1% (1% an hour, at most 50%)"),
        ("2026-12-02 00:01", 0.07, "1 day late, 7 hours: −7% (1% an hour, at most 50%)"),
        ("2026-12-08 18:00", 0.5, "7 days late, 168 hours: −50% (1% an hour, at most 50%)"),
        ("2026-12-08 18:01", 1.0, "8 days late: −100% (nothing is earned 7 days after the due date)"),
    ],
)
def test_hours_cost_their_share_and_after_the_cutoff_nothing_is_earned(
    handed_in: str, share: float, words: str
) -> None:
    found = late("2026-12-01 18:00", handed_in, per_hour="1%", at_most="50%", cutoff="7 days")
    assert found is not None
    assert found[1:] == (share, words)


@pytest.mark.parametrize(
    ("free", "policy", "share", "words"),
    [
        (1, {"per_day": "10%"}, 0.2, "3 days late, 1 of them free: −20% (10% a day, at most 100%)"),
        (5, {"per_day": "10%"}, 0.0, "3 days late, 3 of them free"),
        (2, {"per_hour": "1%"}, 0.06, "3 days late, 2 of them free, 6 hours: −6% (1% an hour, at most 100%)"),
        (5, {"cutoff": "2 days"}, 1.0, "3 days late: −100% (nothing is earned 2 days after the due date)"),
    ],
)
def test_free_days_cost_nothing_and_move_no_cutoff(free: int, policy: dict[str, str], share: float, words: str) -> None:
    found = late("2026-12-01 18:00", "2026-12-04 00:00", free, **policy)
    assert found is not None
    assert (found[1], found[2]) == (pytest.approx(share), words)


def test_two_policies_at_once_are_refused(tmp_path: Path) -> None:
    (tmp_path / "course.yaml").write_text(COURSE.replace("at_most: 50%", "per_hour: 1%"))
    with pytest.raises(CourseError, match="per_day and per_hour are two policies: keep one of them"):
        load_course(tmp_path)


@pytest.fixture
def of_two(tmp_path: Path) -> Path:
    """A course with two due dates, a week apart, and three free days for both."""
    text = COURSE.replace("    title: Spread\n", "    title: Spread\n    due: 2026-12-08 18:00\n")
    (tmp_path / "course.yaml").write_text(text.replace("assignments:\n", "free_late_days: 3\nassignments:\n"))
    return tmp_path


def of_spread(handed_in: str) -> Result:
    when = HandedIn(source="Canvas", time=moment(handed_in, BERLIN))
    return result().model_copy(update={"assignment": "spread", "handed_in": when})


@pytest.mark.parametrize(
    ("first", "row", "says"),
    [
        pytest.param("2026-12-01 18:00", "", "2 days late, 2 of them free", id="none is used before"),
        pytest.param("2026-12-03 12:00", "", "2 days late, 1 of them free: −10%", id="two are"),
        pytest.param("2026-12-06 12:00", "", "2 days late: −20%", id="all are"),
        pytest.param("", "", "2 days late, 2 of them free", id="nobody knows"),
        pytest.param("2026-12-06 12:00", "extension: 2026-12-05 18:00", "2 days late, 2 of them free", id="an extension"),
        pytest.param("2026-12-01 12:00", "handed_in: 2026-12-03 12:00", "2 days late, 1 of them free", id="a time by hand"),
    ],
)  # fmt: skip
def test_free_days_are_one_budget_for_all_assignments_in_the_order_of_their_due_dates(
    of_two: Path, first: str, row: str, says: str
) -> None:
    (of_two / NAME).write_text(f"- {{student: ada, assignment: averages, {row}}}\n" if row else "")
    times = {("ada", "averages"): moment(first, BERLIN)} if first else {}
    decisions = Decisions.of_course(load_course(of_two)).knowing(times)
    (said,) = (each for each in sentences(final(of_spread("2026-12-10 12:00"), decisions)) if "late" in each)
    assert said.removeprefix("spread: ").startswith(says)
