"""Count a class once: its students, scores, misconceptions, and ungraded exercises.

`ClassView` takes results and a roster. It has an `AssignmentView` for each assignment, which has a
`Column` for each exercise and a `ClassRow` for each student. The terminal, the class page and the
exports read these counts, and count nothing themselves.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from math import ceil
from statistics import mean, median
from typing import NamedTuple

from ..course.final_scores import SHARE, UNKNOWN_TIME
from ..judge.results_folder import ChangedPoints
from ..result import (
    CheckResult,
    Diagnosed,
    ExerciseResult,
    Outcome,
    ProvedLine,
    Result,
    names_and_reason,
)
from ..submission.roster_and_times import Roster, Student
from ..submission.source import LOAD_ERROR, UNTOUCHED
from .report_content import (
    DECIDED,
    EXCUSED,
    IDS,
    MARKS,
    NOT_GRADED,
    Labels,
    adjustment_text,
    exercise_adjustments,
    points,
    score_words,
    was_not_run,
)

# shares of the points, as classes of scores
SHARES = ("none", "up to ¼", "up to ½", "up to ¾", "below full", "full")
BINS = 10  # the histogram of totals has as many bins, and one more for totals with all points
GRAVE: tuple[Outcome, ...] = ("crashed", "timeout")
EVERY = "every exercise"
# Smaller groups say little about a class. Classmates may also guess who made a rare mistake.
MIN_ATTEMPTS = 3
_FROM_FIRST_HASH = re.compile(r"\s*#.*")

# Groups of attempts that show no misconception.
NOT_GRADED_GROUP = "not graded"
NOT_BEGUN = "not begun"
NOT_IMPORTED = "cannot be imported"
UNEXPLAINED = "wrong in a way that no misconception explains"
# the isolation and the group of results that were read from a gradebook
NOT_HELD = "not in the gradebook"
GROUPS = (NOT_BEGUN, NOT_IMPORTED, UNEXPLAINED, NOT_GRADED_GROUP)  # in this order
# the diagnoses that put an attempt in a group
_GROUP_OF_DIAGNOSIS = {UNTOUCHED: NOT_BEGUN, LOAD_ERROR: NOT_IMPORTED}


@dataclass(frozen=True)
class ClassList:
    """The roster of a class.

    Attributes:
        roster: The students.
        zero: Whether a student who handed in nothing gets 0 points instead of a blank.
    """

    roster: Roster = field(default_factory=Roster)
    zero: bool = False

    @cached_property
    def by_name(self) -> dict[str, Student]:
        """The students of the roster by the name of their folder, in the roster's order."""
        return {student.id: student for student in self.roster.students}

    def row_of(self, name: str) -> Student:
        """Return the student with this folder name.

        If the roster has no such student, return one of whom only this name is known.
        """
        return self.by_name.get(name) or Student(id=name, name=name, login=name)

    def folder_name(self, name: str) -> str:
        """Return the folder name of the student with this folder name or GitHub account.

        If the roster has neither, return the name itself.
        """
        accounts = {
            student.github.casefold(): student.id
            for student in self.roster.students
            if student.github
        }
        return name if name in self.by_name else accounts.get(name.casefold(), name)

    def absent_students(self, names: Iterable[str]) -> list[str]:
        """Return the names of all students of the roster except `names`, in the roster's order."""
        name_set = {*names}
        return [name for name in self.by_name if name not in name_set]

    def strangers(self, names: Iterable[str]) -> list[str]:
        """Return the names that are missing from the roster, each once; [] without a roster."""
        return [name for name in dict.fromkeys(names) if self.by_name and name not in self.by_name]


NOBODY = ClassList()


def misconceptions_of(exercise: ExerciseResult) -> tuple[Diagnosed, ...]:
    """Return the misconceptions that the diagnosis of this exercise names.

    The diagnoses of an untouched stub and of a file that cannot be imported are left out.
    """
    return tuple(
        diagnosed for diagnosed in exercise.diagnosis if diagnosed.id not in _GROUP_OF_DIAGNOSIS
    )


def is_missing(exercise: ExerciseResult) -> bool:
    """Return whether nothing was handed in and no decision gives a score or an excuse.

    The penalty for a late submission is no decision about a file that is missing in it.
    """
    is_there = {check.outcome for check in exercise.checks} != {"missing"}
    is_decided = any(adjustment.rule != "late" for adjustment in exercise.adjustments)
    return not (is_there or is_decided or exercise.score or exercise.excused)


