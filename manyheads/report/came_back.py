"""Misconceptions that come back: named in one exercise of a student, and again in a later one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..result import Result
from .aggregate import misconceptions_of
from .labels import IDS, Labels


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
    return Group(table, Text("")) if table.rows else Group()
