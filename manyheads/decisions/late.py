"""How late a submission is, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ..course import Assignment, Course
from ..course.dates import duration, moment, zone_named
from ..course.file import LatePolicy

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NOTHING = LatePolicy()


@dataclass(frozen=True)
class Late:
    """Late, by so many days of which the last has begun, and the share of its points that this costs.

    free: how many of the student's free days it takes.
    """

    days: int
    share: float
    words: str
    free: int = 0


@dataclass(frozen=True)
class Dates:
    """The due date of an assignment, its late policy, and the zone whose clock counts the days."""

    due: datetime
    policy: LatePolicy
    zone: str = "UTC"

    def late(self, handed_in: datetime, extension: datetime | None = None, free: int = 0) -> Late | None:
        """Return how late this is; None where it is not. Within the grace nothing is late.

        Days count from the due date by the clock on the wall, so that a day in which clocks change is one day.

        Args:
            handed_in: when.
            extension: the student's own due date.
            free: days that cost nothing, as many as the student has left.
        """
        due = extension or self.due
        over = handed_in - due
        if over <= duration(self.policy.grace):
            return None
        by_clock = self._on_the_wall(handed_in) - self._on_the_wall(due)
        days = max(1, -(-by_clock // DAY))
        said = f"{days} {'day' if days == 1 else 'days'} late"
        if self.policy.cutoff is not None and by_clock > duration(self.policy.cutoff):
            return Late(days, 1.0, f"{said}: −100% (nothing is earned {self.policy.cutoff} after the due date)")
        used = min(free, days)
        if used:
            said += f", {used} of them free"
        if self.policy.per_hour is not None:
            number, unit, each = max(0, -(-(over - used * DAY) // HOUR)), "hour", _percent(self.policy.per_hour)
        else:
            number, unit, each = days - used, "day", _percent(self.policy.per_day)
        at_most = _percent(self.policy.at_most)
        cost = min(number * each, at_most)
        if not cost:
            return Late(days, 0.0, said, used)
        of = f"{each:g}% {'an' if unit == 'hour' else 'a'} {unit}, at most {at_most:g}%"
        hours = f", {number} {'hour' if number == 1 else 'hours'}" if unit == "hour" else ""
        return Late(days, cost / 100, f"{said}{hours}: −{cost:g}% ({of})", used)

    def _on_the_wall(self, when: datetime) -> datetime:
        return when.astimezone(zone_named(self.zone)).replace(tzinfo=None)


def dates_of(course: Course, assignment: Assignment) -> Dates | None:
    """The assignment's dates; None where it has no due date."""
    row, file = assignment.row, course.file
    if row.due is None:
        return None
    zone = file.time_zone or "UTC"
    return Dates(moment(row.due, file.time_zone or ""), row.late or file.late or NOTHING, zone)


def _percent(text: str) -> float:
    return float(text.removesuffix("%"))