def group_of(exercise: ExerciseResult) -> str:
    """Return the group of an attempt that was handed in and shows no misconception.

    Return "" if the attempt shows a misconception, if no check failed, or if the exercise is
    excused. All attempts that are not graded form one group.
    """
    if exercise.excused:
        return ""
    if not exercise.is_graded:
        return NOT_GRADED_GROUP
    if misconceptions_of(exercise) or all(
        check.outcome in ("passed", "missing") for check in exercise.checks
    ):
        return ""
    return next(
        (_GROUP_OF_DIAGNOSIS[diagnosed.id] for diagnosed in exercise.diagnosis), UNEXPLAINED
    )


def share(score: float, max_score: float) -> int:
    """Return the index in SHARES of a score."""
    return len(SHARES) - 1 if score >= max_score else ceil(4 * score / max_score)


def not_graded(result: Result, labels: Labels = IDS) -> Iterator[str]:
    """Yield the exercises that are not graded, with the reason.

    Example: "04 The reshape dance: the grader itself failed here". Exercises with the same reason
    share one sentence.
    """
    unread = [
        attempt
        for attempt in result.exercises
        if attempt.id in result.not_graded and attempt.not_readable
    ]
    if unread:
        is_all = len(unread) == len(result.exercises)
        exercise_names = EVERY if is_all else _titles(unread, labels)
        names, reason = names_and_reason(unread[0].not_readable)
        yield f"handed in, {reason}: {names} ({exercise_names})"
    by_reason: dict[str, list[ExerciseResult]] = {}
    for exercise in result.exercises:
        if exercise.id in result.not_graded and exercise not in unread:
            evidence = next((check.evidence for check in exercise.checks if was_not_run(check)), "")
            reason = evidence.partition(";")[0].rstrip(".")
            by_reason.setdefault(reason, []).append(exercise)
    for reason, exercises in by_reason.items():
        is_all = len(exercises) == len(result.exercises) > 1
        exercise_names = EVERY if is_all else _titles(exercises, labels)
        yield f"{exercise_names}: {reason[:1].lower()}{reason[1:]}"


def _titles(exercises: Iterable[ExerciseResult], labels: Labels) -> str:
    return ", ".join(labels.exercise(exercise.id) for exercise in exercises)


def adjustments(result: Result, labels: Labels = IDS) -> Iterator[tuple[str, str]]:
    """Yield the title of an assignment or exercise with each of its adjustments.

    The text has the rule and the points before and after. An adjustment of the whole assignment is
    yielded once, not for each exercise.
    """
    yield from (
        (labels.assignment(result.assignment), adjustment_text(adjustment))
        for adjustment in result.adjustments
    )
    for exercise in result.exercises:
        label = labels.exercise(exercise.id)
        yield from (
            (label, adjustment_text(adjustment))
            for adjustment in exercise_adjustments(exercise, result)
            if adjustment.words != SHARE
        )


def sentences(result: Result, labels: Labels = IDS) -> Iterator[str]:
    """Yield the adjustments as sentences.

    Adjustments for unknown times are left out, because there may be as many as students.
    """
    yield from (
        f"{label}: {rule}" for label, rule in adjustments(result, labels) if rule != UNKNOWN_TIME
    )


class Cell(NamedTuple):
    """One attempt in a table of scores.

    Attributes:
        text: The text of the cell.
        share: The index in SHARES of its points, or None if it has no points.
    """

    text: str = ""
    share: int | None = None


def _cell(exercise: ExerciseResult) -> Cell:
    """Return the cell of an exercise: its points, or a mark if it has none.

    Marks for a crash or a timeout, and for a changed score, follow the points.
    """
    if exercise.excused or exercise.score is None:
        return Cell(EXCUSED if exercise.excused else NOT_GRADED)
    if is_missing(exercise):
        return Cell(MARKS["missing"], 0)
    outcomes = {check.outcome for check in exercise.checks}
    grave_mark = next((MARKS[outcome] for outcome in GRAVE if outcome in outcomes), "")
    is_changed = any(adjustment.before != adjustment.after for adjustment in exercise.adjustments)
    text = points(exercise.score) + grave_mark + (DECIDED if is_changed else "")
    return Cell(text, share(exercise.score, exercise.max_score))


