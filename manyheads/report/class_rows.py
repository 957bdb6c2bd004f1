"""Make the rows of a class: who is on the roster, and the part of each result that the class table needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..result import Outcome, Result
from ..submission.roster import Roster, Student
from .adjustments import at_unknown_time, changed, sentences
from .aggregate import misconceptions_of
from .labels import IDS, Labels
from .words import score_note, was_not_run


@dataclass(frozen=True)
class Cell:
    """One attempt's points, and the outcome to note beside them. decided: whether a date or a human changed them.

    score: None where it is not graded.
    """

    score: float | None
    max_score: float
    note: Outcome | None
    decided: bool = False
    excused: bool = False


@dataclass(frozen=True)
class Row:
    """One submission.

    adjustments: who got what by which rule. at_unknown_time: whether that would matter.
    not_graded: the exercises that have no points, each with the reason. not_readable: whether it is that nobody can read them.
    """

    student: str
    assignment: str
    score: float | None
    max_score: float
    cells: dict[str, Cell]  # by exercise
    first: tuple[str, str] | None  # the first misconception: its exercise and its title
    misconceptions: dict[str, str]  # titles by ids
    adjustments: tuple[str, ...] = ()
    at_unknown_time: bool = False
    not_graded: tuple[str, ...] = ()
    not_readable: bool = False

    @property
    def stopped(self) -> bool:
        """Whether an attempt crashed or ran out of time."""
        return any(cell.note in ("crashed", "timeout") for cell in self.cells.values())


def row_of(result: Result, labels: Labels = IDS) -> Row:
    """Return the row of a submission."""
    named = [(exercise.id, diagnosed) for exercise in result.exercises for diagnosed in misconceptions_of(exercise)]
    return Row(
        student=result.student,
        assignment=result.assignment,
        score=result.score,
        max_score=result.max_score,
        cells={e.id: Cell(e.score, e.max_score, score_note(e), changed(e), e.excused) for e in result.exercises},
        first=(named[0][0], named[0][1].title) if named else None,
        misconceptions={diagnosed.id: diagnosed.title for _, diagnosed in named},
        adjustments=tuple(sentences(result, labels)),
        at_unknown_time=at_unknown_time(result),
        not_graded=tuple(not_graded(result, labels)),
        not_readable=any(other.id in result.not_graded for other in result.exercises if other.not_readable),
    )


def not_graded(result: Result, labels: Labels = IDS) -> Iterator[str]:
    """Name each exercise that is not graded, and the reason: 04 The reshape dance: the grader itself failed here.

    Those that may be in what nobody can read are named together.
    """
    unread = [other for other in result.exercises if other.id in result.not_graded and other.not_readable]
    if unread:
        of = (
            "every exercise"
            if len(unread) == len(result.exercises)
            else ", ".join(labels.exercise(e.id) for e in unread)
        )
        yield f"handed in, not readable: {', '.join(unread[0].not_readable)} ({of})"
    for exercise in result.exercises:
        if exercise.id in result.not_graded and exercise not in unread:
            seen = next((check.evidence for check in exercise.checks if was_not_run(check)), "")
            reason = seen.partition(";")[0].rstrip(".")
            yield f"{labels.exercise(exercise.id)}: {reason[:1].lower()}{reason[1:]}"


@dataclass(frozen=True)
class ClassList:
    """The roster, and whether nothing handed in counts as 0 or as a blank."""

    roster: Roster = field(default_factory=Roster)
    zero: bool = False

    def row_of(self, name: str) -> Student:
        """Return the student who is called so; of somebody who is not on the roster the name is all that is known."""
        return self._by_name().get(name) or Student(id=name, name=name, login=name)

    def named(self, name: str) -> str:
        """Return what the roster calls whoever is called so, there or on GitHub; the name itself where it knows nobody."""
        accounts = {each.github.casefold(): each.id for each in self.roster.students if each.github}
        return name if name in self._by_name() else accounts.get(name.casefold(), name)

    def absent(self, present: Sequence[str]) -> list[str]:
        """Return who is on the roster and not among these, in the roster's order."""
        return [name for name in self._by_name() if name not in set(present)]

    def strangers(self, present: Sequence[str]) -> list[str]:
        """Return who is among these and not on the roster; nobody where there is no roster."""
        known = self._by_name()
        return [name for name in dict.fromkeys(present) if known and name not in known]

    def _by_name(self) -> dict[str, Student]:
        return {student.id: student for student in self.roster.students}


NOBODY = ClassList()


def absent_rows(rows: Sequence[Row], members: ClassList) -> list[Row]:
    """Return a row for each of those who handed in nothing, by assignment, with what the others' rows have."""
    found = []
    for assignment, absent in absent_by_assignment(rows, members).items():
        most = {
            name: cell.max_score for row in rows if row.assignment == assignment for name, cell in row.cells.items()
        }
        cells = {name: Cell(0, max_score, "missing") for name, max_score in most.items()}
        found += [Row(name, assignment, 0, sum(most.values()), cells, None, {}) for name in absent]
    return found


def absent_by_assignment(results: Sequence[Result | Row], members: ClassList) -> dict[str, list[str]]:
    """Return who handed in nothing, for each assignment of which there are results."""
    present: dict[str, list[str]] = {}
    for result in results:
        present.setdefault(result.assignment, []).append(result.student)
    found = {assignment: members.absent(names) for assignment, names in present.items()}
    return {assignment: names for assignment, names in found.items() if names}
