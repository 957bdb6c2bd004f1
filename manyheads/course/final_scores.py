"""Compute the final scores from a result: due dates, late penalties, and rows of overrides.yaml.

Only this module changes a result because of dates and decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from operator import itemgetter
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import AfterValidator, BeforeValidator, Field, RootModel, model_validator

from ..files import CourseFault
from ..printable_text import visible_line
from ..result import Adjustment, CheckResult, ExerciseResult, Result, Rule, total_of, with_total
from . import Assignment, Course
from .course_yaml_schema import (
    Duration,
    FileModel,
    Identifier,
    LatePolicy,
    Moment,
    Words,
    duration,
    later_by,
    moment,
    shown_duration,
    shown_moment,
    zone_named,
)
from .model import UnknownAssignment, assignment_named, line_of, nearest_or_all, read_model, unknown

NAME = "overrides.yaml"
NEXT = "Next: mend that line, then course overrides"
KINDS = ("score", "due", "excused", "extra")
DATES = ("due", "extra")  # the decisions that give more time, and change no points
Points = float | None  # None if an exercise is not graded
SHARE = "its share of the total"
# without characters that could change the display of a page or a terminal
Line = Annotated[str, AfterValidator(visible_line)]
UNKNOWN_TIME = "handed in at an unknown time: not counted as late"
EXCUSED = "excused: counts for nothing"


class Override(FileModel):
    """One decision about students: a score, a due date, more time or an excuse; or a comment for
    all who made the same mistake.
    """

    student: Words | tuple[Words, ...] | None = Field(
        None, description="the name of the student's folder, or a list of such names"
    )
    section: Words | None = Field(
        None, description="in place of a student: all of this section of the roster"
    )
    group: Words | None = Field(
        None, description="in place of a student: all of this group of the roster"
    )
    answers: Words | None = Field(
        None, description="in place of a student: the class page has it of a mistake"
    )
    assignment: Identifier | None = Field(
        None, description="needed where the course has several, and no exercise says"
    )
    exercise: Identifier | None = Field(None, description="of all of them where none is named")
    score: float | None = Field(
        None, ge=0, description="in place of what the exercise or the assignment has earned"
    )
    due: Moment | None = Field(None, description="the student's own due date")
    extra: Duration | None = Field(
        None,
        description=(
            "more time from the due date of the class, such as 2 days: for every assignment with "
            "a due date, or for the one that is named"
        ),
    )
    excused: Literal[True] | None = Field(
        None, description="counts for nothing, neither points nor points possible"
    )
    by: Line = Field("", description="who decided")
    comment: Line = Field("", description="why: the student reads it")

    @property
    def decision(self) -> str:
        """The kind of decision: an entry of `KINDS`, or "comment"."""
        return next(
            (field_name for field_name in KINDS if getattr(self, field_name) is not None), "comment"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names in `student`."""
        return (self.student,) if isinstance(self.student, str) else self.student or ()

    @property
    def subject(self) -> str:
        """The students in words, such as "ada", "ada, bela" or "section A"."""
        if self.answers:
            return f"who answers {self.answers}"
        unit = f"group {self.group}" if self.group else f"section {self.section}"
        return ", ".join(self.names) or unit

    @model_validator(mode="after")
    def _is_one_decision(self) -> Override:
        """Check that the row is a comment for a digest, or one decision about students."""
        decisions = [field_name for field_name in KINDS if getattr(self, field_name) is not None]
        subjects = [*filter(None, (self.student, self.group, self.section))]
        if self.answers and (subjects or decisions or not (self.exercise and self.comment)):
            raise ValueError(
                "a row with answers has an exercise and a comment, and no student and no decision"
            )
        if not self.answers and len(subjects) != 1:
            raise ValueError("a row names a student or a list, a group or a section: one of them")
        if subjects and len(decisions) != 1:
            raise ValueError(
                f"a row has one of {', '.join(KINDS)}; this one has"
                f" {' and '.join(decisions) or 'none'}"
            )
        if decisions and decisions[0] in DATES and self.exercise:
            raise ValueError(
                f"{decisions[0]} is of all exercises: name the assignment in place of the exercise"
            )
        repeated = [name for name in self.names if self.names.count(name) > 1]
        if repeated:
            raise ValueError(f"{repeated[0]!a} is in the list twice")
        if self.extra is not None and not duration(self.extra):
            raise ValueError("extra should be more than 0")
        return self