class ClassRow(NamedTuple):
    """One student in one assignment.

    Attributes:
        student: The name of the student's folder.
        result: None if the student handed in nothing.
        cells: The cell of each exercise, by its id.
        outcomes: For each exercise, the outcome of each check, by their ids.
        total: The score as text.
        max_score: The most points that the assignment gives.
        misconception: The title of the first misconception, after the number of its exercise.
    """

    student: str
    result: Result | None
    cells: dict[str, Cell]
    outcomes: dict[str, dict[str, Outcome]]
    total: str
    max_score: float
    misconception: str = ""


class StudentAttempt(NamedTuple):
    """An attempt at one exercise, with the name of its student."""

    student: str
    exercise: ExerciseResult


class ClassMisconception(NamedTuple):
    """One misconception over the attempts of a class.

    Attributes:
        id: The id of the misconception.
        titles: Its titles, which may differ between exercises.
        names: The students who have it, in the order of the results.
        attempts: The number of attempts that have it.
        exercises: The number of attempts that have it, by exercise.
        alternatives: The title of each misconception that gives the same values, and in how many of
            these attempts.
        together: The title of each other misconception that the same attempts have, and in how many
            of these attempts.
        wrong_line: A line that is proved to be wrong in an attempt with this misconception alone,
            or "". Its comment is cut off, because a comment may contain a name.
    """

    id: str
    titles: list[str]
    names: list[str]
    attempts: int
    exercises: dict[str, int]
    alternatives: list[tuple[str, int]]
    together: list[tuple[str, int]]
    wrong_line: str = ""


class _Diagnosis(NamedTuple):
    student: str
    exercise: ExerciseResult
    misconception: Diagnosed


def most_frequent(attempts: Iterable[StudentAttempt]) -> list[ClassMisconception]:
    """Return the misconceptions of these attempts, the most frequent ones first.

    They are sorted by the number of students, then by the number of attempts. Attempts that are
    not graded are left out.
    """
    rows_by_id: dict[str, list[_Diagnosis]] = defaultdict(list)
    for student, exercise in attempts:
        for misconception in misconceptions_of(exercise) if exercise.is_graded else ():
            rows_by_id[misconception.id].append(_Diagnosis(student, exercise, misconception))
    misconceptions = []
    for id_, rows in rows_by_id.items():
        titles = list(dict.fromkeys(row.misconception.title for row in rows))
        names = list(dict.fromkeys(row.student for row in rows))
        exercises = dict(Counter(row.exercise.id for row in rows))
        alternatives = Counter(
            title for row in rows for title in row.misconception.alternative_titles
        )
        together = Counter(
            misconception.title
            for row in rows
            for misconception in misconceptions_of(row.exercise)
            if misconception.id != id_
        )
        wrong_lines = filter(None, (_wrong_line(row.exercise) for row in rows))
        misconceptions.append(
            ClassMisconception(
                id=id_,
                titles=titles,
                names=names,
                attempts=len(rows),
                exercises=exercises,
                alternatives=alternatives.most_common(),
                together=together.most_common(),
                wrong_line=next(wrong_lines, ""),
            )
        )
    return sorted(misconceptions, key=lambda entry: (-len(entry.names), -entry.attempts))


def _wrong_line(exercise: ExerciseResult) -> str:
    """Return the code of the first line that is proved to be wrong, without its comment.

    Return "" if the attempt has several misconceptions, or if the edit only adds code to the line.
    """
    if len(misconceptions_of(exercise)) != 1 or not exercise.lines:
        return ""
    before, _, after = exercise.lines[0].edit.partition(" → ")
    return "" if before in after else _without_comment(before)


def _without_comment(code: str) -> str:
    """Return a line of code without its comment.

    A line that Python cannot divide into tokens is cut at its first "#", so that no name is shown.
    """
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.COMMENT:
                return code[: token.start[1]].rstrip()
    except (tokenize.TokenError, SyntaxError):
        return _FROM_FIRST_HASH.sub("", code)
    return code


class CheckCount(NamedTuple):
    """A check of an exercise, and the number of attempts that passed it."""

    id: str
    title: str
    passed: int


