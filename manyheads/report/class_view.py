"""One class, counted once: who is in it, what each attempt earned, who misunderstood what, and what
is not graded.

Terminal, class page, Markdown and exports read it, and count nothing themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from math import ceil
from statistics import mean, median
from typing import NamedTuple

from ..course.decisions import SHARE, UNKNOWN_TIME
from ..judge.record_results import ChangedPoints
from ..result import Diagnosed, ExerciseResult, Outcome, Result, names_and_reason
from ..submission.roster import Roster, Student
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
BINS = 10  # of the histogram of totals; totals with all points are separate
GRAVE: tuple[Outcome, ...] = ("crashed", "timeout")

# Diagnoses of attempts in which there is nothing to misunderstand: groups of their own beside the
# misconceptions.
NOT_GRADED_GROUP, NOT_BEGUN, NOT_IMPORTED = "not graded", "not begun", "cannot be imported"
UNEXPLAINED = "wrong in a way that no misconception explains"
NOT_HELD = "not in the gradebook"  # as isolation and as group of results that were read from one
GROUPS = (NOT_BEGUN, NOT_IMPORTED, UNEXPLAINED, NOT_GRADED_GROUP)  # in this order
_GROUPS = {UNTOUCHED: NOT_BEGUN, LOAD_ERROR: NOT_IMPORTED}


@dataclass(frozen=True)
class ClassList:
    """The roster, and whether nothing handed in counts as 0 or as a blank."""

    roster: Roster = field(default_factory=Roster)
    zero: bool = False

    @cached_property
    def by_name(self) -> dict[str, Student]:
        """Everybody on it, by the name of the folder, in the roster's order."""
        return {student.id: student for student in self.roster.students}

    def row_of(self, name: str) -> Student:
        """Return the student who is called so; of somebody who is not on the roster the name is all
        that is known.
        """
        return self.by_name.get(name) or Student(id=name, name=name, login=name)

    def named(self, name: str) -> str:
        """Return what the roster calls whoever is called so, there or on GitHub; the name itself
        where it knows nobody.
        """
        accounts = {
            student.github.casefold(): student.id
            for student in self.roster.students
            if student.github
        }
        return name if name in self.by_name else accounts.get(name.casefold(), name)

    def absent(self, names: Iterable[str]) -> list[str]:
        """Return who is on the roster and not among these, in the roster's order."""
        name_set = {*names}
        return [name for name in self.by_name if name not in name_set]

    def strangers(self, names: Iterable[str]) -> list[str]:
        """Return who is among these and not on the roster; nobody where there is no roster."""
        return [name for name in dict.fromkeys(names) if self.by_name and name not in self.by_name]


NOBODY = ClassList()


def misconceptions_of(exercise: ExerciseResult) -> tuple[Diagnosed, ...]:
    """Return what the student misunderstood, as far as it is named."""
    return tuple(diagnosed for diagnosed in exercise.diagnosis if diagnosed.id not in _GROUPS)


def is_missing(exercise: ExerciseResult) -> bool:
    """Return whether nothing was handed in of it, and no rule says more."""
    is_there = {check.outcome for check in exercise.checks} != {"missing"}
    return not (is_there or exercise.adjustments or exercise.score or exercise.excused)


def group_of(exercise: ExerciseResult) -> str:
    """Return why an attempt that was handed in shows no misconception; "" where it shows one, or is
    right.
    """
    if not exercise.is_graded:
        return NOT_GRADED_GROUP
    if misconceptions_of(exercise) or all(
        check.outcome in ("passed", "missing") for check in exercise.checks
    ):
        return ""
    return next((_GROUPS[diagnosed.id] for diagnosed in exercise.diagnosis), UNEXPLAINED)


def share(score: float, max_score: float) -> int:
    """Return the index in SHARES of a score."""
    return 5 if score >= max_score else ceil(4 * score / max_score)


def not_graded(result: Result, labels: Labels = IDS) -> Iterator[str]:
    """Name each exercise that is not graded, and the reason: 04 The reshape dance: the grader
    itself failed here.

    Those that may be in what nobody can read are named together.
    """
    unread = [
        attempt
        for attempt in result.exercises
        if attempt.id in result.not_graded and attempt.not_readable
    ]
    if unread:
        all_unread = len(unread) == len(result.exercises)
        exercise_names = (
            "every exercise"
            if all_unread
            else ", ".join(labels.exercise(attempt.id) for attempt in unread)
        )
        names, reason = names_and_reason(unread[0].not_readable)
        yield f"handed in, {reason}: {names} ({exercise_names})"
    for exercise in result.exercises:
        if exercise.id in result.not_graded and exercise not in unread:
            evidence = next((check.evidence for check in exercise.checks if was_not_run(check)), "")
            reason = evidence.partition(";")[0].rstrip(".")
            yield f"{labels.exercise(exercise.id)}: {reason[:1].lower()}{reason[1:]}"


