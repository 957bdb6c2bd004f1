"""The misconceptions of a class, over all exercises, most frequent first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..result import Diagnosed, Result


@dataclass(frozen=True)
class Ranked:
    """One misconception.

    titles: its sentence, which may differ between exercises.
    exercises, alternatives, together: how many attempts have it in that exercise, have another that gives the same
    numbers, have that other one as well.
    """

    id: str
    titles: tuple[str, ...]
    students: int
    attempts: int
    exercises: tuple[tuple[str, int], ...]
    alternatives: tuple[tuple[str, int], ...]
    together: tuple[tuple[str, int], ...]


def ranked(results: Sequence[Result]) -> list[Ranked]:
    """By the number of students, then of attempts, that have each."""
    seen: dict[str, list[tuple[str, str, Diagnosed, tuple[str, ...]]]] = defaultdict(list)
    for result in results:
        for exercise in result.exercises:
            ids = tuple(d.id for d in exercise.diagnosis)
            for diagnosed in exercise.diagnosis:
                others = tuple(id_ for id_ in ids if id_ != diagnosed.id)
                seen[diagnosed.id].append((result.student, exercise.id, diagnosed, others))
    found = [
        Ranked(
            id=id_,
            titles=tuple(dict.fromkeys(d.title for _, _, d, _ in every)),
            students=len({student for student, *_ in every}),
            attempts=len(every),
            exercises=tuple(Counter(exercise for _, exercise, _, _ in every).items()),
            alternatives=tuple(Counter(other for _, _, d, _ in every for other in d.alternatives).most_common()),
            together=tuple(Counter(other for *_, others in every for other in others).most_common()),
        )
        for id_, every in seen.items()
    ]
    return sorted(found, key=lambda r: (-r.students, -r.attempts))
