"""All decisions about a course's results: its dates, what lateness costs, and the rows of overrides.yaml."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches

from ..errors import CourseFault
from ..result import Result
from . import Assignment, Course
from .dates import duration, moment, zone_named
from .file import LatePolicy
from .named import UnknownAssignment, assignment_named, unknown
from .overrides_file import NAME, NEXT, Kind, Row, read_overrides

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Dates:
    """The due date of an assignment, its late policy, and the zone whose clock counts the days."""

    due: datetime
    policy: LatePolicy
    zone: str = "UTC"

    def late(self, handed_in: datetime, due: datetime | None = None) -> tuple[float, str] | None:
        """Return the share of its points that being late costs, and the words; None where it is not late.

        Within the grace nothing is late. Days count from the due date by the clock on the wall, so that a day in which
        clocks change is one day.

        Args:
            handed_in: when.
            due: the student's own due date.
        """
        due = due or self.due
        if handed_in - due <= duration(self.policy.grace):
            return None
        start, end = (when.astimezone(zone_named(self.zone)).replace(tzinfo=None) for when in (due, handed_in))
        days = max(1, -(-(end - start) // DAY))
        words = f"{days} {'day' if days == 1 else 'days'} late"
        per_day, at_most = _percent(self.policy.per_day), _percent(self.policy.at_most)
        cost = min(days * per_day, at_most)
        return cost / 100, f"{words}: −{cost:g}% ({per_day:g}% a day, at most {at_most:g}%)" if cost else words


def dates_of(course: Course) -> dict[str, Dates]:
    """Return the dates of each assignment that has a due date, by its id."""
    file, zone = course.file, course.file.time_zone or ""
    return {
        each.id: Dates(moment(each.row.due, zone), each.row.late or file.late or LatePolicy(), zone or "UTC")
        for each in course.assignments
        if each.row.due is not None
    }


def _percent(text: str) -> float:
    return float(text.removesuffix("%"))


# All decisions of a course: its dates, and the rows of overrides.yaml as they fit its exercises.


@dataclass(frozen=True)
class Decision:
    """A row that fits the course. exercises: those that it is about, with `most` points. time: of an extension or a hand-in."""

    row: Row
    assignment: str
    exercises: tuple[str, ...]
    time: datetime | None = None
    most: float = 0.0

    @property
    def kind(self) -> Kind:
        """What is decided."""
        return self.row.override.kind

    @property
    def student(self) -> str:
        """Whose it is; nobody's where it is for everybody."""
        return self.row.override.student


@dataclass(frozen=True)
class Decisions:
    """What is decided."""

    zone: str = ""
    dates: Mapping[str, Dates] = field(default_factory=dict)  # by assignment
    rows: tuple[Decision, ...] = ()

    @classmethod
    def of_course(cls, course: Course) -> Decisions:
        """Read them. Raises CourseFault."""
        dates, rows = dates_of(course), [_fitting(course, row) for row in read_overrides(course.root / NAME)]
        _demand_one_of_each(rows)
        return cls(course.file.time_zone or "", dates, tuple(rows))

    def about(self, student: str, assignment: str) -> list[Decision]:
        """Return what is decided about this student's submission, and about everybody's."""
        return [row for row in self.rows if row.assignment == assignment and row.student in (student, "")]

    def unfit(self, result: Result) -> Iterator[str]:
        """Yield a sentence for each row that names a check which this result has not, or a score above the check's points."""
        for decision in self.about(result.student, result.assignment):
            named, where = decision.row.override.check, decision.row.where
            for exercise in result.exercises if named else ():
                if exercise.id in decision.exercises and exercise.checks:
                    points = {check.id: check.max_score for check in exercise.checks}
                    if strange := next((name for name in named if name not in points), None):
                        said = (
                            f"there is no check {strange!a}{_meant(strange, points)}; there are: {', '.join(points)}."
                        )
                        yield f"{where}: {said} {NEXT}"
                        continue
                    most, score = sum(points[name] for name in named), decision.row.override.score or 0
                    if score > most:
                        yield f"{where}: score {score:g} is more than the {most:g} points there are. {NEXT}"

    def of_nobody(self, names: Collection[str], assignments: Collection[str]) -> list[str]:
        """Return a sentence for each row about these assignments whose student has none of these names."""
        return [
            f"{row.row.where}: there is no student {row.student!a}{_meant(row.student, names)}. "
            "Next: mend that line, or give --roster a file with everybody"
            for row in self.rows
            if row.assignment in assignments and row.student and row.student not in names
        ]


def _fitting(course: Course, row: Row) -> Decision:
    """Return the row as it fits the course. Raises CourseFault."""
    override = row.override
    assignment = _assignment(course, row)
    exercises = {exercise.id: exercise for exercise in assignment.exercises}
    if override.exercise and override.exercise not in exercises:
        said = unknown(list(assignment.exercises), override.exercise)
        raise CourseFault(f"{row.where}: {said} {NEXT}")
    ids = (override.exercise,) if override.exercise else tuple(exercises)
    most = sum(exercises[id_].points for id_ in ids)
    if override.score is not None and not override.check and override.score > most:
        said = f"score {override.score:g} is more than the {most:g} points of {override.exercise or assignment.id}"
        raise CourseFault(f"{row.where}: {said}; more is extra_credit. {NEXT}")
    time = override.extension or override.handed_in
    try:
        when = None if time is None else moment(time, course.file.time_zone or "")
    except ValueError as error:
        raise CourseFault(f"{row.where}: {override.kind}: {error}. {NEXT}") from None
    if override.kind == "extension" and assignment.row.due is None:
        raise CourseFault(f"{row.where}: {assignment.id} has no due date to extend. Next: give it `due` in course.yaml")
    return Decision(row, assignment.id, ids, when, most)


def _assignment(course: Course, row: Row) -> Assignment:
    """Return the assignment that the row is about. Raises CourseFault."""
    override = row.override
    if override.exercise and not override.assignment:
        for exercise in course.exercises:
            if exercise.id == override.exercise:
                return exercise.assignment
        raise CourseFault(f"{row.where}: {unknown(list(course.exercises), override.exercise)} {NEXT}")
    try:
        return assignment_named(course, override.assignment)
    except UnknownAssignment as error:
        raise CourseFault(f"{row.where}: {error} {NEXT}") from None


def _demand_one_of_each(rows: Sequence[Decision]) -> None:
    """Raise CourseFault where two rows decide the same thing: one of them would be lost."""
    seen: dict[tuple[str, str, str, str, str], str] = {}
    for row in rows:
        if row.kind == "comment":
            continue
        for exercise in row.exercises if row.row.override.exercise else ("",):
            for check in row.row.override.check or ("",):
                first = seen.setdefault((row.kind, row.student, row.assignment, exercise, check), row.row.where)
                if first != row.row.where:
                    said = f"a second {row.kind} of the same; the first is in line {first.rpartition(':')[2]}"
                    raise CourseFault(f"{row.row.where}: {said}. {NEXT}")


def _meant(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, list(known), 1)
    return f" (is {near[0]!a} meant?)" if near else ""