def decided(result: Result, labels: Labels = IDS) -> Iterator[tuple[str, str]]:
    """Yield what each adjustment is of, and the rule with the points before and after; what is so
    for all of it once.
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
    """Yield the same as sentences, without unknown times: of these there may be as many as
    students.
    """
    yield from (
        f"{label}: {rule}" for label, rule in decided(result, labels) if rule != UNKNOWN_TIME
    )


class Cell(NamedTuple):
    """One attempt in a table of scores: what stands there, and the index in SHARES of its points;
    None where there are none.
    """

    text: str = ""
    share: int | None = None


def _cell(exercise: ExerciseResult) -> Cell:
    if exercise.excused or exercise.score is None:
        return Cell(EXCUSED if exercise.excused else NOT_GRADED)
    if is_missing(exercise):
        return Cell(MARKS["missing"], 0)
    ends = {check.outcome for check in exercise.checks}
    note = next((MARKS[outcome] for outcome in GRAVE if outcome in ends), "")
    rule = (
        DECIDED
        if any(adjustment.before != adjustment.after for adjustment in exercise.adjustments)
        else ""
    )
    return Cell(points(exercise.score) + note + rule, share(exercise.score, exercise.max_score))


class ClassRow(NamedTuple):
    """One student in one assignment.

    result: None of who handed in nothing. cells, outcomes: by exercise, and those by check.
    """

    student: str
    result: Result | None
    cells: dict[str, Cell]
    outcomes: dict[str, dict[str, Outcome]]
    total: str
    max_score: float
    misconception: str = ""  # the first misconception


class Named(NamedTuple):
    """One misconception.

    titles: its titles, which may differ between exercises. names: the students who have it, in the
        order of the results.
    exercises: how many attempts have it in each exercise.
    alternatives: in how many of them another misconception has the same values, by its title.
    together: how many of them have another misconception as well, by its title.
    """

    id: str
    titles: list[str]
    names: list[str]
    attempts: int
    exercises: dict[str, int]
    alternatives: list[tuple[str, int]]
    together: list[tuple[str, int]]


def named(attempts: Iterable[tuple[str, ExerciseResult]]) -> list[Named]:
    """Return the misconceptions of these attempts, each with its student, those of most students
    first, then of most attempts.
    """
    rows_by_id: dict[str, list[tuple[str, ExerciseResult, Diagnosed]]] = defaultdict(list)
    for student, exercise in attempts:
        for misconception in misconceptions_of(exercise):
            rows_by_id[misconception.id].append((student, exercise, misconception))
    misconceptions = []
    for id_, rows in rows_by_id.items():
        titles = list(dict.fromkeys(diagnosed.title for _, _, diagnosed in rows))
        names = list(dict.fromkeys(student for student, _, _ in rows))
        exercises = dict(Counter(exercise.id for _, exercise, _ in rows))
        either = Counter(
            title for _, _, diagnosed in rows for title in diagnosed.alternative_titles
        )
        together = Counter(
            d.title for _, exercise, _ in rows for d in misconceptions_of(exercise) if d.id != id_
        )
        misconceptions.append(
            Named(
                id_,
                titles,
                names,
                len(rows),
                exercises,
                either.most_common(),
                together.most_common(),
            )
        )
    return sorted(misconceptions, key=lambda entry: (-len(entry.names), -entry.attempts))


class Column:
    """One exercise over the class, without points that there are not.

    attempts: how many students handed something in. mean: of those of them who are graded, None
        where nobody is.
    spread: how many students have each of SHARES. groups: how many attempts are in each of GROUPS
        that has any.
    checks: id, title, how many students passed it, and how many have it.
    """

    def __init__(
        self,
        id_: str,
        number: str,
        label: str,
        here: Sequence[tuple[str, ExerciseResult]],
        strangers: Sequence[str],
    ) -> None:
        """Count these attempts, of which those of strangers stand in the checks alone."""
        enrolled = [attempt for attempt in here if attempt[0] not in strangers]
        attempts = [attempt for attempt in enrolled if not attempt[1].excused] or enrolled
        counting = [exercise for _, exercise in attempts]
        graded = [exercise for exercise in counting if exercise.is_graded]
        handed_in = [
            exercise
            for exercise in counting
            if any(check.outcome != "missing" for check in exercise.checks)
        ]
        scores = [exercise.score for exercise in handed_in if exercise.score is not None]
        groups = Counter(map(group_of, handed_in))
        spread = Counter(
            share(exercise.score, exercise.max_score)
            for exercise in graded
            if exercise.score is not None
        )
        checks = [check for _, exercise in here for check in exercise.checks]
        titles, check_counts = (
            {check.id: check.title for check in checks},
            Counter(check.id for check in checks),
        )
        passed = Counter(check.id for check in checks if check.outcome == "passed")
        self.id, self.number, self.label, self.max_score = id_, number, label, here[0][1].max_score
        self.attempts, self.not_graded = len(handed_in), len(counting) - len(graded)
        self.full = sum(exercise.score == exercise.max_score for exercise in graded)
        self.mean = mean(scores) if scores else None
        self.spread = [spread[i] for i in range(len(SHARES))]
        self.misconceptions = named(attempt for attempt in attempts if attempt[1].is_graded)
        self.groups = {group: groups[group] for group in GROUPS if groups[group]}
        self.checks = [
            (id_, title, passed[id_], check_counts[id_]) for id_, title in titles.items()
        ]


class Part:
    """One assignment over the class.

    changed: whose points the last run changed.
    absent: who is on the roster and handed in nothing. strangers: who is not on it: in no mean and
        no histogram.
    totals: how many submissions have which share of the points. groups: of each of GROUPS the
        exercises of each student.
    alike: attempts that answer alike, and that no misconception explains, for they made the
    same mistake: the exercise, the digest of what they answer, the students.
    troubles: attempts that crashed or ran out of time, by student and exercise, with these checks.
    lines: those that are proved to be wrong, by student and exercise. not_graded: who is not graded
        in what, and why.
    decided: who got what by which rule: the student, what it is of, the rule.
    facts: conditions of grading, each with its values and how many submissions have them.
    """

    def __init__(self, id_: str, results: Sequence[Result], view: ClassView) -> None:
        """Count these results."""
        members, labels = view.members, view.labels
        names = [result.student for result in results]
        attempts = [
            (result.student, exercise) for result in results for exercise in result.exercises
        ]
        self.id, self.title, self.results = id_, labels.assignment(id_), results
        self.changed = [change for change in view.changed if change.assignment == id_]
        self.absent, self.strangers = members.absent(names), members.strangers(names)
        enrolled = [result for result in results if result.student not in self.strangers]
        counting = [result for result in enrolled if not result.is_excused] or enrolled
        scores = [result.scaled_score for result in counting if result.scaled_score is not None]
        self.max_score = max(result.possible for result in results)
        self.mean = mean(scores) if scores else None
        self.median = median(scores) if scores else None
        self.totals = _totals(counting)
        self.columns = [
            Column(
                id_,
                number,
                labels.exercise(id_),
                [attempt for attempt in attempts if attempt[1].id == id_],
                self.strangers,
            )
            for id_, (number, _) in labels.numbered(
                [exercise.id for _, exercise in attempts]
            ).items()
        ]
        self.rows = [_row(self.columns, result) for result in results]
        self.rows += [
            _nothing(self.columns, name, self.max_score, members.zero) for name in self.absent
        ]
        self.misconceptions, self.alike = named(attempts), _alike(attempts)
        groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for student, exercise in attempts:
            groups[group_of(exercise)][student].append(labels.exercise(exercise.id))
        self.groups = [(group, groups[group]) for group in GROUPS if group in groups]
        self.troubles = [
            (student, labels.exercise(exercise.id), checks)
            for student, exercise in attempts
            for outcome in GRAVE
            if (checks := [check for check in exercise.checks if check.outcome == outcome])
        ]
        self.lines = [
            (name, labels.exercise(attempt.id), line)
            for name, attempt in attempts
            for line in attempt.lines
        ]
        self.decided = [
            (result.student, *decision)
            for result in results
            for decision in decided(result, labels)
        ]
        self.not_graded = [
            (result.student, why) for result in results for why in not_graded(result, labels)
        ]
        facts = {
            name: [str(getattr(result, name)) for result in results]
            for name in ("isolation", "device", "seed")
        }
        for name in dict.fromkeys(name for result in results for name in result.versions):
            facts[name] = [result.versions.get(name, "not recorded") for result in results]
        self.facts = {name: Counter(values).most_common() for name, values in facts.items()}


@dataclass(frozen=True)
class ClassView:
    """One class: its results as they count, who is in it, the course's titles, and whose points the
    last run changed.

    day: when the pages are written, which each of them says; None where that is nobody's concern.
    """

    results: Sequence[Result]
    members: ClassList = NOBODY
    labels: Labels = IDS
    changed: Sequence[ChangedPoints] = ()
    day: date | None = None

    @cached_property
    def assignments(self) -> list[Part]:
        """Its assignments, in the course's order."""
        return [
            Part(id_, results, self) for id_, results in self.labels.by_assignment(self.results)
        ]

    @cached_property
    def by_student(self) -> dict[str, list[Result]]:
        """The results of each student who has one, in the course's order."""
        student_results: dict[str, list[Result]] = {result.student: [] for result in self.results}
        for assignment in self.assignments:
            for result in assignment.results:
                student_results[result.student].append(result)
        return student_results

    @cached_property
    def came_back(self) -> list[tuple[str, str, str, list[str]]]:
        """The misconceptions that were named again in a later exercise, the title, both exercises
        and whose it is; most first.
        """
        titles: dict[str, str] = {}
        recurrences: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for student, results in self.by_student.items():
            first_exercises: dict[str, str] = {}
            for exercise in (exercise for result in results for exercise in result.exercises):
                for id_, title in {
                    misconception.id: misconception.title
                    for misconception in misconceptions_of(exercise)
                }.items():
                    titles.setdefault(id_, title)
                    if (earlier := first_exercises.setdefault(id_, exercise.id)) != exercise.id:
                        recurrences[id_, earlier, exercise.id].append(student)
        position = self.labels.in_order(
            [exercise.id for result in self.results for exercise in result.exercises]
        ).index
        listed = [
            (titles[id_], first_id, again, students)
            for (id_, first_id, again), students in recurrences.items()
        ]
        return sorted(
            listed, key=lambda entry: (-len(entry[3]), position(entry[1]), position(entry[2]))
        )