class Column:
    """One exercise over the class. Attempts without points count in no mean.

    Attributes:
        id: The id of the exercise.
        number: Its number, as in the name of its file.
        label: Its number and title.
        max_score: The most points that it gives.
        counted: The attempts that count. All numbers here are about these.
        attempts: How many attempts count.
        not_graded: The number of attempts that are not graded.
        full: The number of attempts with all points.
        mean: The mean score of the graded attempts, or None if there are none.
        spread: The number of graded attempts in each of SHARES.
        misconceptions: The misconceptions of the graded attempts.
        groups: The number of attempts in each of GROUPS that has any.
        checks: Its checks.
    """

    def __init__(
        self,
        id_: str,
        number: str,
        label: str,
        all_attempts: Sequence[StudentAttempt],
        strangers: Sequence[str],
    ) -> None:
        """Count these attempts, which must be at least one.

        Attempts of strangers, excused attempts and exercises without a file do not count.
        If no student is left without the excused ones, these count.
        """
        enrolled = [attempt for attempt in all_attempts if attempt.student not in strangers]
        attempts = [attempt for attempt in enrolled if not attempt.exercise.excused] or enrolled
        self.counted = [attempt for attempt in attempts if _is_handed_in(attempt.exercise)]
        handed_in = [attempt.exercise for attempt in self.counted]
        graded = [exercise for exercise in handed_in if exercise.is_graded]
        scores = [exercise.score for exercise in graded if exercise.score is not None]
        groups = Counter(map(group_of, handed_in))
        self.id = id_
        self.number = number
        self.label = label
        self.max_score = all_attempts[0].exercise.max_score
        spread = Counter(share(score, self.max_score) for score in scores)
        titles = {
            check.id: check.title for attempt in all_attempts for check in attempt.exercise.checks
        }
        outcomes = Counter(
            (check.id, check.outcome) for exercise in handed_in for check in exercise.checks
        )
        self.attempts = len(handed_in)
        self.not_graded = len(handed_in) - len(graded)
        self.full = spread[len(SHARES) - 1]
        self.mean = mean(scores) if scores else None
        self.spread = [spread[i] for i in range(len(SHARES))]
        self.misconceptions = most_frequent(self.counted)
        self.groups = {group: groups[group] for group in GROUPS if groups[group]}
        self.checks = [
            CheckCount(check_id, title, outcomes[check_id, "passed"])
            for check_id, title in titles.items()
        ]


def _is_handed_in(exercise: ExerciseResult) -> bool:
    return any(check.outcome != "missing" for check in exercise.checks)


class Trouble(NamedTuple):
    """An attempt that crashed or ran out of time.

    Attributes:
        student: The student.
        exercise: The number and title of the exercise.
        checks: The checks that ended so, all with the same outcome.
    """

    student: str
    exercise: str
    checks: list[CheckResult]


class WrongLine(NamedTuple):
    """A line that is proved to be wrong.

    Attributes:
        student: The student.
        exercise: The number and title of the exercise.
        line: The line.
    """

    student: str
    exercise: str
    line: ProvedLine


class AppliedRule(NamedTuple):
    """An adjustment of a student's points.

    Attributes:
        student: The student.
        title: The title of the assignment or exercise.
        rule: The rule, with the points before and after.
    """

    student: str
    title: str
    rule: str


