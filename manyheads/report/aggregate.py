"""Statistics of a class, from its results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from rich.console import Group as Rendered
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ..result import Diagnosed, ExerciseResult, Outcome, Result
from ..submission.standing import LOAD_ERROR
from ..submission.unwritten import UNTOUCHED
from .labels import IDS, Labels

SHARES = ("none", "up to ¼", "up to ½", "up to ¾", "below full", "full")  # shares of the points, as classes of scores


# Diagnoses of attempts in which there is nothing to misunderstand: groups of their own beside the misconceptions.
NOT_GRADED_GROUP, NOT_BEGUN, NOT_IMPORTED = "not graded", "not begun", "cannot be imported"
UNEXPLAINED = "wrong in a way that no misconception explains"
NOT_HELD = "not in the gradebook"  # as isolation and as group of results that were read from one
GROUPS = (NOT_BEGUN, NOT_IMPORTED, UNEXPLAINED, NOT_GRADED_GROUP)  # in this order
_GROUPS = {UNTOUCHED: NOT_BEGUN, LOAD_ERROR: NOT_IMPORTED}


def misconceptions_of(exercise: ExerciseResult) -> tuple[Diagnosed, ...]:
    """Return what the student misunderstood, as far as it is named."""
    return tuple(diagnosed for diagnosed in exercise.diagnosis if diagnosed.id not in _GROUPS)


def group_of(exercise: ExerciseResult) -> str:
    """Return why an attempt that was handed in shows no misconception; "" where it shows one, or is right."""
    if not exercise.is_graded:
        return NOT_GRADED_GROUP
    if misconceptions_of(exercise) or all(check.outcome in ("passed", "missing") for check in exercise.checks):
        return ""
    return next((_GROUPS[each.id] for each in exercise.diagnosis), UNEXPLAINED)


@dataclass(frozen=True)
class Ranked:
    """One misconception.

    titles: its titles, which may differ between exercises.
    exercises: how many attempts have it in each exercise.
    alternatives: in how many of them another misconception has the same values, by its title.
    together: how many of them have another misconception as well, by its title.
    names: the students, in the order of the results.
    """

    id: str
    titles: tuple[str, ...]
    students: int
    attempts: int
    exercises: tuple[tuple[str, int], ...]
    alternatives: tuple[tuple[str, int], ...]
    together: tuple[tuple[str, int], ...]
    names: tuple[str, ...]


def ranked(attempts: Iterable[tuple[str, ExerciseResult]]) -> list[Ranked]:
    """Return the misconceptions, ordered by the number of students and then of attempts that have them.

    attempts: each with its student.
    """
    seen: dict[str, list[tuple[str, str, Diagnosed, tuple[str, ...]]]] = defaultdict(list)
    for student, exercise in attempts:
        for diagnosed in misconceptions_of(exercise):
            others = tuple(other.title for other in misconceptions_of(exercise) if other.id != diagnosed.id)
            seen[diagnosed.id].append((student, exercise.id, diagnosed, others))
    found = [
        Ranked(
            id=id_,
            titles=tuple(dict.fromkeys(d.title for _, _, d, _ in every)),
            students=len({student for student, *_ in every}),
            attempts=len(every),
            exercises=tuple(Counter(exercise for _, exercise, _, _ in every).items()),
            alternatives=tuple(Counter(other for _, _, d, _ in every for other in other_titles(d)).most_common()),
            together=tuple(Counter(other for *_, others in every for other in others).most_common()),
            names=tuple(dict.fromkeys(student for student, *_ in every)),
        )
        for id_, every in seen.items()
    ]
    return sorted(found, key=lambda r: (-r.students, -r.attempts))


@dataclass(frozen=True)
class ExerciseView:
    """One exercise over the whole class, without points that there are not.

    attempts: how many students handed something in. mean: of those of them who are graded, None where nobody is.
    """

    id: str
    attempts: int
    full: int
    mean: float | None
    max_score: float
    spread: tuple[int, ...]  # the number of students in each of SHARES
    misconceptions: tuple[Ranked, ...]
    groups: dict[str, int]  # the number of attempts in each of GROUPS that has any
    outcomes: dict[Outcome, int]  # the number of attempts in none of GROUPS with at least one check of this outcome
    not_graded: int = 0

    @property
    def unexplained(self) -> int:
        """The number of attempts that fail a check and have no diagnosis."""
        return self.groups.get(UNEXPLAINED, 0)


def class_view(results: Sequence[Result], labels: Labels = IDS, strangers: Collection[str] = ()) -> list[ExerciseView]:
    """Return the view of every exercise, in the course's order. strangers: who is not on the roster, and not counted."""
    ids = labels.in_order([exercise.id for result in results for exercise in result.exercises])
    return [_view(id_, results, strangers) for id_ in ids]