def _alike(attempts: Sequence[tuple[str, ExerciseResult]]) -> list[tuple[str, str, list[str]]]:
    """Return the largest groups first; one attempt alone is none."""
    students_by_answer: dict[tuple[str, str], list[str]] = defaultdict(list)
    for student, attempt in attempts:
        if attempt.answers and group_of(attempt) == UNEXPLAINED:
            students_by_answer[attempt.id, attempt.answers].append(student)
    groups = [(*key, names) for key, names in students_by_answer.items() if len(names) > 1]
    return sorted(groups, key=lambda group: -len(group[2]))


def _row(columns: Sequence[Column], result: Result) -> ClassRow:
    numbers = {column.id: column.number for column in columns}
    titles = (
        f"{numbers[exercise.id]}: {d.title}"
        for exercise in result.exercises
        for d in misconceptions_of(exercise)
    )
    cells = {exercise.id: _cell(exercise) for exercise in result.exercises}
    outcomes = {
        exercise.id: {check.id: check.outcome for check in exercise.checks}
        for exercise in result.exercises
    }
    return ClassRow(
        result.student,
        result,
        cells,
        outcomes,
        score_words(result.score),
        result.max_score,
        next(titles, ""),
    )


def _nothing(columns: Sequence[Column], student: str, max_score: float, is_zero: bool) -> ClassRow:
    missing: Outcome = "missing"
    cell = Cell(MARKS[missing], 0 if is_zero else None)
    outcomes = {column.id: {id_: missing for id_, *_ in column.checks} for column in columns}
    return ClassRow(
        student,
        None,
        dict.fromkeys(outcomes, cell),
        outcomes,
        points(0) if is_zero else cell.text,
        max_score,
    )


def _totals(results: Sequence[Result]) -> list[tuple[str, int]]:
    """Return how many submissions have which share of the points, most points first; last those
    that have no total.
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
    without = len(results) - len(shares)
    return [
        ("all", sum(share >= 1 for share in shares)),
        *bins,
        *[("not graded", without)] * bool(without),
    ]