class AssignmentView:
    """One assignment over the class.

    Attributes:
        id: The id of the assignment.
        title: Its title.
        results: Its results.
        changed: The points that the last run changed.
        absent: The students of the roster who handed in nothing.
        strangers: The students missing from the roster. They count in no mean and no histogram.
        max_score: The most points that the assignment gives.
        mean: The mean of the totals, or None if there is no total.
        median: The median of the totals, or None if there is no total.
        totals: The number of submissions in each class of totals. Their sum is the number of
            submissions that count.
        columns: Its exercises.
        rows: Its students.
        misconceptions: Its misconceptions, the most frequent ones first. Like `alike` and `groups`,
            they are about the attempts that count.
        alike: Groups of attempts that made the same mistake, which no misconception explains.
        groups: For each of GROUPS, the exercises of each student.
        troubles: Attempts that crashed or ran out of time.
        lines: Lines that are proved to be wrong.
        decided: The adjustments.
        not_graded: Each student with a sentence about an exercise that is not graded.
        facts: Conditions of grading: for each, its values and how many submissions have them.
    """

    def __init__(self, id_: str, results: Sequence[Result], view: ClassView) -> None:
        """Count these results, which must be at least one.

        Results of strangers, and excused ones, count in no mean and no histogram. If no result is
        left without the excused ones, these count.
        """
        members = view.members
        labels = view.labels
        names = [result.student for result in results]
        attempts = [
            StudentAttempt(result.student, exercise)
            for result in results
            for exercise in result.exercises
        ]
        self.id = id_
        self.title = labels.assignment(id_)
        self.results = results
        self.changed = [change for change in view.changed if change.assignment == id_]
        self.absent = members.absent_students(names)
        self.strangers = members.strangers(names)
        enrolled = [result for result in results if result.student not in self.strangers]
        counting = [result for result in enrolled if not result.is_excused] or enrolled
        scores = [result.scaled_score for result in counting if result.scaled_score is not None]
        self.max_score = max(result.possible for result in results)
        self.mean = mean(scores) if scores else None
        self.median = median(scores) if scores else None
        self.totals = _totals(counting)
        attempts_by_id: dict[str, list[StudentAttempt]] = defaultdict(list)
        for attempt in attempts:
            attempts_by_id[attempt.exercise.id].append(attempt)
        numbers = labels.numbers_and_titles(list(attempts_by_id))
        self.columns = [
            Column(
                exercise_id,
                number,
                labels.exercise(exercise_id),
                attempts_by_id[exercise_id],
                self.strangers,
            )
            for exercise_id, (number, _) in numbers.items()
        ]
        self.rows = [_row(self.columns, result) for result in results]
        self.rows += [
            _row_of_absent(self.columns, name, self.max_score, is_zero=members.zero)
            for name in self.absent
        ]
        # sorted by student, because the page lists the names of each count
        counted = sorted(
            (attempt for column in self.columns for attempt in column.counted),
            key=lambda attempt: attempt.student,
        )
        self.misconceptions = most_frequent(counted)
        self.alike = _alike(counted)
        groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for student, exercise in counted:
            groups[group_of(exercise)][student].append(labels.exercise(exercise.id))
        self.groups = [(group, groups[group]) for group in GROUPS if group in groups]
        self.troubles = []
        for student, exercise in attempts:
            for outcome in GRAVE:
                checks = [check for check in exercise.checks if check.outcome == outcome]
                if checks:
                    self.troubles.append(Trouble(student, labels.exercise(exercise.id), checks))
        self.lines = [
            WrongLine(student, labels.exercise(exercise.id), line)
            for student, exercise in attempts
            for line in exercise.lines
        ]
        self.decided = [
            AppliedRule(result.student, title, rule)
            for result in results
            for title, rule in adjustments(result, labels)
        ]
        self.not_graded = [
            (result.student, why) for result in results for why in not_graded(result, labels)
        ]
        facts: dict[str, list[str]] = {}
        for name in ("isolation", "device", "seed"):
            facts[name] = [str(getattr(result, name)) for result in results]
        for name in dict.fromkeys(name for result in results for name in result.versions):
            facts[name] = [result.versions.get(name, "not recorded") for result in results]
        self.facts = {name: Counter(values).most_common() for name, values in facts.items()}


class Recurrence(NamedTuple):
    """A misconception that students had again in a later exercise.

    Attributes:
        title: The title of the misconception.
        first_id: The id of the first exercise.
        later_id: The id of the later exercise.
        students: The students.
    """

    title: str
    first_id: str
    later_id: str
    students: list[str]


