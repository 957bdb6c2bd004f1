"""Rank the misconceptions of a class over all exercises."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..result import Diagnosed, Result
from .aggregate import other_titles


@dataclass(frozen=True)
class Ranked:
    """One misconception.

    titles: its titles, which may differ between exercises.
    exercises: how many attempts have it in each exercise.
    alternatives: in how many of them another misconception has the same values, by its title.
    together: how many of them have another misconception as well, by its title.
    """

    id: str
    titles: tuple[str, ...]
    students: int
    attempts: int
    exercises: tuple[tuple[str, int], ...]
    alternatives: tuple[tuple[str, int], ...]
    together: tuple[tuple[str, int], ...]


def ranked(results: Sequence[Result]) -> list[Ranked]:
    """The misconceptions, ordered by the number of students and then of attempts that have them."""
    seen: dict[str, list[tuple[str, str, Diagnosed, tuple[str, ...]]]] = defaultdict(list)
    for result in results:
        for exercise in result.exercises:
            for diagnosed in exercise.diagnosis:
                others = tuple(other.title for other in exercise.diagnosis if other.id != diagnosed.id)
                seen[diagnosed.id].append((result.student, exercise.id, diagnosed, others))
    found = [
        Ranked(
            id=id_,
            titles=tuple(dict.fromkeys(d.title for _, _, d, _ in every)),
            students=len({student for student, *_ in every}),
            attempts=len(every),
            exercises=tuple(Counter(exercise for _, exercise, _, _ in every).items()),
            alternatives=tuple(Counter(other for _, _, d, _ in every for other in other_titles(d)).most_common()),
            together=tuple(Counter(other for *_, others in every for other in others).most_common()),
        )
        for id_, every in seen.items()
    ]
    return sorted(found, key=lambda r: (-r.students, -r.attempts))
