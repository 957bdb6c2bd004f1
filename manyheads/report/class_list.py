"""The class as a report needs it: who is on the roster, and what stands for what was not handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..result import Result
from ..submission.roster import Roster, Student
from .rows import Cell, Row


@dataclass(frozen=True)
class ClassList:
    """The roster, and whether nothing handed in counts as 0 or as a blank.

    names: what a student is called in the results, by id; missing are those who are called by their id.
    """

    roster: Roster = field(default_factory=Roster)
    zero: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    def called(self, student: Student) -> str:
        """What the student is called in the results."""
        return self.names.get(student.id, student.id)

    def row_of(self, name: str) -> Student:
        """The student who is called so; of somebody who is not on the roster the name is all that is known."""
        return self._by_name().get(name) or Student(id=name, name=name, login=name)

    def absent(self, present: Sequence[str]) -> list[str]:
        """Who is on the roster and not among these, in the roster's order."""
        return [name for name in self._by_name() if name not in set(present)]

    def strangers(self, present: Sequence[str]) -> list[str]:
        """Who is among these and not on the roster; nobody where there is no roster."""
        known = self._by_name()
        return [name for name in dict.fromkeys(present) if known and name not in known]

    def _by_name(self) -> dict[str, Student]:
        return {self.called(student): student for student in self.roster.students}


NOBODY = ClassList()


def absent_rows(rows: Sequence[Row], members: ClassList) -> list[Row]:
    """A row for each of those who handed in nothing, by assignment, with what the others' rows have."""
    found = []
    for assignment in dict.fromkeys(row.assignment for row in rows):
        here = [row for row in rows if row.assignment == assignment]
        most = {name: cell.max_score for row in here for name, cell in row.cells.items()}
        cells = {name: Cell(0, max_score, "missing") for name, max_score in most.items()}
        absent = members.absent([row.student for row in here])
        found += [Row(name, assignment, 0, sum(most.values()), cells, None, {}) for name in absent]
    return found


def absent_by_assignment(results: Sequence[Result], members: ClassList) -> dict[str, list[str]]:
    """Who handed in nothing, for each assignment of which there are results."""
    present: dict[str, list[str]] = {}
    for result in results:
        present.setdefault(result.assignment, []).append(result.student)
    found = {assignment: members.absent(names) for assignment, names in present.items()}
    return {assignment: names for assignment, names in found.items() if names}