class OverridesFile(
    RootModel[
        Annotated[tuple[Override, ...], BeforeValidator(lambda rows: () if rows is None else rows)]
    ]
):
    """The whole of overrides.yaml: a list of decisions."""


class Late(NamedTuple):
    """The delay of a late hand-in, and its penalty.

    Attributes:
        share: the penalty as a share of the points.
        words: the delay in words.
        costs: the penalty in words, or "".
    """

    share: float
    words: str
    costs: str


class Dates(NamedTuple):
    """The due date of an assignment, its late policy, and the zone whose clock counts the days."""

    due_date: datetime
    policy: LatePolicy
    zone: str = "UTC"

    def late(self, handed_in: datetime, due_date: datetime | None = None) -> Late | None:
        """Return the delay and the penalty of a hand-in, or None if it is in time.

        A hand-in within the grace period is in time. After it, the days since the due date are
        counted by the local clock and rounded up, so a day on which clocks change is one day.

        Args:
            handed_in: the time of the hand-in.
            due_date: the student's own due date, if there is one.
        """
        due_date = due_date or self.due_date
        policy = self.policy
        if handed_in - due_date <= duration(policy.grace):
            return None
        start, end = (
            when.astimezone(zone_named(self.zone) or UTC).replace(tzinfo=None)
            for when in (due_date, handed_in)
        )
        days = max(1, -(-(end - start) // timedelta(days=1)))
        after = shown_duration(end - start if end > start else handed_in - due_date)
        words = f"{after} after {start:%H:%M}: {days} {'day' if days == 1 else 'days'} late"
        per_day, at_most = (
            float(share.removesuffix("%")) for share in (policy.per_day, policy.at_most)
        )
        cost = min(days * per_day, at_most)
        return Late(
            cost / 100,
            words,
            f", −{cost:g}% ({per_day:g}% a day, at most {at_most:g}%)" if cost else "",
        )


def dates_of(course: Course) -> dict[str, Dates]:
    """Return the dates of each assignment that has a due date, by its id.

    Raises CourseFault if this system does not know the course's time zone.
    """
    file = course.file
    zone = course.file.time_zone or ""
    if zone and zone_named(zone) is None:
        raise CourseFault(
            f"{zone} is not known here: this system has no list of time zones. Next: pip install "
            "tzdata"
        )
    return {
        assignment.id: Dates(
            moment(assignment.row.due, zone),
            assignment.row.late or file.late or LatePolicy(),
            zone or "UTC",
        )
        for assignment in course.assignments
        if assignment.row.due is not None
    }


class Member(Protocol):
    """A student on the roster."""

    @property
    def id(self) -> str:
        """The name of the student's folder."""

    @property
    def section(self) -> str:
        """The name of the section, or ""."""

    @property
    def group(self) -> str:
        """The name of the group, or ""."""


class Decision(NamedTuple):
    """A row of overrides.yaml that fits the course, for one assignment."""

    override: Override
    location: str  # the file and the line
    assignment: str
    exercises: tuple[str, ...]  # the ids of the exercises that the row is about
    max_score: float  # the points of these exercises
    due_date: datetime | None  # the students' own due date
    students: frozenset[str]

    @property
    def line(self) -> str:
        """The number of its line."""
        return self.location.rpartition(":")[2]

    @property
    def key(self) -> tuple[str, str | None]:
        """The kind of decision, and the exercise. One row for each key holds for a student."""
        return self.override.decision, self.override.exercise

    @property
    def rank(self) -> tuple[bool, ...]:
        """The smallest rank has precedence: a student, a list, a group, a section.

        The rank of an `extra` also says whether it is for every assignment.
        """
        override = self.override
        return (
            override.section is not None,
            override.group is not None,
            not isinstance(override.student, str),
            override.extra is not None and override.assignment is None,
        )


@dataclass(frozen=True)
class Decisions:
    """The due dates of a course, and the rows of its overrides.yaml."""

    zone: str = ""
    dates: Mapping[str, Dates] = field(default_factory=dict)  # by assignment
    rows: tuple[Decision, ...] = ()

    @classmethod
    def of_course(cls, course: Course, members: Sequence[Member] = ()) -> Decisions:
        """Return the due dates of a course, and the rows of its overrides.yaml if there is one.

        Args:
            course: the course.
            members: the students on the roster, for rows about a section or a group.

        Raises:
            CourseFault: the file cannot be read, a row does not fit the course or the roster, or
                two rows decide the same, so that one would have no effect.
        """
        path = course.root / NAME
        dates = dates_of(course)
        rows = list[Decision]()
        first_decisions = dict[object, Decision]()
        try:
            overrides, tree = read_model(path, OverridesFile, "course overrides")
        except FileNotFoundError:
            return cls(course.file.time_zone or "", dates)
        except OSError as error:
            raise CourseFault(f"{path} cannot be read ({error.strerror}). {NEXT}") from None
        for i, row in enumerate(overrides.root):
            location = f"{path}:{line_of(tree, (i,))}"
            try:
                for decision in _decisions_of_row(course, location, row, members):
                    _refuse_second(decision, first_decisions)
                    rows.append(decision)
            except (ValueError, UnknownAssignment) as error:
                end = "" if str(error).endswith((".", "?")) else "."
                raise CourseFault(f"{location}: {error}{end} {NEXT}") from None
        return cls(course.file.time_zone or "", dates, tuple(rows))

    def rows_for(
        self, student: str, assignment: str, answers: Collection[str] = ()
    ) -> list[Decision]:
        """Return the rows that hold for this student's submission, first those about its due date.

        If several rows give dates, the latest date counts. If several rows decide the same in
        another way, the row with the smallest rank counts.

        Args:
            student: the student's name.
            assignment: the id of the assignment.
            answers: the digests of the wrong replies of its attempts. A row with such a digest is
                about all attempts with the same wrong replies.
        """
        rows = [
            row
            for row in self.rows
            if row.assignment == assignment
            and (student in row.students or row.override.answers in answers)
        ]
        other_rows = [row for row in rows if not row.due_date]
        by_rank = sorted(other_rows, key=lambda row: row.rank, reverse=True)
        valid_rows = {row.key: row for row in by_rank}
        decided = [row for row in other_rows if row.override.answers or row is valid_rows[row.key]]
        return [*self._rows_of_latest_date([row for row in rows if row.due_date]), *decided]

    def _rows_of_latest_date(self, rows: Sequence[Decision]) -> list[Decision]:
        """Return the rows that give a student the latest due date. There may be none.

        An `extra` counts from the latest `due` of the student's section or group. Then the result
        is this `due`, and the `extra` with the date of both together.
        """
        due_rows = [row for row in rows if row.override.decision == "due"]
        extra_rows = [row for row in rows if row.override.decision == "extra"]
        shared = latest_dated([row for row in due_rows if row.override.student is None])
        choices = [[row] for row in due_rows]
        for row in extra_rows:
            if shared is None:
                choices.append([row])
            else:
                assert shared.due_date is not None
                length = duration(row.override.extra or "")
                later = later_by(length, shared.due_date, self.zone)
                choices.append([shared, row._replace(due_date=later)])
        return max(choices, key=lambda choice: choice[-1].due_date or datetime.min, default=[])

    def of_nobody(
        self,
        names: Collection[str],
        assignments: Collection[str],
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> list[str]:
        """Return a sentence for each row of these assignments that is about no student.

        Such a row has the name of a group, or a name that is not in `names`.

        Args:
            names: the students.
            assignments: the ids of the assignments.
            groups: the members of each group. A row with the name of a group is never a student's.
        """
        sentences = []
        groups = groups or {}
        next_step = (
            "Next: mend that line, or add the student to the roster, which is FILE in `roster: "
            "FILE` of course.yaml"
        )
        for row in (row for row in self.rows if row.assignment in assignments):
            for student in row.override.names:
                if student in groups:
                    sentences.append(
                        f"{row.location}: {student!a} is a group, with "
                        f"{' and '.join(groups[student])}. Next: `group: {student}` in that line"
                    )
                elif student not in names:
                    near = get_close_matches(student, list(names), 1)
                    suggestion = f" (is {near[0]!a} meant?)" if near else ""
                    sentences.append(
                        f"{row.location}: there is no student {student!a}{suggestion}. {next_step}"
                    )
        return list(dict.fromkeys(sentences))


def _students_of(override: Override, location: str, members: Sequence[Member]) -> frozenset[str]:
    """Return the names of the students of a row. Case does not count.

    Raises CourseFault if it needs a roster, and ValueError if the roster has no such section or
    group.
    """
    column = "group" if override.group else "section"
    wanted_name = override.group or override.section
    if not wanted_name:
        return frozenset(override.names)
    names = {name.casefold(): name for member in members if (name := getattr(member, column))}
    if not names:
        raise CourseFault(
            f"{location}: {override.subject} needs a roster with a column `{column}`. Next: "
            "`roster: FILE` in course.yaml"
        )
    folded_name = wanted_name.casefold()
    if folded_name not in names:
        raise ValueError(
            f"there is no {column} {wanted_name!a} on the roster; "
            f"{nearest_or_all(folded_name, names)}"
        )
    return frozenset(
        member.id for member in members if getattr(member, column).casefold() == folded_name
    )


def _refuse_second(decision: Decision, first_decisions: dict[object, Decision]) -> None:
    """Raise ValueError if an earlier row of the same rank decides the same for a student.

    Args:
        decision: the row.
        first_decisions: the earlier rows. This one is added.
    """
    override = decision.override
    for name in sorted(decision.students) or [override.answers or ""]:
        key = (name, decision.assignment, decision.key, decision.rank)
        first_decision = first_decisions.setdefault(key, decision)
        if first_decision is not decision:
            student = f" for {name!a}" if isinstance(override.student, tuple) else ""
            raise ValueError(
                f"a second {override.decision} of the same{student}; the first is in line "
                f"{first_decision.line}"
            )


def _decisions_of_row(
    course: Course, location: str, override: Override, members: Sequence[Member]
) -> list[Decision]:
    """Return the decision of a row, once for each assignment that it is about.

    Raises CourseFault or ValueError if it does not fit.

    Args:
        course: the course.
        location: the file and the line of the row.
        override: the row.
        members: the students on the roster.
    """
    assignments: list[str | None] = [override.assignment]
    if override.extra and not override.assignment:
        assignments = [entry.id for entry in course.assignments if entry.row.due is not None]
    if not assignments:
        raise ValueError("no assignment has a due date to extend: give one a `due` in course.yaml")
    students = _students_of(override, location, members)
    return [_decision(course, location, override, id_, students) for id_ in assignments]


def _decision(
    course: Course,
    location: str,
    override: Override,
    assignment_id: str | None,
    students: frozenset[str],
) -> Decision:
    """Return the decision of a row for one assignment, as `_decisions_of_row` explains."""
    exercise_id = override.exercise
    by_its_exercise = override.exercise and not override.assignment
    among = (
        course.exercises if by_its_exercise else assignment_named(course, assignment_id).exercises
    )
    exercises = [exercise for exercise in among if exercise_id in (None, exercise.id)]
    if not exercises:
        raise ValueError(unknown(among, exercise_id or ""))
    assignment = exercises[0].assignment
    max_score = sum(exercise.points for exercise in exercises)
    if override.score is not None and override.score > max_score:
        raise ValueError(
            f"score {override.score:g} is more than the {max_score:g} points of "
            f"{exercise_id or assignment.id}"
        )
    ids = tuple(exercise.id for exercise in exercises)
    due_date = _due_date(course, assignment, override)
    return Decision(override, location, assignment.id, ids, max_score, due_date, students)


def _due_date(course: Course, assignment: Assignment, override: Override) -> datetime | None:
    """Return the due date that a row gives, or None if it gives none.

    Raises ValueError if the assignment has no due date, or a later one than the row.
    """
    if override.decision not in DATES:
        return None
    if assignment.row.due is None:
        raise ValueError(f"{assignment.id} has no due date to extend: give it `due` in course.yaml")
    zone = course.file.time_zone or ""
    for_all = moment(assignment.row.due, zone)
    if override.extra is not None:
        return later_by(duration(override.extra), for_all, zone)
    due_date = moment(override.due or "", zone)
    if due_date < for_all:
        problem = (
            f"{shown_moment(due_date, zone)} is before the due date of {assignment.id}, "
            f"{shown_moment(for_all, zone)}"
        )
        raise ValueError(f"{problem}: a student's own date gives more time, and takes none")
    return due_date


def latest_dated(rows: Sequence[Decision]) -> Decision | None:
    """Return the row with the latest date, or None if no row gives a date."""
    dated_rows = [(row.due_date, row) for row in rows if row.due_date]
    return max(dated_rows, key=itemgetter(0))[1] if dated_rows else None


def final(result: Result, decisions: Decisions) -> Result:
    """Return the result with its final scores, and with an adjustment for each change.

    Late penalties and decisions change the exercises, and the total is computed from them. A
    decision about the whole submission changes each exercise: a score by hand is divided in
    proportion to their points. A hand-in at an unknown time has no late penalty. Without any row or
    due date for the result, the same object is returned.
    """
    answers = {exercise.answers for exercise in result.exercises}
    rows = decisions.rows_for(result.student, result.assignment, answers)
    dates = decisions.dates.get(result.assignment)
    if not rows and dates is None:
        return result
    # the rows about the whole submission
    total_rows = {row.override.decision: row for row in rows if not row.override.exercise}
    late = None
    handed_in = result.handed_in
    adjustments = list[Adjustment]()
    due_date = None
    for row in rows:
        if row.due_date:
            extra = row.override.extra
            words = f"{shown_duration(duration(extra))} more," if extra else "extension"
            words += f" until {shown_moment(row.due_date, decisions.zone)}"
            adjustments.append(_change("due", words, 0, 0, row))
            due_date = row.due_date  # the last row has the latest date
    if dates is not None and handed_in is not None and handed_in.time is not None:
        late = dates.late(handed_in.time, due_date)
    elif dates is not None and (handed_in is None or handed_in.late):
        reason = (
            handed_in and f"{handed_in.source} says late, and not by how much: nothing is taken off"
        )
        adjustments.append(_change("unknown time", reason or UNKNOWN_TIME, 0, 0))
    exercises = [_exercise(exercise, rows, late) for exercise in result.exercises]
    recomputed = with_total(result, exercises)
    total = _plus(recomputed.score)
    if "score" in total_rows:
        by_hand = total_rows["score"].override.score or 0.0
        adjustments.append(
            _change(
                "score", f"total set to {by_hand:g}", result.score, by_hand, total_rows["score"]
            )
        )
    if "excused" in total_rows:
        adjustments.append(
            _change(
                "excused",
                EXCUSED,
                _plus(total_of(e.score for e in exercises)),
                0,
                total_rows["excused"],
            )
        )
    if late is not None and "score" not in total_rows:
        penalties = [
            adjustment
            for exercise in exercises
            if not exercise.excused
            for adjustment in exercise.adjustments
            if adjustment.rule == "late"
        ]
        lost = sum(penalty.before - penalty.after for penalty in penalties)
        adjustments.append(
            _change("late", late.words + (late.costs if lost else ""), _plus(total, lost), total)
        )
    return recomputed.model_copy(update={"score": total, "adjustments": tuple(adjustments)})


def with_excuses(result: Result, decisions: Decisions) -> Result:
    """Return the result with the excuses, and without any other decision.

    It is for the points of a gradebook, which already include the other decisions.
    """
    excuses = tuple(row for row in decisions.rows if row.override.decision == "excused")
    return final(result, Decisions(decisions.zone, {}, excuses))


def of_the_absent(template: Result, decisions: Decisions, names: Sequence[str]) -> Iterator[Result]:
    """Yield a result for each student without a hand-in but with a score by hand or an excuse.

    Args:
        template: another student's result for the same assignment, with the same exercises.
        decisions: the decisions of the course.
        names: the students without a hand-in.
    """
    exercises = []
    note = "Nothing was handed in."
    for exercise in template.exercises:
        checks = [
            check.model_dump(include={"id", "title", "max_score"}) for check in exercise.checks
        ]
        missing = tuple(CheckResult(**check, outcome="missing", score=0) for check in checks)
        exercises.append(
            ExerciseResult(
                id=exercise.id, score=0, max_score=exercise.max_score, checks=missing, note=note
            )
        )
    no_hand_in = with_total(
        template.model_copy(update={"handed_in": None, "adjustments": ()}), exercises
    )
    for name in names:
        rows = decisions.rows_for(name, template.assignment)
        if any(row.override.decision not in DATES for row in rows):
            counted = final(no_hand_in.model_copy(update={"student": name}), decisions)
            adjustments = tuple(
                adjustment
                for adjustment in counted.adjustments
                if adjustment.rule != "unknown time"
            )
            yield counted.model_copy(update={"adjustments": adjustments})


def _exercise(
    result: ExerciseResult, rows: Sequence[Decision], late: Late | None
) -> ExerciseResult:
    """Return an exercise with its final score.

    Only the rows about this exercise count. A score by hand replaces the late penalty, and
    a score for the whole assignment replaces one for the exercise. An exercise that is not graded
    has no points, and so no penalty, unless a person gives it points.
    """
    rows = [row for row in rows if result.id in row.exercises]
    by_hand = [row for row in rows if row.override.decision == "score"]
    adjustments = list[Adjustment]()
    score = result.score
    # A total for the assignment comes last, and replaces the score of the exercise.
    for row in sorted(by_hand, key=lambda row: not row.override.exercise):
        previous = score
        score = row.override.score or 0.0
        if row.override.exercise:
            adjustments.append(_change("score", f"score set to {score:g}", previous, score, row))
        else:
            score *= result.max_score / row.max_score
            adjustments.append(_change("score", SHARE, previous, score))
    if late is not None and not by_hand:  # a score by hand is final
        previous = score
        score = _plus(score, -(score or 0.0) * late.share)
        adjustments.append(_change("late", late.words + late.costs, previous, score))
    alike = (row for row in rows if row.override.answers == result.answers)
    adjustments += [_change("comment", "comment", score, score, row) for row in alike]
    excuses = [row for row in rows if row.override.decision == "excused"]
    adjustments += [_change("excused", EXCUSED, score, 0, row) for row in excuses]
    changed = {"score": score, "adjustments": tuple(adjustments), "excused": bool(excuses)}
    return result.model_copy(update=changed) if adjustments else result


def _change(
    rule: Rule, words: str, before: Points, after: Points, row: Decision | None = None
) -> Adjustment:
    """Return an adjustment with words such as "score set to 4 by Ada: a right idea".

    If there are no points before or after it, the adjustment has only words, and both points are 0.

    Args:
        rule: the kind of the change.
        words: the first words.
        before: the points before the change.
        after: the points after the change.
        row: the decision, with the person who decided and the reason.
    """
    by, why = (row.override.by, row.override.comment) if row else ("", "")
    words += f" by {by}" if by else ""
    words += f": {why}" if why else ""
    points = (0.0, 0.0) if before is None or after is None else (before, after)
    return Adjustment(rule=rule, words=" ".join(words.split()), before=points[0], after=points[1])


def _plus(score: Points, change: float = 0.0) -> Points:
    """Return the score after a change: at least 0, with 6 decimals, or None if there is none."""
    return None if score is None else round(max(0.0, score + change), 6)