def other_titles(diagnosed: Diagnosed) -> tuple[str, ...]:
    """Return the titles of the alternatives; of one that has none, its id in words."""
    if len(diagnosed.alternative_titles) == len(diagnosed.alternatives):
        return diagnosed.alternative_titles
    return tuple(id_.replace("_", " ") for id_ in diagnosed.alternatives)


def share(score: float, of: float) -> int:
    """Return the index in SHARES of a score."""
    if score >= of:
        return 5
    return ceil(4 * score / of)


def _view(id_: str, results: Sequence[Result], strangers: Collection[str]) -> ExerciseView:
    here = [(result.student, each) for result in results for each in result.exercises if each.id == id_]
    known = [(student, exercise) for student, exercise in here if student not in strangers]
    attempts = [(student, exercise) for student, exercise in known if not exercise.excused] or known
    counting = [exercise for _, exercise in attempts]
    every = [exercise for exercise in counting if exercise.is_graded]
    handed_in = [e for e in counting if any(c.outcome != "missing" for c in e.checks)]
    scores = [exercise.score for exercise in handed_in if exercise.is_graded and exercise.score is not None]
    found = Counter(group_of(e) for e in handed_in)
    ungrouped = [exercise for exercise in every if not group_of(exercise)]
    spread = Counter(share(e.score, e.max_score) for e in every if e.score is not None)
    return ExerciseView(
        id=id_,
        attempts=len(handed_in),
        full=sum(e.score == e.max_score for e in every),
        mean=sum(scores) / len(scores) if scores else None,
        max_score=here[0][1].max_score,
        spread=tuple(spread[i] for i in range(len(SHARES))),
        misconceptions=tuple(ranked((student, exercise) for student, exercise in attempts if exercise.is_graded)),
        groups={group: found[group] for group in GROUPS if found[group]},
        outcomes=dict(
            Counter(o for e in ungrouped for o in {c.outcome for c in e.checks} if o not in ("passed", "failed"))
        ),
        not_graded=len(counting) - len(every),
    )


@dataclass(frozen=True)
class CameBack:
    """A misconception, the exercise where it was named first, a later one where it was named again, and whose it is."""

    title: str
    first: str
    later: str
    students: tuple[str, ...]


def came_back(results: Sequence[Result], labels: Labels = IDS) -> list[CameBack]:
    """Return the misconceptions that came back, by the number of students; exercises are in the course's order."""
    order = labels.in_order([other.id for result in results for other in result.exercises])
    titles: dict[str, str] = {}
    named: dict[tuple[str, str], set[str]] = defaultdict(set)  # exercises, by the student and the misconception
    for result in results:
        for other in result.exercises:
            for diagnosed in misconceptions_of(other):
                titles.setdefault(diagnosed.id, diagnosed.title)
                named[result.student, diagnosed.id].add(other.id)
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (student, id_), exercises in named.items():
        first, *later = sorted(exercises, key=order.index)
        for again in later:
            found[id_, first, again].append(student)
    listed = [CameBack(titles[id_], first, other, tuple(who)) for (id_, first, other), who in found.items()]
    return sorted(listed, key=lambda each: (-len(each.students), order.index(each.first), order.index(each.later)))


def came_back_table(results: Sequence[Result], labels: Labels = IDS) -> RenderableType:
    """Return a table of them for a terminal; nothing where there are none."""
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("students", "misconception that came back", "first in", "again in"):
        table.add_column(column, justify="right" if column == "students" else "left")
    for each in came_back(results, labels):
        words = (each.title, labels.exercise(each.first), labels.exercise(each.later))
        table.add_row(str(len(each.students)), *(Text(text) for text in words))
    return Rendered(table, Text("")) if table.rows else Rendered()