@dataclass(frozen=True)
class ClassView:
    """One class.

    Attributes:
        results: The results, with the decisions and due dates applied.
        members: The roster.
        labels: The course's titles.
        changed: The points that the last run changed.
        day: The day on which the pages are written, which each page shows, or None if it is not
            shown.
    """

    results: Sequence[Result]
    members: ClassList = NOBODY
    labels: Labels = IDS
    changed: Sequence[ChangedPoints] = ()
    day: date | None = None

    @cached_property
    def assignments(self) -> list[AssignmentView]:
        """Its assignments, in the course's order."""
        return [
            AssignmentView(id_, results, self)
            for id_, results in self.labels.by_assignment(self.results)
        ]

    @cached_property
    def by_student(self) -> dict[str, list[Result]]:
        """The results of each student with a result, in the course's order."""
        student_results: dict[str, list[Result]] = {result.student: [] for result in self.results}
        for assignment in self.assignments:
            for result in assignment.results:
                student_results[result.student].append(result)
        return student_results

    @cached_property
    def came_back(self) -> list[Recurrence]:
        """The misconceptions that came back, the most frequent first."""
        titles: dict[str, str] = {}
        recurrences: dict[tuple[str, str, str], Recurrence] = {}
        for student, results in self.by_student.items():
            first_exercises: dict[str, str] = {}
            for exercise in (exercise for result in results for exercise in result.exercises):
                titles_by_id = {
                    diagnosed.id: diagnosed.title for diagnosed in misconceptions_of(exercise)
                }
                for id_, title in titles_by_id.items():
                    titles.setdefault(id_, title)
                    first_id = first_exercises.setdefault(id_, exercise.id)
                    if first_id != exercise.id:
                        new = Recurrence(titles[id_], first_id, exercise.id, [])
                        key = (id_, first_id, exercise.id)
                        recurrences.setdefault(key, new).students.append(student)
        position = self.labels.in_order(
            [exercise.id for result in self.results for exercise in result.exercises]
        ).index
        return sorted(
            recurrences.values(),
            key=lambda r: (-len(r.students), position(r.first_id), position(r.later_id)),
        )


class SameReplies(NamedTuple):
    """Attempts that give the same replies and that no misconception explains.

    Attributes:
        exercise: The id of the exercise.
        answers: The digest of the replies.
        students: The students.
    """

    exercise: str
    answers: str
    students: list[str]


def _alike(attempts: Sequence[StudentAttempt]) -> list[SameReplies]:
    """Return the groups of unexplained attempts with the same replies, the largest groups first.

    A group has at least MIN_ATTEMPTS.
    """
    students_by_answer: dict[tuple[str, str], list[str]] = defaultdict(list)
    for student, exercise in attempts:
        if exercise.answers and group_of(exercise) == UNEXPLAINED:
            students_by_answer[exercise.id, exercise.answers].append(student)
    groups = [
        SameReplies(exercise_id, answers, students)
        for (exercise_id, answers), students in students_by_answer.items()
        if len(students) >= MIN_ATTEMPTS
    ]
    return sorted(groups, key=lambda group: -len(group.students))


def _row(columns: Sequence[Column], result: Result) -> ClassRow:
    numbers = {column.id: column.number for column in columns}
    titles = (
        f"{numbers[exercise.id]}: {misconception.title}"
        for exercise in result.exercises
        for misconception in misconceptions_of(exercise)
    )
    cells = {exercise.id: _cell(exercise) for exercise in result.exercises}
    outcomes = {}
    for exercise in result.exercises:
        outcomes[exercise.id] = {check.id: check.outcome for check in exercise.checks}
    return ClassRow(
        result.student,
        result,
        cells,
        outcomes,
        total=score_words(result.score),
        max_score=result.max_score,
        misconception=next(titles, ""),
    )


def _row_of_absent(
    columns: Sequence[Column], student: str, max_score: float, *, is_zero: bool
) -> ClassRow:
    missing: Outcome = "missing"
    cell = Cell(MARKS[missing], 0 if is_zero else None)
    outcomes = {}
    for column in columns:
        outcomes[column.id] = dict.fromkeys((check.id for check in column.checks), missing)
    return ClassRow(
        student,
        None,
        dict.fromkeys(outcomes, cell),
        outcomes,
        total=points(0) if is_zero else cell.text,
        max_score=max_score,
    )


def _totals(results: Sequence[Result]) -> list[tuple[str, int]]:
    """Return the number of submissions in each class of totals, most points first.

    The classes are all points, and the BINS equal parts of the points. Submissions without a total
    come last, if there are any.
    """
    shares = [
        result.score / result.max_score if result.max_score else 1.0
        for result in results
        if result.score is not None
    ]
    tenths = Counter(int(BINS * share) for share in shares if share < 1)
    bins = [
        (f"{100 * i // BINS}–{100 * (i + 1) // BINS} %", tenths[i]) for i in reversed(range(BINS))
    ]
    if without := len(results) - len(shares):
        bins.append(("not graded", without))
    return [("all", sum(share >= 1 for share in shares)), *bins]
