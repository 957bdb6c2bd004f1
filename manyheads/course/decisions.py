"""All decisions about a course's results: its dates, what lateness costs, and the rows of overrides.yaml.

Every error names the file and the line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, model_validator

from ..errors import CourseFault
from . import Course
from .dates import Moment, duration, moment, zone_named
from .file import Identifier, LatePolicy
from .load import line_of, read_model
from .named import UnknownAssignment, assignment_named, unknown

NAME = "overrides.yaml"
NEXT = "Next: mend that line, then course overrides"

Kind = Literal["score", "due", "excused"]
KINDS: tuple[Kind, ...] = ("score", "due", "excused")
DAY = timedelta(days=1)


def _name(value: object) -> object:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"YAML reads this as {value!r}: put it in quotes")
    return value


Text = Annotated[str, BeforeValidator(_name)]
Points = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)]


class Override(BaseModel):
    """One decision about a student: a score, a due date or an excuse."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: Text = Field(min_length=1, description="the name of the student's folder")
    assignment: Identifier | None = Field(None, description="needed where the course has several, and no exercise says")
    exercise: Identifier | None = Field(None, description="of all of them where none is named")
    score: Points | None = Field(
        None, description="in place of what the exercise or, where none is named, the assignment has earned"
    )
    due: Moment | None = Field(None, description="the student's own due date")
    excused: Literal[True] | None = Field(None, description="counts for nothing, neither points nor points possible")
    by: Text = Field("", description="who decided")
    comment: Text = Field("", description="why: the student reads it")

    @property
    def kind(self) -> Kind:
        """What is decided."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _is_one_decision(self) -> Override:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are two decisions: write a row for each")
        if not given:
            raise ValueError(f"nothing is decided; a row has one of {', '.join(KINDS)}")
        if self.due is not None and self.exercise:
            raise ValueError("due is of all exercises: name the assignment in place of the exercise")
        return self


def _rows(value: object) -> object:
    return () if value is None else value  # nothing but remarks


class OverridesFile(RootModel[Annotated[tuple[Override, ...], BeforeValidator(_rows)]]):
    """The whole of overrides.yaml: a list of decisions."""


def read_overrides(path: Path) -> list[tuple[str, Override]]:
    """Return where each row of the file stands, and the row; none if there is no file. Raises CourseFault."""
    try:
        found, node = read_model(path, OverridesFile, "course overrides")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CourseFault(f"{path} cannot be read ({error.strerror}). Next: mend that, then course overrides") from None
    return [(f"{path}:{line_of(node, (i,))}", row) for i, row in enumerate(found.root)]


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
        per_day, at_most = (float(share.removesuffix("%")) for share in (self.policy.per_day, self.policy.at_most))
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


@dataclass(frozen=True)
class Decision:
    """A row of overrides.yaml that fits the course.

    where: the file and the line. exercises: those that it is about, with `most` points. due: the student's own due date.
    """

    override: Override
    where: str
    assignment: str
    exercises: tuple[str, ...]
    most: float
    due: datetime | None = None


@dataclass(frozen=True)
class Decisions:
    """What is decided."""

    zone: str = ""
    dates: Mapping[str, Dates] = field(default_factory=dict)  # by assignment
    rows: tuple[Decision, ...] = ()

    @classmethod
    def of_course(cls, course: Course) -> Decisions:
        """Read them. Raises CourseFault, also where two rows decide the same: one of them would be lost."""
        rows = tuple(_fitting(course, where, override) for where, override in read_overrides(course.root / NAME))
        seen: dict[tuple[str | None, ...], str] = {}
        for row in rows:
            kind = row.override.kind
            first = seen.setdefault((kind, row.override.student, row.assignment, row.override.exercise), row.where)
            if first != row.where:
                said = f"a second {kind} of the same; the first is in line {first.rpartition(':')[2]}"
                raise CourseFault(f"{row.where}: {said}. {NEXT}")
        return cls(course.file.time_zone or "", dates_of(course), rows)

    def about(self, student: str, assignment: str) -> list[Decision]:
        """Return what is decided about this student's submission."""
        return [row for row in self.rows if (row.assignment, row.override.student) == (assignment, student)]

    def of_nobody(self, names: Collection[str], assignments: Collection[str]) -> list[str]:
        """Return a sentence for each row about these assignments whose student has none of these names."""
        said = []
        for row in self.rows:
            if row.assignment in assignments and (student := row.override.student) not in names:
                near = get_close_matches(student, list(names), 1)
                meant = f" (is {near[0]!a} meant?)" if near else ""
                following = "Next: mend that line, or give --roster a file with everybody"
                said.append(f"{row.where}: there is no student {student!a}{meant}. {following}")
        return said


def _fitting(course: Course, where: str, override: Override) -> Decision:
    """Return the row as it fits the course. Raises CourseFault."""
    wanted = override.exercise
    named = next((each for each in course.exercises if each.id == wanted), None)
    try:
        assignment = (
            named.assignment if named and not override.assignment else assignment_named(course, override.assignment)
        )
    except UnknownAssignment as error:
        said = unknown(course.exercises, wanted) if wanted and not override.assignment else str(error)
        raise CourseFault(f"{where}: {said} {NEXT}") from None
    if wanted and named not in assignment.exercises:
        raise CourseFault(f"{where}: {unknown(assignment.exercises, wanted)} {NEXT}")
    exercises = assignment.exercises if named is None else (named,)
    most = sum(each.points for each in exercises)
    if override.score is not None and override.score > most:
        said = f"score {override.score:g} is more than the {most:g} points of {wanted or assignment.id}"
        raise CourseFault(f"{where}: {said}. {NEXT}")
    try:
        due = None if override.due is None else moment(override.due, course.file.time_zone or "")
    except ValueError as error:
        raise CourseFault(f"{where}: due: {error}. {NEXT}") from None
    if due is not None and assignment.row.due is None:
        raise CourseFault(f"{where}: {assignment.id} has no due date to extend. Next: give it `due` in course.yaml")
    return Decision(override, where, assignment.id, tuple(each.id for each in exercises), most, due)
