"""How late a submission is, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ..course import Assignment, Course
from ..course.dates import duration, moment
from ..course.file import LatePolicy

DAY = timedelta(days=1)
NOTHING = LatePolicy()


@dataclass(frozen=True)
class Late:
    """Late, by so many days of which the last has begun, and the share of its points that this costs."""

    days: int
    share: float
    words: str


@dataclass(frozen=True)
class Dates:
    """The due date of an assignment, and its late policy."""

    due: datetime
    policy: LatePolicy

    def late(self, handed_in: datetime, extension: datetime | None = None) -> Late | None:
        """How late this is; None where it is not. Days count from the due date; within the grace nothing is late."""
        over = handed_in - (extension or self.due)
        if over <= duration(self.policy.grace):
            return None
        days = -(-over // DAY)
        per_day, at_most = (_percent(text) for text in (self.policy.per_day, self.policy.at_most))
        cost = min(days * per_day, at_most)
        said = f"{days} {'day' if days == 1 else 'days'} late"
        if not cost:
            return Late(days, 0.0, said)
        return Late(days, cost / 100, f"{said}: −{cost:g}% ({per_day:g}% a day, at most {at_most:g}%)")


def dates_of(course: Course, assignment: Assignment) -> Dates | None:
    """The assignment's dates; None where it has no due date."""
    row, file = assignment.row, course.file
    if row.due is None:
        return None
    return Dates(moment(row.due, file.time_zone or ""), row.late or file.late or NOTHING)


def _percent(text: str) -> float:
    return float(text.removesuffix("%"))
