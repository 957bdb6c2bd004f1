"""Compute the final scores from a result: due dates, late penalties, and rows of overrides.yaml.

Only this module changes a result because of dates and decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, RootModel, model_validator

from ..files import CourseFault
from ..printable_text import visible_line
from ..result import Adjustment, CheckResult, ExerciseResult, Result, Rule, total_of, with_total
from . import Course
from .course_yaml_schema import (
    FileModel,
    Identifier,
    LatePolicy,
    Moment,
    Words,
    duration,
    moment,
    shown_duration,
    shown_moment,
    zone_named,
)
from .model import UnknownAssignment, assignment_named, line_of, read_model, unknown

NAME = "overrides.yaml"
NEXT = "Next: mend that line, then course overrides"
KINDS = ("score", "due", "excused")
Points = float | None  # None if an exercise is not graded
SHARE = "its share of the total"
# without characters that could change the display of a page or a terminal
Line = Annotated[str, AfterValidator(visible_line)]
UNKNOWN_TIME = "handed in at an unknown time: not counted as late"
EXCUSED = "excused: counts for nothing"


class Override(FileModel):
    """One decision about a student: a score, a due date or an excuse; or a comment for all who made
    the same mistake.
    """

    student: Words | None = Field(None, description="the name of the student's folder")
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

    @model_validator(mode="after")
    def _is_one_decision(self) -> Override:
        """Check that the row is a comment for a digest, or one decision about a student."""
        decisions = [field_name for field_name in KINDS if getattr(self, field_name) is not None]
        if self.answers and (self.student or decisions or not (self.exercise and self.comment)):
            raise ValueError(
                "a row with answers has an exercise and a comment, and no student and no decision"
            )
        if not (self.answers or self.student):
            raise ValueError("a row names a student")
        if self.student and len(decisions) != 1:
            raise ValueError(
                f"a row has one of {', '.join(KINDS)}; this one has"
                f" {' and '.join(decisions) or 'none'}"
            )
        if self.due is not None and self.exercise:
            raise ValueError(
                "due is of all exercises: name the assignment in place of the exercise"
            )
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


class Decision(NamedTuple):
    """A row of overrides.yaml that fits the course."""

    override: Override
    location: str  # the file and the line
    assignment: str
    exercises: tuple[str, ...]  # the ids of the exercises that the row is about
    max_score: float  # the points of these exercises
    due_date: datetime | None = None  # the student's own due date


@dataclass(frozen=True)
class Decisions:
    """The due dates of a course, and the rows of its overrides.yaml."""

    zone: str = ""
    dates: Mapping[str, Dates] = field(default_factory=dict)  # by assignment
    rows: tuple[Decision, ...] = ()

    @classmethod
    def of_course(cls, course: Course) -> Decisions:
        """Return the due dates of a course, and the rows of its overrides.yaml if there is one.

        Raises:
            CourseFault: the file cannot be read, a row does not fit the course, or two rows decide
                the same, so that one would have no effect.
        """
        path = course.root / NAME
        rows = list[Decision]()
        indices = dict[tuple[str | None, ...], int]()
        try:
            overrides, tree = read_model(path, OverridesFile, "course overrides")
        except FileNotFoundError:
            return cls(course.file.time_zone or "", dates_of(course))
        except OSError as error:
            raise CourseFault(f"{path} cannot be read ({error.strerror}). {NEXT}") from None
        for i, row in enumerate(overrides.root):
            location = f"{path}:{line_of(tree, (i,))}"
            try:
                rows.append(_decision_of_row(course, location, row))
                first_index = indices.setdefault(
                    (row.decision, row.student or row.answers, rows[-1].assignment, row.exercise), i
                )
                if first_index != i:
                    raise ValueError(
                        f"a second {row.decision} of the same; the first is in line "
                        f"{line_of(tree, (first_index,))}"
                    )
            except (ValueError, UnknownAssignment) as error:
                end = "" if str(error).endswith((".", "?")) else "."
                raise CourseFault(f"{location}: {error}{end} {NEXT}") from None
        return cls(course.file.time_zone or "", dates_of(course), tuple(rows))

    def rows_for(
        self, student: str, assignment: str, answers: Collection[str] = ()
    ) -> list[Decision]:
        """Return the rows about this student's submission, in the order of the file.

        Args:
            student: the student's name.
            assignment: the id of the assignment.
            answers: the digests of the wrong replies of its attempts. A row with such a digest is
                about all attempts with the same wrong replies.
        """
        rows = (row for row in self.rows if row.assignment == assignment)
        return [
            row
            for row in rows
            if row.override.student == student or row.override.answers in answers
        ]

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
            student = row.override.student
            if student is not None and student in groups:
                sentences.append(
                    f"{row.location}: {student!a} is a group, with {' and '.join(groups[student])}."
                    " Next: a row for each member in place of that line"
                )
            elif student and student not in names:
                near = get_close_matches(student, list(names), 1)
                suggestion = f" (is {near[0]!a} meant?)" if near else ""
                sentences.append(
                    f"{row.location}: there is no student {student!a}{suggestion}. {next_step}"
                )
        return sentences


def _decision_of_row(course: Course, location: str, override: Override) -> Decision:
    """Return the decision of a row. Raises ValueError or UnknownAssignment if it does not fit.

    Args:
        course: the course.
        location: the file and the line of the row.
        override: the row.
    """
    exercise_id = override.exercise
    by_its_exercise = override.exercise and not override.assignment
    among = (
        course.exercises
        if by_its_exercise
        else assignment_named(course, override.assignment).exercises
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
    if override.due is not None and assignment.row.due is None:
        raise ValueError(f"{assignment.id} has no due date to extend: give it `due` in course.yaml")
    zone = course.file.time_zone or ""
    due_date = None if override.due is None else moment(override.due, zone)
    if (
        due_date is not None
        and assignment.row.due is not None
        and due_date < (for_all := moment(assignment.row.due, zone))
    ):
        problem = (
            f"{shown_moment(due_date, zone)} is before the due date of {assignment.id}, "
            f"{shown_moment(for_all, zone)}"
        )
        raise ValueError(f"{problem}: a student's own date gives more time, and takes none")
    ids = tuple(exercise.id for exercise in exercises)
    return Decision(override, location, assignment.id, ids, max_score, due_date)


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
    due_date = total_rows["due"].due_date if "due" in total_rows else None
    until = f"extension until {shown_moment(due_date, decisions.zone)}" if due_date else ""
    adjustments = (
        [_change("due", until, 0, 0, total_rows["due"])] if due_date else list[Adjustment]()
    )
    if dates is not None and handed_in is not None and handed_in.time is not None:
        late = dates.late(handed_in.time, due_date)
    elif dates is not None and (handed_in is None or handed_in.late):
        words = (
            handed_in and f"{handed_in.source} says late, and not by how much: nothing is taken off"
        )
        adjustments.append(_change("unknown time", words or UNKNOWN_TIME, 0, 0))
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
        if any(
            row.override.decision != "due" for row in decisions.rows_for(name, template.assignment)
        ):
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
